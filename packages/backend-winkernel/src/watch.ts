import type { HostEvent } from "@turnout/core/backend";
import type { WinkernelFacts } from "./facts.ts";
import type { WinkernelOptions } from "./options.ts";
import { readFacts } from "./probe.ts";
import type { WinkernelWorld } from "./world.ts";

/** HNS tells of networks alone, and Windows of addresses by another way: both are looked at, which is cheap. */
const POLL_MS = 10_000;

/** Tell the host's facts, and again whenever they have changed: remote subnets come with the nodes that have them. */
export async function* watchHost(
  options: WinkernelOptions,
  world: WinkernelWorld,
  signal: AbortSignal,
): AsyncIterable<HostEvent<WinkernelFacts>> {
  let reported = "";
  while (!signal.aborted) {
    const facts = await readFacts(options, world, signal);
    const text = JSON.stringify(facts);
    if (text !== reported) yield { kind: "facts", facts };
    reported = text;
    await world.clock.sleep(POLL_MS, signal);
  }
}
