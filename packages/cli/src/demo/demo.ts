import type { Clock, IPFamily } from "@turnout/core";
import { seeAffinity, seeRefusal, seeSources, seeSpread } from "./acts.ts";
import { followFlows, killAndRestart, rollOut, scaleToZeroAndBack, switchBackAndForth } from "./changes.ts";
import type { Findings } from "./findings.ts";
import { NODES, SHOP } from "./shop.ts";
import { buildStage, type Stage } from "./stage.ts";
import { startTraffic } from "./traffic.ts";
import { startAndWait } from "./waiting.ts";

/** What a demo runs on. */
export interface DemoOptions {
  /** As `turnout run --backend` takes it. */
  readonly backend: string;
  readonly families: readonly IPFamily[];
  /** Tool and kernel versions for the report. */
  readonly versions: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** A steady clock with fractions, in ms. */
  readonly nowMs: () => number;
  readonly signal: AbortSignal;
  /** Hears what is done now. */
  readonly progress: (text: string) => void;
}

/** A demo that has been played; its cluster is still up. */
export interface DemoRun {
  readonly findings: Findings;
  readonly stage: Stage;
}

/**
 * Build the shop, run the proxy on it, play all acts and collect what was seen.
 *
 * Edges: the caller destroys the stage of a demo that was played; when this throws, nothing is left.
 * @throws {ProxyError} what the host can't do, or `tool_failed`; on abort whatever came first.
 */
export async function runDemoOf(options: DemoOptions): Promise<DemoRun> {
  const { nowMs, progress, families } = options;
  const pods = NODES.reduce((sum, node) => sum + node.pods, 0);
  progress(`Building a cluster: ${NODES.length} nodes, ${pods} pods, a client outside, an API server`);
  const startMs = nowMs();
  const stage = await buildStage(options);
  try {
    const stageMs = nowMs() - startMs;
    progress("Starting turnout run on every node");
    const readyMs = await startAndWait(stage, SHOP.cart);
    const setup = { backend: options.backend, versions: options.versions, nodes: NODES.length, pods, families, stageMs, readyMs };
    return { findings: await runActs(stage, setup, options), stage };
  } catch (error) {
    await stage.destroy();
    throw error;
  }
}

async function runActs(stage: Stage, setup: Findings["setup"], { nowMs, progress }: DemoOptions): Promise<Findings> {
  progress("Sending traffic, all the time from here on");
  const startMs = nowMs();
  const traffic = await startTraffic(stage);
  progress("Looking at who answers, and whom they see");
  const spread = await seeSpread(stage);
  const sources = await seeSources(stage);
  const affinity = await seeAffinity(stage);
  const refused = await seeRefusal(stage);
  progress("Moving a service between pods, to zero and back");
  const switches = await switchBackAndForth(stage);
  const { toZero, fromZero } = await scaleToZeroAndBack(stage);
  progress("Taking the pod away from a UDP client");
  const flows = await followFlows(stage);
  progress("Rolling out a new frontend");
  const rollout = await rollOut(stage);
  progress("Killing a proxy with kill -9, starting it again");
  const restart = await killAndRestart(stage, traffic);
  progress("Counting");
  const trafficMs = nowMs() - startMs;
  return {
    setup,
    spread,
    sources,
    affinity,
    refused,
    switches,
    toZero,
    fromZero,
    flows,
    rollout,
    restart,
    trafficMs,
    ...(await traffic.stop()),
  };
}
