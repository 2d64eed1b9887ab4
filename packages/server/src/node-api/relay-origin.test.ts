import { NodeLink, type Delivery } from "@turnout/client/protocol";
import type { IPFamily } from "@turnout/core";
import { POD_SETTINGS, rawNode, upsertRaw } from "@turnout/core/testing";
import { afterEach, describe, expect, test } from "vitest";
import { TestBrain } from "../test-support/brain.ts";
import { eventually, RecordingLog } from "../test-support/world.ts";
import { createRelayOrigin } from "./node-origin.ts";
import type { Cursor } from "./state-view.ts";

const ends: (() => void | Promise<void>)[] = [];
const never = new AbortController().signal;

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

/** A brain that answers for node2 alone, and a relay before it. */
async function relayed(): Promise<readonly [brain: TestBrain, relay: TestBrain]> {
  const brain = await TestBrain.start({ onlyNode: "node2" });
  ends.push(() => brain.remove());
  const relay = await TestBrain.start();
  ends.push(() => relay.remove());
  await relay.server?.close();
  const { clock, log } = relay;
  await relay.serve({ origin: createRelayOrigin({ target: brain.target, version: "relay", clock, log }) });
  return [brain, relay];
}

const REFUSED = /^\[permission_denied\].*only node node2 may be asked for here: node node1/;

describe("behind a relay", () => {
  test("who asks for what the brain refuses is told so, each time, and the relay's log tells it once", async () => {
    const [, relay] = await relayed();
    for (let time = 0; time < 2; time++) {
      const watcher = await relay.watch();
      watcher.ask("IPv4");
      expect((await watcher.stream.ended).message).toMatch(REFUSED);
    }
    expect(relay.log.of("warn").filter((line) => line.includes("refuses what is asked"))).toHaveLength(1);
    expect(relay.server?.stats.refused.get("PERMISSION_DENIED")).toBe(2);
    expect((await (await relay.watch({ nodeName: "node2" })).next()).changes.node?.name).toBe("node2");
  });

  test("who was refused is answered when the brain gives the right", async () => {
    const [brain, relay] = await relayed();
    const log = new RecordingLog();
    const link = new NodeLink({ target: relay.target, nodeName: "node1", settings: POD_SETTINGS, log, clock: relay.clock });
    ends.push(() => link.close());
    const state = link.feed("IPv4").next(never);
    await eventually(() => log.of("warn").some((line) => line.includes("is away")));
    await brain.server?.close();
    await brain.serve();
    const ticking = setInterval(() => relay.clock.advance(1_000), 10);
    ends.push(() => clearInterval(ticking));
    expect(await state).toMatchObject({ full: true, node: { name: "node1" } });
  });

  test("what one family's change set says of the node is not told in the other's before that one has its own", async () => {
    const [brain, relay] = await relayed();
    upsertRaw(brain.store, rawNode("node2", { addresses: ["172.18.0.1", "fd00::1"] }));
    const watcher = await relay.watch({ nodeName: "node2" });
    const next = async (family: IPFamily, known?: Cursor): Promise<Delivery> => {
      watcher.ask(family, known?.instance, known?.revision);
      return await watcher.delivery();
    };
    const { changes: six } = await next("IPv6");
    let four = await next("IPv4");
    const taints = [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }];
    upsertRaw(brain.store, rawNode("node2", { addresses: ["172.18.0.2", "fd00::2"], taints }));
    while (four.eligibility?.isEligible !== false) four = await next("IPv4", four.changes);
    // Not eligible with the addresses from before would be a node that never was.
    expect((await next("IPv6", six)).changes.node?.addresses).toEqual(["fd00::2"]);
  });
});
