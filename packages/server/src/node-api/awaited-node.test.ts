import { setImmediate } from "node:timers/promises";
import { NO_NODE_KNOWN } from "@turnout/client";
import { NodeLink } from "@turnout/client/protocol";
import type { ChangeSet, Clock, Feed } from "@turnout/core";
import { POD_SETTINGS, rawNode, upsertRaw } from "@turnout/core/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { TestStateServer } from "../test-support/state-server.ts";
import { eventually, ManualClock, RecordingLog, untilTestEnds } from "../test-support/world.ts";
import { createRelayProvider, createStoreProvider } from "./node-state-provider.ts";
import { serveNodeState } from "./node-state-server.ts";

let stateServer: TestStateServer;
let log: RecordingLog;
const never = new AbortController().signal;

beforeEach(async () => {
  stateServer = await TestStateServer.start();
  log = new RecordingLog();
});

/** A node-state server whose source has Node objects, or not, beside the one every test has. */
async function serve(hasNodes: boolean): Promise<string> {
  const target = `${stateServer.target}.other`;
  const provider = createStoreProvider(stateServer.store, () => undefined, { hasNodes });
  const { clock } = stateServer;
  untilTestEnds(await serveNodeState({ provider, listen: [target], version: "test", clock, log: stateServer.log }));
  return target;
}

function follow(target: string, settings = POD_SETTINGS, clock?: Clock): readonly Feed[] {
  const link = untilTestEnds(new NodeLink({ target, nodeName: "node1", settings, log, awaitsNode: true, clock }));
  return [link.feed("IPv4"), link.feed("IPv6")];
}

async function isWaiting(): Promise<void> {
  await eventually(() => log.of("info").includes("info waiting for this node's Node object, rules stay as they are"));
}

function bothOf(feeds: readonly Feed[]): Promise<readonly ChangeSet[]> {
  return Promise.all(feeds.map((feed) => feed.next(never)));
}

describe("a process that programs", () => {
  test("waits for the Node object that a node-state server expects, and gets all at once with its addresses", async () => {
    stateServer.service(1);
    const states = bothOf(follow(await serve(true)));
    await isWaiting();
    stateServer.service(2);
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.1"] }));
    const [four, six] = await states;
    expect(four).toMatchObject({ full: true, node: { addresses: ["172.18.0.1"] }, delete: [] });
    expect(four?.set).toHaveLength(2);
    // Its family has no address, and is known all the same.
    expect(six).toMatchObject({ full: true, node: { addresses: [] } });
  });

  test("in mode NodeCIDR waits for pod CIDRs too", async () => {
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.1"] }));
    const states = bothOf(follow(await serve(true), { ...POD_SETTINGS, detectLocal: { mode: "NodeCIDR" } }));
    await isWaiting();
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.1"], podCIDRs: ["10.1.1.0/24"] }));
    expect((await states)[0]).toMatchObject({ node: { podCIDRs: ["10.1.1.0/24"] } });
  });

  test("waits half a minute at most, for Services matter more, and hears of the node when it is there", async () => {
    stateServer.service(1);
    const clock = new ManualClock();
    const feeds = follow(await serve(true), POD_SETTINGS, clock);
    let isLetThrough = false;
    const states = bothOf(feeds).finally(() => (isLetThrough = true));
    await isWaiting();
    clock.advance(29_999);
    stateServer.service(2);
    await setImmediate();
    expect([isLetThrough, log.of("warn")]).toEqual([false, []]);
    clock.advance(1);
    expect((await states)[0]).toMatchObject({ full: true, node: { addresses: [] } });
    expect(log.of("warn")).toEqual([`warn ${NO_NODE_KNOWN}`]);
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.1"] }));
    let changes = await feeds[0]?.next(never);
    while (changes?.node === undefined) changes = await feeds[0]?.next(never);
    expect(changes.node.addresses).toEqual(["172.18.0.1"]);
  });

  test("does not wait for a Node object that is gone: what it said last is still used", async () => {
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.1"] }));
    stateServer.store.remove("Node", "", "node1");
    expect((await bothOf(follow(await serve(true))))[0]).toMatchObject({ full: true, node: { addresses: ["172.18.0.1"] } });
  });

  test("does not wait where there need not be one", async () => {
    expect((await bothOf(follow(await serve(false))))[0]).toMatchObject({ full: true, node: { addresses: [] } });
  });

  test("waits behind a relay too", async () => {
    const relayTarget = `${stateServer.target}.relay`;
    const common = { version: "relay", clock: stateServer.clock, log: stateServer.log };
    const provider = createRelayProvider({ target: await serve(true), ...common });
    untilTestEnds(await serveNodeState({ provider, listen: [relayTarget], ...common }));
    const states = bothOf(follow(relayTarget));
    await isWaiting();
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.1"] }));
    expect((await states)[0]).toMatchObject({ full: true, node: { addresses: ["172.18.0.1"] } });
  });
});
