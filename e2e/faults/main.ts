import { HEALTHY_VARIANTS } from "./healthy.ts";
import { allFaults, playFault, playHealthy, verdictTable } from "./play.ts";
import type { Verdict } from "./play.ts";
import { createFaultStage } from "./stage.ts";

/**
 * Play the whole corpus of faults with one backend, and print what was named: `npm run e2e:faults -- nft [text]`. With a text, only faults with it
 * in their names are played, and no healthy cases.
 */
const [backend = "nft", only = ""] = process.argv.slice(2);
const stage = await createFaultStage(backend);
const verdicts: Verdict[] = [];
const tell = (verdict: Verdict): void => {
  verdicts.push(verdict);
  if (!verdict.isRight || only !== "")
    process.stderr.write(
      `${verdict.isRight ? "right" : "WRONG"} ${verdict.kind}: ${verdict.name}: ${verdict.found} instead of ${verdict.expected}: ${verdict.says}\n`,
    );
};
try {
  if (only === "") for (const variant of HEALTHY_VARIANTS) for (const verdict of await playHealthy(stage, variant)) tell(verdict);
  for (const played of allFaults(stage)) if (played.fault.name.includes(only) || played.kind === only) tell(await playFault(stage, played));
} finally {
  process.stdout.write(verdictTable(verdicts));
  await stage.destroy();
}
process.exitCode = verdicts.every(({ isRight }) => isRight) ? 0 : 1;
