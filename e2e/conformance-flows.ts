import { setTimeout as sleep } from "node:timers/promises";
import type { FlowExpectation, Packet } from "@turnout/conformance";
import { STAGE_NODE } from "@turnout/conformance";
import type { Cluster } from "@turnout/lab";

/** How long a flow that must be forgotten may take, on a machine that is busy: that happens beside the syncs. */
const FORGET_MS = 30_000;
/** How long a flow must be remembered for, to be believed. */
const REMEMBER_MS = 400;
const POLL_AGAIN_MS = 20;

/** A flow that was kept, and what should have become of it. */
export interface FlowInQuestion {
  readonly name: string;
  readonly is: FlowExpectation["is"];
  readonly packet: Packet;
  readonly fromPort: number;
  /** Its socket is all that remembers it: whether that is open still. */
  readonly isOpen?: () => Promise<boolean>;
}

/** Ask the kernel of the stage's node which flows it still tracks, or whether their sockets live, and say which are otherwise than they should be. */
export async function lookAtFlows(cluster: Cluster, flows: readonly FlowInQuestion[]): Promise<readonly string[]> {
  if (flows.length === 0) return [];
  const startMs = performance.now();
  const tracked = async (some: readonly FlowInQuestion[]): Promise<readonly FlowInQuestion[]> => [
    ...(await openAmong(some)),
    ...(await trackedAmong(
      cluster,
      some.filter(({ isOpen }) => isOpen === undefined),
    )),
  ];
  // What must be forgotten first: its going is a sign that forgetting has begun.
  let lasting = await tracked(flows.filter(({ is }) => is === "forgotten"));
  while (lasting.length > 0 && performance.now() - startMs < FORGET_MS) {
    await sleep(POLL_AGAIN_MS);
    lasting = await tracked(lasting);
  }
  await sleep(Math.max(0, startMs + REMEMBER_MS - performance.now()));
  const remembered = flows.filter(({ is }) => is === "remembered");
  const there = new Set(await tracked(remembered));
  return [
    ...lasting.map(({ name }) => `${name}: expected to be forgotten, is remembered`),
    ...remembered.filter((flow) => !there.has(flow)).map(({ name }) => `${name}: expected to be remembered, is forgotten`),
  ];
}

async function openAmong(flows: readonly FlowInQuestion[]): Promise<readonly FlowInQuestion[]> {
  const open = await Promise.all(flows.map(async (flow) => ((await flow.isOpen?.()) === true ? [flow] : [])));
  return open.flat();
}

/** One listing a family: each walks the whole table, which costs more than all that is in it here. */
async function trackedAmong(cluster: Cluster, flows: readonly FlowInQuestion[]): Promise<readonly FlowInQuestion[]> {
  const tracked = new Set<string>();
  for (const family of new Set(flows.map(({ packet }) => packet.family))) {
    const { stdout } = await cluster.node(STAGE_NODE).run("conntrack", ["-L", "-p", "udp", "-f", family.toLowerCase()]);
    for (const line of stdout.split("\n")) {
      // The original direction comes first.
      const [, source, fromPort, port] = / src=(\S+) dst=\S+ sport=(\d+) dport=(\d+) /.exec(line) ?? [];
      if (source !== undefined) tracked.add(`${source} ${fromPort} ${port}`);
    }
  }
  // What the host sends to an address that it has bound itself, as with IPVS, it sends from there.
  return flows.filter(({ packet: { source, destination, port }, fromPort }) =>
    [source, destination].some((ip) => tracked.has(`${ip} ${fromPort} ${port}`)),
  );
}
