import { NodeLink } from "@turnout/client/protocol";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { credentials } from "@grpc/grpc-js";
import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "../link/paths.ts";
import { createAuthority } from "@turnout/lab";
import { describe, expect, test } from "vitest";
import { KpngWatcher } from "../test-support/kpng-watcher.ts";
import { eventually, testDirectory, TestStateServer } from "../test-support/state-server.ts";

let stateServer: TestStateServer;

describe("requests that make no sense", () => {
  test.each<[what: string, bytes: string, fate: RegExp]>([
    ["another node's", "0a056e6f646532", /^7 .*only node node1 may be asked for here/],
    ["garbage", "ffff", /^3 .*is no localv1.WatchReq/],
    ["a name that is none", "0a0361206200", /^3 /],
    ["more than fits", "0a".padEnd(140_000, "0"), /^8 /],
  ])("%s is refused", async (_what, hex, fate) => {
    stateServer = await TestStateServer.start({ onlyNode: "node1" });
    const watcher = stateServer.open();
    watcher.send(Buffer.from(hex, "hex"));
    expect(await watcher.fate()).toMatch(fate);
    const sound = stateServer.open();
    sound.ask("node1");
    expect(await sound.changes()).toEqual(["reset", "sync"]);
  });

  test("what is held for a node is let go when the stream asks for another, and when it ends", async () => {
    stateServer = await TestStateServer.start();
    stateServer.cart();
    const watcher = stateServer.open();
    watcher.ask("node1");
    await watcher.changes();
    watcher.ask("node2");
    await watcher.changes();
    expect(stateServer.server?.stats.kpngImages).toBe(1);
    watcher.close();
    await eventually(() => stateServer.server?.stats.kpngImages === 0);
  });

  test("more nodes than may be held are refused", async () => {
    stateServer = await TestStateServer.start({ limits: { kpngImagesMax: 1 } });
    const [first, second, third] = [stateServer.open(), stateServer.open(), stateServer.open()];
    first.ask("node1");
    await first.changes();
    second.ask("node2");
    expect(await second.fate()).toMatch(/^8 .*holds 1 nodes' states for kpng's protocols already.*: ask by turnout\.node\.v1/);
    // One more who asks for the same node costs next to nothing.
    third.ask("node1");
    expect(await third.changes()).toEqual(["reset", "sync"]);
    const link = new NodeLink({ target: stateServer.target, nodeName: "node3" });
    expect(await link.feed("IPv4").next(new AbortController().signal)).toMatchObject({ full: true });
    await link.close();
  });

  test("a stream that asks for nothing is ended", async () => {
    stateServer = await TestStateServer.start();
    const silent = stateServer.open();
    await eventually(() => stateServer.server?.stats.silentStreams === 1);
    await stateServer.clock.advance(10_000);
    expect(await silent.fate()).toMatch(/^4 .*no first message came/);
  });

  test("more streams than there may be are refused", async () => {
    stateServer = await TestStateServer.start({ limits: { streamsMax: 1 } });
    stateServer.open().ask("node1");
    await eventually(() => stateServer.server?.stats.streams === 1);
    const second = stateServer.open();
    second.ask("node1");
    expect(await second.fate()).toMatch(/^8 .*serves 1 streams already/);
  });
});

describe("over mutual TLS", () => {
  test("a certificate's node is what may be asked for, and what is meant without a name", async () => {
    const authority = createAuthority("node-state servers", Date.now());
    const directory = await testDirectory();
    const server = authority.issue({ commonName: "stateServer", hosts: ["localhost"] });
    const file = async (name: string, text: string): Promise<string> => {
      await writeFile(join(directory, name), text);
      return join(directory, name);
    };
    const tls = {
      ca: await file("ca.pem", authority.cert),
      cert: await file("cert.pem", server.cert),
      key: await file("key.pem", server.key),
    };
    stateServer = await TestStateServer.start({ listen: ["tls://127.0.0.1:0"], tls, anyNode: ["replica"] });
    stateServer.cart();
    const connect = (commonName: string, path: string): KpngWatcher => {
      const own = authority.issue({ commonName, hosts: [] });
      const channel = credentials.createSsl(Buffer.from(authority.cert), Buffer.from(own.key), Buffer.from(own.cert));
      return new KpngWatcher(`dns:localhost:${stateServer.server?.ports[0]}`, path, channel);
    };
    const node = connect("system:node:node2", LOCAL_WATCH_PATH);
    node.ask("");
    await node.changes();
    expect(localv1.Endpoint.decode(node.value("shop/cart/cart-b")).Local).toBe(true);
    node.ask("node1");
    expect(await node.fate()).toMatch(/^7 /);
    const greedy = connect("system:node:node2", GLOBAL_WATCH_PATH);
    greedy.askGlobal();
    expect(await greedy.fate()).toMatch(/^7 .*gives no right to ask for all nodes/);
    // Nobody's node is no way around that: it shows every Service.
    const noOne = connect("admin", LOCAL_WATCH_PATH);
    noOne.ask("");
    expect(await noOne.fate()).toMatch(/^7 .*"admin" gives no right to ask for all nodes/);
    const replica = connect("replica", GLOBAL_WATCH_PATH);
    replica.askGlobal();
    expect((await replica.changes()).length).toBe(5);
  });
});
