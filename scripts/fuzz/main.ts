import { parseArgs } from "node:util";
import { loadTargets, REPOSITORY, saveFinding } from "./corpus.ts";
import type { PlacedTarget } from "./corpus.ts";
import { fuzz, NotLoadedError } from "./fuzz.ts";
import type { FuzzOutcome } from "./fuzz.ts";

const USAGE = "usage: npm run fuzz -- [--minutes N] [--target NAME]… [--seed N]";
const REPORT_EVERY_MS = 60_000;

function asked(placed: readonly PlacedTarget[]): { targets: readonly string[]; minutes: number; seed: number } | string {
  const { values } = parseArgs({
    options: { minutes: { type: "string", default: "1" }, target: { type: "string", multiple: true }, seed: { type: "string" } },
  });
  const names = placed.map(({ target }) => target.name);
  const targets = values.target ?? names;
  const unknown = targets.find((name) => !names.includes(name));
  const [minutes, seed] = [Number(values.minutes), Number(values.seed ?? Date.now() % 1_000_000)];
  if (unknown !== undefined) return `there is no target ${unknown}; there are ${names.join(", ")}`;
  if (!(minutes > 0) || !Number.isInteger(seed)) return USAGE;
  return { targets, minutes, seed };
}

function summary({ played, findings }: FuzzOutcome): string {
  const cases = [...played.values()].reduce((sum, one) => sum + one.cases, 0);
  return `${cases} cases of ${played.size} targets, ${findings.length} findings`;
}

const placed = await loadTargets(REPOSITORY);
const question = asked(placed);
if (typeof question === "string") {
  console.error(question);
  process.exit(2);
}
const { targets, minutes, seed } = question;
console.log(`seed ${seed}, ${targets.length} targets, ${minutes} minutes`);
let toldMs = Date.now();
const effort = { untilMs: Date.now() + minutes * 60_000 };
const outcome = await fuzz({ repository: REPOSITORY, targets, seed, effort }, (news) => {
  if (Date.now() - toldMs < REPORT_EVERY_MS) return;
  toldMs = Date.now();
  console.log(summary(news));
}).catch((error: unknown) => {
  if (!(error instanceof NotLoadedError)) throw error;
  console.error(`fuzz: ${error.message}`);
  process.exit(1);
});
for (const [name, { cases, kept }] of outcome.played) console.log(`${name}: ${cases} cases, ${kept} inputs that reached new code`);
for (const finding of outcome.findings) {
  const home = placed.find(({ target }) => target.name === finding.target);
  console.log(`\n${finding.target}: ${finding.what}`);
  if (home !== undefined) console.log(`  saved as ${saveFinding(home, finding)}`);
}
console.log(summary(outcome));
process.exitCode = outcome.findings.length === 0 ? 0 : 1;
