import { systemClock } from "@turnout/core/process";
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { fetchFullState, watchFullState, watchNodeState } from "@turnout/client";
import { NodeLink } from "@turnout/client/protocol";
import { applyChangeSet, type ChangeSet, type Feed, type ServicePort } from "@turnout/core";
import { POD_SETTINGS, rawNode, upsertRaw } from "@turnout/core/testing";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { TestStateServer } from "../test-support/state-server.ts";
import { eventually, RecordingLog, untilTestEnds } from "../test-support/world.ts";
import { createRelayProvider } from "./node-state-provider.ts";

let stateServer: TestStateServer;

beforeEach(async () => {
  stateServer = await TestStateServer.start();
  for (let index = 0; index < 10; index++) stateServer.service(index);
});

/** Someone who applies what a feed gives. */
class Follower {
  rows: ReadonlyMap<string, ServicePort> = new Map();
  readonly heard: ChangeSet[] = [];
  readonly log: RecordingLog = new RecordingLog();
  readonly link: NodeLink;
  readonly #feed: Feed;

  constructor(target: string) {
    this.link = untilTestEnds(new NodeLink({ target, nodeName: "node1", settings: POD_SETTINGS, log: this.log, random: () => 0 }));
    this.#feed = this.link.feed("IPv4");
  }

  async receive(signal: AbortSignal = new AbortController().signal): Promise<ChangeSet> {
    const changes = await this.#feed.next(signal);
    this.rows = applyChangeSet(this.rows, changes);
    this.heard.push(changes);
    return changes;
  }
}

/** A socket in front of a node-state server's, whose connections a test can cut. */
class CuttableWire {
  readonly target: string;
  readonly #sockets = new Set<Socket>();

  private constructor(target: string) {
    this.target = target;
  }

  static async lay({ target }: TestStateServer): Promise<CuttableWire> {
    const wire = new CuttableWire(`${target}.cut`);
    const server = createServer((near) => {
      const far = connect(target.slice("unix://".length));
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        wire.#sockets.add(socket);
        socket.on("error", () => undefined);
        socket.pipe(other);
      }
    });
    server.listen(wire.target.slice("unix://".length));
    await once(server, "listening");
    onTestFinished(() => {
      wire.cut();
      server.close();
    });
    return wire;
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#sockets.clear();
  }
}

describe("a client whose connection breaks", () => {
  test("goes on from where it was, for the price of what changed", async () => {
    const follower = new Follower(stateServer.target);
    await follower.receive();
    await stateServer.server?.close();
    stateServer.service(3, "node9", "10.1.9.9");
    const next = follower.receive();
    await eventually(() => follower.log.of("warn").length === 1);
    expect(follower.log.of("warn")).toEqual(["warn the node-state API is away, rules stay as they are; trying again"]);
    await stateServer.serve();
    // Another server object has another history: this is the node-state server that was started again.
    expect(await next).toMatchObject({ full: true });
    expect(follower.rows.get("shop/s3:http/TCP")?.endpoints[0]?.ip).toBe("10.1.9.9");
    expect(follower.log.of("info")).toHaveLength(2);
  });

  test("by a wire that was cut, with the node-state server alive, resumes with one small difference", async () => {
    const wire = await CuttableWire.lay(stateServer);
    const follower = new Follower(wire.target);
    await follower.receive();
    wire.cut();
    await eventually(() => follower.log.of("warn").length === 1);
    stateServer.service(4, "node9", "10.1.9.9");
    expect(await follower.receive()).toMatchObject({ full: false, set: [{ key: "shop/s4:http/TCP" }] });
    expect(follower.heard[1]?.instance).toBe(follower.heard[0]?.instance);
    // With nothing new it costs nothing at all.
    const none = follower.receive();
    wire.cut();
    await eventually(() => follower.log.of("info").length === 3);
    stateServer.service(5, "node9", "10.1.9.9");
    expect(await none).toMatchObject({ full: false, set: [{ key: "shop/s5:http/TCP" }] });
    expect(follower.heard).toHaveLength(3);
  });

  test("waits while the socket's file is gone, and finds it when it is back", async () => {
    const follower = new Follower(stateServer.target);
    await follower.receive();
    await rm(stateServer.target.slice("unix://".length));
    await stateServer.server?.close();
    const next = follower.receive();
    await eventually(() => follower.log.of("debug").length > 1);
    expect(follower.log.of("warn")).toHaveLength(1);
    stateServer.store.remove("Service", "shop", "s0");
    await stateServer.serve();
    await next;
    expect(follower.rows.size).toBe(9);
  });

  test("that stops waiting loses nothing: what came too late comes next time", async () => {
    const follower = new Follower(stateServer.target);
    await follower.receive();
    const stop = new AbortController();
    const given = follower.receive(stop.signal);
    stop.abort();
    await expect(given).rejects.toThrow(/^\[canceled\]/);
    stateServer.service(5, "node9", "10.1.9.9");
    await follower.receive();
    expect(follower.rows.get("shop/s5:http/TCP")?.endpoints[0]?.ip).toBe("10.1.9.9");
  });
});

describe("the ways to follow a node", () => {
  const options = { nodeName: "node1", settings: POD_SETTINGS };

  test("watchNodeState gives each family its first state and then the changes, and ends with its loop", async () => {
    const seen: string[] = [];
    for await (const { family, full, set } of watchNodeState(stateServer.target, options)) {
      seen.push(`${family} ${full ? "full" : "change"} ${set.length}`);
      if (seen.length === 2) stateServer.service(1, "node9", "10.1.9.9");
      if (seen.length === 3) break;
    }
    expect(seen.slice(0, 2).toSorted()).toEqual(["IPv4 full 10", "IPv6 full 0"]);
    expect(seen[2]).toBe("IPv4 change 1");
    await eventually(() => stateServer.server?.stats.streams === 0);
  });

  test("watchNodeState ends without an error when its signal aborts", async () => {
    const stop = new AbortController();
    const seen: ChangeSet[] = [];
    for await (const changes of watchNodeState(stateServer.target, { ...options, families: ["IPv4"], signal: stop.signal })) {
      seen.push(changes);
      stop.abort();
    }
    expect(seen).toHaveLength(1);
  });

  test("watchFullState gives whole states, which stay as they are", async () => {
    const states = watchFullState(stateServer.target, options);
    const first = (await states.next()).value!;
    stateServer.store.remove("Service", "shop", "s0");
    const second = (await states.next()).value!;
    expect([first, second].map(({ revision, families }) => [revision, families.get("IPv4")?.rows.size, families.size])).toEqual([
      [1, 10, 2],
      [2, 9, 2],
    ]);
    await states.return();
  });

  test("fetchFullState gives one and lets go", async () => {
    const { families } = await fetchFullState(stateServer.target, options);
    expect(families.get("IPv4")?.rows.size).toBe(10);
    expect(families.get("IPv6")?.node.name).toBe("node1");
    await eventually(() => stateServer.server?.stats.streams === 0);
  });
});

describe("a node-state server behind a node-state server", () => {
  test("answers for any node, and survives the first one's restart with a small difference for its own watchers", async () => {
    const log = new RecordingLog();
    const provider = createRelayProvider({
      target: stateServer.target,
      version: "relay",
      clock: systemClock(),
      log,
    });
    const relay = await TestStateServer.start({ provider });
    upsertRaw(stateServer.store, rawNode("node1", { addresses: ["172.18.0.9"] }));
    const watcher = await relay.watch();
    const { changes: first, eligibility } = await watcher.next();
    expect(first).toMatchObject({ full: true, node: { addresses: ["172.18.0.9"] } });
    expect(first.set).toHaveLength(10);
    expect(eligibility?.isEligible).toBe(true);
    await stateServer.server?.close();
    stateServer.service(3, "node9", "10.1.9.9");
    await stateServer.serve();
    const { changes } = await watcher.next();
    expect(changes).toMatchObject({ full: false, set: [{ key: "shop/s3:http/TCP" }] });
  });
});
