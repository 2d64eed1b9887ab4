import type { BackendModule } from "@turnout/core";
import type { CreateFakeHost } from "../runner/fake-host.ts";
import type { Finding } from "../checks/finding.ts";
import { Findings } from "../checks/findings.ts";
import type { HistoryOptions } from "./history-options.ts";
import { HistoryRun } from "./history-run.ts";

/** What came of histories: `steps` is how many changes were made. */
export interface HistoryReport {
  readonly backend: string;
  readonly seed: number;
  readonly steps: number;
  /** How often everything was compared with a host synced from nothing. */
  readonly looks: number;
  readonly packets: number;
  readonly findings: readonly Finding[];
}

/**
 * Let random things happen to the API objects, with faults between any two steps (failing tools, dying processes, a foreign hand, syncs
 * put off), and look now and then whether all is as one sync from nothing would have it, and packets go where the oracle says.
 *
 * Edges: the same seed says the same again. A finding's `scenario` names the seed of its life and its `step` the number of the change:
 * `checkHistories(module, createFakeHost, { seed })` with that seed, and the same `lifeSteps` and `pollEvery`, plays it again.
 */
export async function checkHistories(
  module: BackendModule,
  createFakeHost: CreateFakeHost,
  options: HistoryOptions = {},
): Promise<HistoryReport> {
  const { seed = 1, steps = 1000, lifeSteps = 500, pollEvery = 100, maxFindings = 1 } = options;
  const findings = new Findings({ ...options, maxFindings });
  const total = { steps: 0, looks: 0, packets: 0 };
  for (let life = 0; total.steps < steps && !findings.isFull; life++) {
    const run = new HistoryRun({ module, createFakeHost }, seed + life, findings, options);
    await run.live(Math.min(lifeSteps, steps - total.steps), pollEvery);
    total.steps += run.steps;
    total.looks += run.looks;
    total.packets += run.packets;
  }
  return { backend: module.name, seed, ...total, findings: findings.list };
}
