import { NodeLink, PackedReader, type Delivery } from "@turnout/client/protocol";
import type { ChangeSet, IPFamily } from "@turnout/core";
import { POD_SETTINGS, rawNode, upsertRaw } from "@turnout/core/testing";
import { describe, expect, onTestFinished, test } from "vitest";
import { TestStateServer } from "../test-support/state-server.ts";
import { eventually, RecordingLog, untilTestEnds } from "../test-support/world.ts";
import { createRelayProvider } from "./node-state-provider.ts";
import type { Cursor } from "./state-view.ts";

const never = new AbortController().signal;

/** A node-state server that answers for one node alone, or for all, and a relay before it. */
async function relayed(onlyNode?: string): Promise<readonly [stateServer: TestStateServer, relay: TestStateServer]> {
  const stateServer = await TestStateServer.start({ onlyNode });
  const relay = await TestStateServer.start();
  await relay.server?.close();
  const { clock, log } = relay;
  await relay.serve({ provider: createRelayProvider({ target: stateServer.target, version: "relay", clock, log }) });
  return [stateServer, relay];
}

const REFUSED = /^\[permission_denied\].*only node node2 may be asked for here: node node1/;

describe("behind a relay", () => {
  test("who asks for what the node-state server refuses is told so, each time, and the relay's log tells it once", async () => {
    const [, relay] = await relayed("node2");
    for (let time = 0; time < 2; time++) {
      const watcher = await relay.watch();
      watcher.ask("IPv4");
      expect((await watcher.stream.ended).message).toMatch(REFUSED);
    }
    expect(relay.log.of("warn").filter((line) => line.includes("refuses a request"))).toHaveLength(1);
    expect(relay.server?.stats.refused.get("PERMISSION_DENIED")).toBe(2);
    expect((await (await relay.watch({ nodeName: "node2" })).next()).changes.node?.name).toBe("node2");
  });

  test("who was refused is answered when the node-state server gives the right", async () => {
    const [stateServer, relay] = await relayed("node2");
    const log = new RecordingLog();
    const options = { target: relay.target, nodeName: "node1", settings: POD_SETTINGS, log, clock: relay.clock };
    const link = untilTestEnds(new NodeLink(options));
    const state = link.feed("IPv4").next(never);
    await eventually(() => log.of("warn").some((line) => line.includes("is away")));
    await stateServer.server?.close();
    await stateServer.serve();
    const ticking = setInterval(() => relay.clock.advance(1_000), 10);
    onTestFinished(() => clearInterval(ticking));
    expect(await state).toMatchObject({ full: true, node: { name: "node1" } });
  });

  test("what one family's change set says of the node is not told in the other's before that one has its own", async () => {
    const [stateServer, relay] = await relayed();
    upsertRaw(stateServer.store, rawNode("node2", { addresses: ["172.18.0.1", "fd00::1"] }));
    const watcher = await relay.watch({ nodeName: "node2" });
    const next = async (family: IPFamily, known?: Cursor): Promise<Delivery> => {
      watcher.ask(family, known?.instance, known?.revision);
      return await watcher.delivery();
    };
    const { changes: six } = await next("IPv6");
    let four = await next("IPv4");
    const taints = [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }];
    upsertRaw(stateServer.store, rawNode("node2", { addresses: ["172.18.0.2", "fd00::2"], taints }));
    while (four.eligibility?.isEligible !== false) four = await next("IPv4", four.changes);
    // Not eligible with the addresses from before would be a node that never was.
    expect((await next("IPv6", six)).changes.node?.addresses).toEqual(["fd00::2"]);
  });

  test("links of two nodes that share a reader read once what both are told", async () => {
    const [stateServer] = await relayed();
    for (let index = 0; index < 3; index++) stateServer.service(index);
    // To a client alone nothing is sent packed.
    const others = [await stateServer.watch(), await stateServer.watch()];
    await eventually(() => stateServer.server?.stats.streams === others.length);
    const packed = new PackedReader();
    const stateOf = async (nodeName: string, shared?: PackedReader): Promise<ChangeSet> => {
      const link = untilTestEnds(new NodeLink({ target: stateServer.target, nodeName, settings: POD_SETTINGS, packed: shared }));
      return await link.feed("IPv4").next(never);
    };
    const [one, two, standalone] = [await stateOf("node1", packed), await stateOf("node2", packed), await stateOf("node3")];
    expect(one.set).toHaveLength(3);
    expect(two.set.map((row, at) => row === one.set[at])).toEqual([true, true, true]);
    expect(standalone.set.map((row, at) => row === one.set[at])).toEqual([false, false, false]);
  });

  test("a row that is equal on two nodes is held once: it is encoded once for both", async () => {
    const [stateServer, relay] = await relayed();
    // Of the third both nodes have a row of their own.
    for (const [index, node] of ["node9", "node9", "node1"].entries()) stateServer.service(index, node);
    const watchers = [await relay.watch({ nodeName: "node1" }), await relay.watch({ nodeName: "node2" })];
    for (const watcher of watchers) expect((await watcher.next()).changes.set).toHaveLength(3);
    expect(relay.server?.stats.rowsEncoded).toBe(4);
    stateServer.service(0, "node9", "10.1.9.9");
    for (const watcher of watchers)
      expect((await watcher.next()).changes).toMatchObject({ full: false, set: [{ key: "shop/s0:http/TCP" }] });
    expect(relay.server?.stats.rowsEncoded).toBe(5);
  });
});
