import { playInGuest } from "@turnout/house/guest";
import { healthyVariants } from "./healthy.ts";
import { allFaults, playFault, playHealthy, verdictTable } from "./play.ts";
import type { Verdict } from "./play.ts";
import { createFaultStage, GUEST_BACKEND } from "./stage.ts";

/**
 * Play the whole corpus of faults with one backend, and print what was named: `npm run e2e:faults -- nft [text]`. With a text, only faults with it
 * in their names, or of that kind, are played, and no healthy cases (`healthy`: nothing else). With ipvs it is played in a guest; `iptables-legacy`
 * is iptables with legacy tools.
 */
async function main(name: string, only: string): Promise<number> {
  const stage = await createFaultStage(name);
  const verdicts: Verdict[] = [];
  const tell = (verdict: Verdict): void => {
    verdicts.push(verdict);
    if (!verdict.isRight || only !== "")
      process.stderr.write(
        `${verdict.isRight ? "right" : "WRONG"} ${verdict.kind}: ${verdict.name}: ${verdict.found}${verdict.isRight ? "" : ` instead of ${verdict.expected}`}: ${verdict.says}\n`,
      );
  };
  try {
    if (["", "healthy"].includes(only))
      for (const variant of healthyVariants(stage.backend)) for (const verdict of await playHealthy(stage, variant)) tell(verdict);
    for (const played of allFaults(stage))
      if (played.fault.name.includes(only) || played.kind === only) tell(await playFault(stage, played));
  } finally {
    process.stdout.write(verdictTable(verdicts));
    await stage.destroy();
  }
  return verdicts.every(({ isRight }) => isRight) ? 0 : 1;
}

const [backend = "nft", only = "", place] = process.argv.slice(2);
const isElsewhere = backend === GUEST_BACKEND && place !== "--in-guest";
process.exitCode = isElsewhere ? await playInGuest(new URL("./main.ts", import.meta.url), [backend, only]) : await main(backend, only);
