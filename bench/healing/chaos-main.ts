import { parseArgs } from "node:util";
import { createRandom } from "@turnout/core/testing";
import { oneOf, runCommand, wholeNumber } from "@turnout/house/command-line";
import { runChaos } from "./chaos.ts";
import { runAgainInVm } from "@turnout/house/vm";
import { VICTIMS } from "./hands.ts";

const USAGE = "npm run e2e:chaos -- [--only BACKEND] [--rounds N] [--seed N] [--vm]";

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function asked(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      rounds: { type: "string", default: "30" },
      seed: { type: "string" },
      vm: { type: "boolean", default: false },
      "in-vm": { type: "boolean", default: false },
    },
  });
  if (values.only !== undefined) oneOf("--only", values.only, Object.keys(VICTIMS));
  const seed = wholeNumber("--seed", values.seed ?? String(Date.now() % 100_000), 0);
  return { values, rounds: wholeNumber("--rounds", values.rounds, 1), seed };
}

/**
 * Have a foreign hand remove and change rules at random, backend by backend: `npm run e2e:chaos -- --only nft --rounds 100 --seed 7`. Exits with 1
 * when packets don't flow again, or something of others was touched. With `--vm` it is done to ipvs, in a guest. Needs root, and the command built.
 */
async function main({ values, rounds, seed }: ReturnType<typeof asked>): Promise<boolean> {
  if (values.vm) return await runAgainInVm({ variables: ["TURNOUT_HEALING_LOG"] });
  process.stdout.write(`seed ${seed}\n`);
  let isWell = true;
  for (const [name, victim] of Object.entries(VICTIMS)) {
    if ((values.only !== undefined && values.only !== name) || (victim.isInVm === true) !== values["in-vm"]) continue;
    const done = new Map<string, number>();
    const onRound = (attack: { readonly name: string }): void => void done.set(attack.name, (done.get(attack.name) ?? 0) + 1);
    const findings = await runChaos({ victim, rounds, random: createRandom(seed), onRound });
    const what = Array.from(done, ([attack, times]) => `${attack} ${times}`).join(", ");
    process.stdout.write(
      `${name}: ${findings.length === 0 ? "packets flowed again each time, nothing of others was touched" : findings.join("\n")} (${what})\n`,
    );
    isWell &&= findings.length === 0;
  }
  return isWell;
}

await runCommand({ name: "e2e:chaos", usage: USAGE, read: asked, execute: main });
