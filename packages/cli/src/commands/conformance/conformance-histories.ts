import { setImmediate } from "node:timers/promises";
import { ProxyError, type Plain } from "@turnout/core";
import { checkHistories, type Finding } from "@turnout/conformance";
import type { Environment } from "../../environment.ts";
import type { CallWatch } from "./conformance-calls.ts";
import type { Histories } from "./conformance-report.ts";

/** Changes on one host; a life has the seed of the first one plus its number, so it can be played again by itself. */
const LIFE_STEPS = 500;

/**
 * Play random histories, life by life, until one has a finding.
 *
 * Edges: nothing in them waits for anything outside, so between two lives the process looks whether somebody wants it to end.
 * @throws {ProxyError} `canceled` when somebody does.
 */
export async function runHistories(
  { module, createFakeHost, onCheckpoint }: Pick<CallWatch, "module" | "createFakeHost" | "onCheckpoint">,
  { steps, seed }: Histories,
  backendOptions: Readonly<Record<string, Plain>>,
  { signal, isTerminal, err }: Pick<Environment, "signal" | "isTerminal" | "err">,
): Promise<readonly Finding[]> {
  for (let done = 0; done < steps; done += LIFE_STEPS) {
    const life = { seed: seed + done / LIFE_STEPS, steps: Math.min(LIFE_STEPS, steps - done), lifeSteps: LIFE_STEPS };
    const { findings } = await checkHistories(module, createFakeHost, { ...life, backendOptions, onCheckpoint });
    const ran = done + life.steps;
    await setImmediate();
    const isEnd = findings.length > 0 || signal.aborted || ran === steps;
    if (isTerminal) err(`\r${ran} of ${steps} steps${isEnd ? "\n" : ""}`);
    if (findings.length > 0) return findings;
    if (signal.aborted && ran < steps)
      throw new ProxyError("canceled", `stopped after ${ran} steps without a finding`, {
        object: `backend ${module.name}`,
        hint: `--seed ${life.seed + 1} goes on from there`,
      });
  }
  return [];
}
