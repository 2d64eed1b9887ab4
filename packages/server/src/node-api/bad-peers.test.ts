import { once } from "node:events";
import { connect as http2Connect, type ClientHttp2Session, type ClientHttp2Stream } from "node:http2";
import { connect, type Socket } from "node:net";
import { WATCH_PATH, wire, wireSettings } from "@turnout/client/protocol";
import { POD_SETTINGS, rawService, rawSlice, upsertRaw } from "@turnout/core/testing";
import { describe, expect, test } from "vitest";
import { TestStateServer, testHello, type RawWatcher } from "../test-support/state-server.ts";
import { eventually } from "../test-support/world.ts";

let stateServer: TestStateServer;

function pathOf({ target }: TestStateServer): string {
  return target.slice("unix://".length);
}

/** What a stream was ended with. */
interface Refusal {
  readonly status: string | undefined;
  readonly message: string;
}

interface ManualStream {
  readonly socket: Socket;
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  /** Of a stream that was told nothing before. */
  readonly refusal: Promise<Refusal>;
}

/** Open a Watch stream without gRPC's help; it reads nothing until `refusal` is looked at. */
function openManually(): ManualStream {
  const socket = connect(pathOf(stateServer));
  socket.on("error", () => undefined);
  const session = http2Connect("http://localhost", { createConnection: () => socket });
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": WATCH_PATH, "content-type": "application/grpc", te: "trailers" });
  stream.on("error", () => undefined);
  const refusal = once(stream, "response").then((args: readonly unknown[]) => {
    const fields = args[0] as Readonly<Record<string, string>>;
    session.destroy();
    return { status: fields["grpc-status"], message: decodeURIComponent(fields["grpc-message"] ?? "") };
  });
  // Not every test looks at it.
  void Promise.allSettled([refusal]);
  return { socket, session, stream, refusal };
}

/** Why a watcher's stream ended. */
async function fate(watcher: RawWatcher): Promise<string> {
  return (await watcher.stream.ended).message;
}

async function stillServes(): Promise<void> {
  expect((await (await stateServer.watch()).next()).changes.full).toBe(true);
}

describe("a client that says nonsense is told so, and harms nobody", () => {
  const hellos: readonly [name: string, hello: Partial<wire.Hello>, reason: RegExp][] = [
    ["no node", { nodeName: "" }, /node_name is no name of a node: ""/],
    ["a node with a way out", { nodeName: "a}; flush ruleset" }, /no name of a node/],
    ["no settings", { settings: undefined }, /settings is missing: node node1/],
    ["settings that can't be", { settings: { ...wireSettings(POD_SETTINGS), masqueradeBit: 40 } }, /bit of the packet mark/],
    ["an address that is none", { bindAddress: "here" }, /bind_address is no canonical address: "here"/],
  ];
  test.each(hellos)("a hello with %s", async (_name, hello, reason) => {
    stateServer = await TestStateServer.start();
    const said = await fate(await stateServer.watch(hello));
    expect(said).toMatch(reason);
    expect(said).toMatch(/^\[invalid_object\]/);
    await stillServes();
  });

  test("a node that may not be asked for", async () => {
    stateServer = await TestStateServer.start({ onlyNode: "node2" });
    expect(await fate(await stateServer.watch())).toMatch(/^\[permission_denied\].*only node node2 may be asked for here: node node1/);
    const { changes } = await (await stateServer.watch({ nodeName: "node2" })).next();
    expect(changes.node?.name).toBe("node2");
  });

  const requests: readonly [name: string, send: (watcher: RawWatcher) => void, reason: RegExp][] = [
    ["a second hello", ({ stream }) => stream.send({ request: { $case: "hello", value: testHello() } }), /a second hello/],
    ["nothing at all", ({ stream }) => stream.send({ request: undefined }), /neither hello nor ask/],
    [
      "a family of the future",
      ({ stream }) => stream.send({ request: { $case: "ask", value: { family: 0, instance: "", revision: 0 } } }),
      /an IP family/,
    ],
    [
      "a message that is too large",
      ({ stream }) => stream.send({ request: { $case: "hello", value: testHello({ version: "v".repeat(70_000) }) } }),
      /larger than max.*65536/,
    ],
  ];
  test.each(requests)("%s", async (_name, send, reason) => {
    stateServer = await TestStateServer.start();
    const watcher = await stateServer.watch();
    send(watcher);
    expect(await fate(watcher)).toMatch(reason);
    await stillServes();
  });

  test("a second ask before the first is answered", async () => {
    stateServer = await TestStateServer.start({ isSynced: false });
    const watcher = await stateServer.watch();
    watcher.ask();
    watcher.ask();
    expect(await fate(watcher)).toMatch(/IPv4 was asked for again before the answer/);
  });

  test("silence: a stream without a hello is ended", async () => {
    stateServer = await TestStateServer.start();
    const { refusal } = openManually();
    await eventually(() => stateServer.server?.stats.silentStreams === 1);
    expect(stateServer.server?.stats.streams).toBe(0);
    stateServer.clock.advance(10_000);
    expect(await refusal).toEqual({ status: "4", message: "[timed_out] no first message came: it says whose state is wanted" });
    await eventually(() => stateServer.server?.stats.silentStreams === 0);
  });

  test("bytes that are no HTTP/2", async () => {
    stateServer = await TestStateServer.start();
    const socket = connect(pathOf(stateServer));
    socket.on("error", () => undefined);
    socket.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100));
    socket.resume();
    await once(socket, "close");
    expect((await (await stateServer.watch()).next()).changes.full).toBe(true);
  });

  test("bytes that are no message", async () => {
    stateServer = await TestStateServer.start();
    const { stream, refusal } = openManually();
    stream.write(Buffer.from([0, 0, 0, 0, 3, 0xff, 0xff, 0xff]));
    expect(await refusal).toMatchObject({ status: "3", message: expect.stringMatching(/no turnout\.node\.v1\.WatchRequest/) as string });
    await stillServes();
  });
});

describe("limits", () => {
  test("of streams for one node over a socket: one more is refused in a line on both ends, other nodes' are not, and one that goes makes room", async () => {
    stateServer = await TestStateServer.start({ limits: { streamsOfClientMax: 2 } });
    const first = await stateServer.watch();
    await stateServer.watch();
    await eventually(() => stateServer.server?.stats.streams === 2);
    for (let more = 0; more < 3; more++) {
      expect(await fate(await stateServer.watch())).toMatch(
        /there are 2 streams already, and no more at a time: the socket's clients for node node1: let the others end; serve --streams-per-client allows more/,
      );
    }
    expect(stateServer.log.of("warn")).toEqual([expect.stringContaining("more streams than one client may have are refused")]);
    expect((await (await stateServer.watch({ nodeName: "node2" })).next()).changes.full).toBe(true);
    first.stream.cancel();
    await eventually(() => stateServer.server?.stats.streams === 2);
    await stillServes();
  });

  test("of streams that say nothing: they take no room from those who say what they want", async () => {
    stateServer = await TestStateServer.start({ limits: { streamsMax: 2 } });
    const silent = Array.from({ length: 20 }, () => openManually());
    await eventually(() => stateServer.server?.stats.silentStreams === 20);
    await stillServes();
    expect(stateServer.server?.stats.refused.size).toBe(0);
    for (const { session } of silent) session.destroy();
    await eventually(() => stateServer.server?.stats.silentStreams === 0);
  });

  test("of streams: one more is refused, and one that goes makes room", async () => {
    stateServer = await TestStateServer.start({ limits: { streamsMax: 2 } });
    const [first] = [await stateServer.watch(), await stateServer.watch()];
    await eventually(() => stateServer.server?.stats.streams === 2);
    expect(await fate(await stateServer.watch())).toMatch(/serves 2 streams already, and no more at a time/);
    expect(stateServer.server?.stats.refused).toEqual(new Map([["RESOURCE_EXHAUSTED", 1]]));
    first.stream.cancel();
    await eventually(() => stateServer.server?.stats.streams === 1);
    await stillServes();
  });

  test("of requests: those nobody watches any more give way, the others don't", async () => {
    stateServer = await TestStateServer.start({ limits: { requestsMax: 2 } });
    const first = await stateServer.watch({ nodeName: "a" });
    await (await stateServer.watch({ nodeName: "b" })).next();
    await first.next();
    expect(await fate(await stateServer.watch({ nodeName: "c" }))).toMatch(/answers 2 requests already/);
    first.stream.cancel();
    await eventually(() => stateServer.server?.stats.streams === 1);
    expect((await (await stateServer.watch({ nodeName: "c" })).next()).changes.node?.name).toBe("c");
    expect(stateServer.server?.stats.questions).toBe(2);
  });
});

describe("a client that stops reading", () => {
  /** Opens a stream by hand that asks for everything and never reads the answer. */
  function openUnread(): { readonly destroy: () => void } {
    const { stream, session } = openManually();
    for (const request of [
      { $case: "hello" as const, value: testHello() },
      { $case: "ask" as const, value: { family: 1 as const, instance: "", revision: 0 } },
    ]) {
      const bytes = Buffer.from(wire.WatchRequest.encode({ request }).finish());
      const head = Buffer.alloc(5);
      head.writeUInt32BE(bytes.length, 1);
      stream.write(Buffer.concat([head, bytes]));
    }
    return { destroy: () => session.destroy() };
  }

  function fillLarge(services: number): void {
    const many = (slice: number): readonly { readonly ip: string; readonly node: string }[] =>
      Array.from({ length: 250 }, (_, index) => ({ ip: `10.${slice}.0.${index + 1}`, node: "node-with-a-rather-long-name" }));
    for (let index = 0; index < services; index++) {
      upsertRaw(stateServer.store, rawService(`s${index}`, { clusterIP: `10.96.${Math.floor(index / 250)}.${index % 250}` }));
      for (let slice = 0; slice < 4; slice++)
        upsertRaw(stateServer.store, rawSlice(`s${index}`, many(slice), { name: `s${index}-${slice}` }));
    }
  }

  test("holds one part of its answer, however much there is, and holds up nobody", async () => {
    stateServer = await TestStateServer.start();
    fillLarge(200);
    const unread = openUnread();
    await eventually(() => (stateServer.server?.stats.rowsEncoded ?? 0) > 0);
    const encodedAtFirst = async (): Promise<number> => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return stateServer.server?.stats.rowsEncoded ?? 0;
    };
    // 200 rows of 1,000 endpoints are 10 MB: two parts of 1 MiB are made, the rest is not.
    const encoded = await encodedAtFirst();
    expect(encoded).toBeLessThan(100);
    for (let update = 0; update < 200; update++) stateServer.service(300, "node9", `10.1.0.${update + 1}`);
    expect(await encodedAtFirst()).toBe(encoded);
    const reader = await stateServer.watch();
    expect((await reader.next()).changes.set).toHaveLength(201);
    unread.destroy();
    await eventually(() => stateServer.server?.stats.streams === 1);
  });

  test("and does not answer pings is gone after the keepalive's time", async () => {
    stateServer = await TestStateServer.start({ limits: { keepaliveMs: 100, keepaliveTimeoutMs: 200 } });
    const { socket, session } = openManually();
    await eventually(() => stateServer.server?.stats.silentStreams === 1);
    // From here on nobody reads what comes, as in a process that was stopped.
    // (HTTP/2 reads from the handle itself, so pausing the socket would do nothing.)
    (Reflect.get(socket, "_handle") as { readStop(): void }).readStop();
    await eventually(() => stateServer.server?.stats.silentStreams === 0);
    session.destroy();
    expect((await (await stateServer.watch()).next()).changes.full).toBe(true);
  });
});
