import { parseArgs } from "node:util";
import { oneOf, runCommand, wholeNumber } from "../command-line.ts";
import { loadTargets, REPOSITORY, saveFinding } from "./corpus.ts";
import type { PlacedTarget } from "./corpus.ts";
import { fuzz } from "./fuzz.ts";
import type { FuzzOutcome } from "./fuzz.ts";

const REPORT_EVERY_MS = 60_000;

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function asked(args: readonly string[], known: readonly string[]): { targets: readonly string[]; minutes: number; seed: number } {
  const { values } = parseArgs({
    args: [...args],
    options: { minutes: { type: "string", default: "1" }, target: { type: "string", multiple: true }, seed: { type: "string" } },
  });
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) throw new RangeError(`--minutes ${values.minutes}: a number above 0 is needed`);
  const seed = wholeNumber("--seed", values.seed ?? String(Date.now() % 1_000_000), 0);
  return { targets: values.target?.map((name) => oneOf("--target", name, known)) ?? known, minutes, seed };
}

function summary({ ran, findings }: FuzzOutcome): string {
  const cases = [...ran.values()].reduce((sum, one) => sum + one.cases, 0);
  return `${cases} cases of ${ran.size} targets, ${findings.length} findings`;
}

/** Play the targets, and save and tell what they do wrong. */
async function execute(placed: readonly PlacedTarget[], { targets, minutes, seed }: ReturnType<typeof asked>): Promise<boolean> {
  console.log(`seed ${seed}, ${targets.length} targets, ${minutes} minutes`);
  let reportedMs = Date.now();
  const effort = { untilMs: Date.now() + minutes * 60_000 };
  const outcome = await fuzz({ repository: REPOSITORY, targets, seed, effort }, (news) => {
    if (Date.now() - reportedMs < REPORT_EVERY_MS) return;
    reportedMs = Date.now();
    console.log(summary(news));
  });
  for (const [name, { cases, kept }] of outcome.ran) console.log(`${name}: ${cases} cases, ${kept} inputs that reached new code`);
  for (const finding of outcome.findings) {
    const home = placed.find(({ target }) => target.name === finding.target);
    console.log(`\n${finding.target}: ${finding.what}`);
    if (home !== undefined) console.log(`  saved as ${saveFinding(home, finding)}`);
  }
  console.log(summary(outcome));
  return outcome.findings.length === 0;
}

const placed = await loadTargets(REPOSITORY);
const known = placed.map(({ target }) => target.name);
await runCommand({
  name: "fuzz",
  usage: `npm run fuzz -- [--minutes N] [--target NAME]… [--seed N]\n  targets: ${known.join(", ")}`,
  read: (args) => asked(args, known),
  execute: (effort) => execute(placed, effort),
});
