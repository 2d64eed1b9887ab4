import { once } from "node:events";
import { readFile, rename, writeFile } from "node:fs/promises";
import { connect as connectTcp, type Socket } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { fetchFullState, openNodeLink, type TlsFiles } from "@turnout/client";
import { openNodeStream, type NodeStream } from "@turnout/client/protocol";
import { createAuthority, type Authority } from "@turnout/lab";
import { POD_SETTINGS } from "@turnout/core/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { HANDSHAKES_MAX, PATIENCE_MS, REFUSED_STREAMS_MAX } from "../grpc/connection-gate.ts";
import { TestStateServer, testHello } from "../test-support/state-server.ts";
import { eventually, testDirectory } from "../test-support/world.ts";

const NOW = Date.now();
/** Node warns once a process, so whichever test comes first would hear it. */
const warnings: string[] = [];
process.on("warning", ({ message }) => warnings.push(message));
let stateServer: TestStateServer;
let directory: string;
let authority: Authority;

/** Write a side's files, each replaced in one step, as a rotation does. */
async function files(
  name: string,
  commonName: string,
  from: Authority = authority,
  trusts: Authority = authority,
  hosts: readonly string[] = ["127.0.0.1", "localhost"],
): Promise<TlsFiles> {
  const { cert, key } = from.issue({ commonName, hosts });
  const paths = { ca: join(directory, `${name}-ca.pem`), cert: join(directory, `${name}.pem`), key: join(directory, `${name}-key.pem`) };
  for (const [path, text] of [
    [paths.key, key],
    [paths.ca, trusts.cert],
    [paths.cert, cert],
  ] as const) {
    await writeFile(`${path}.new`, text);
    await rename(`${path}.new`, path);
  }
  return paths;
}

beforeEach(async () => {
  directory = await testDirectory();
  authority = createAuthority("node-state servers", NOW);
  const tls = await files("server", "stateServer");
  stateServer = await TestStateServer.start({ listen: ["tls://127.0.0.1:0"], tls, anyNode: ["relay"] });
  stateServer.service(1, "node1");
});

/** What a client with these files gets of a node: how many rows, or why not. */
async function ask(tls: TlsFiles, nodeName: string, target = `tls://127.0.0.1:${stateServer.server?.ports[0]}`): Promise<number | string> {
  const stop = new AbortController();
  let said = "";
  const note = (_message: string, fields: { readonly error?: unknown } = {}): void => {
    said = String(fields.error);
    stop.abort();
  };
  const quiet = (): void => undefined;
  const log = { debug: quiet, info: quiet, warn: note, error: note };
  try {
    const { families } = await fetchFullState(target, {
      nodeName,
      tls,
      settings: POD_SETTINGS,
      families: ["IPv4"],
      log,
      signal: stop.signal,
    });
    return families.get("IPv4")?.rows.size ?? -1;
  } catch (error) {
    return said === "" ? String(error) : said;
  }
}

/** What was said of clients that did not get in. */
function refused(): readonly Readonly<Record<string, unknown>>[] {
  const said = stateServer.log.lines.filter(({ line }) => line === "warn a client is refused, its TLS handshake failed");
  return said.map(({ fields }) => fields);
}

describe("a node-state server over mutual TLS", () => {
  test("answers a node's certificate for that node, and for no other", async () => {
    const tls = await files("node", "system:node:node1");
    expect(await ask(tls, "node1")).toBe(1);
    expect(await ask(tls, "node2")).toMatch(
      /\[permission_denied\].*certificate of "system:node:node1" may ask for node "node1" alone, not for this one: node node2/,
    );
  });

  test("answers those that may ask for any node", async () => {
    const tls = await files("relay", "relay");
    expect([await ask(tls, "node1"), await ask(tls, "node2")]).toEqual([1, 1]);
  });

  test.each(["node1", "system:node:", "system:node:node11", "system:nodes:node1", "Relay"])("does not answer %s", async (commonName) => {
    expect(await ask(await files("other", commonName), "node1")).toMatch(/\[permission_denied\]/);
  });

  test("does not talk to a certificate of another authority", async () => {
    const other = createAuthority("somebody", NOW);
    const tls = await files("foreign", "system:node:node1", other);
    expect(await ask(tls, "node1")).toMatch(/\[feed_lost\].*it may refuse our certificate, and its log says why/);
    expect(await ask(tls, "node1")).toMatch(/\[feed_lost\]/);
    expect(stateServer.server?.stats).toMatchObject({ questions: 0, streams: 0, bytes: 0 });
    expect(refused()).toEqual([{ reason: expect.stringMatching(/^its certificate: \w*(?:SELF_SIGNED|UNABLE)/) as string }]);
  });

  test("does not talk to somebody without a certificate", async () => {
    const socket = connect({ host: "127.0.0.1", port: stateServer.server?.ports[0], rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    socket.resume();
    await expect(once(socket, "close")).rejects.toThrow(/certificate required/);
    await eventually(() => refused().length === 1);
    expect(refused()).toMatchObject([{ reason: expect.stringContaining("did not return a certificate") as string }]);
    expect(stateServer.server?.stats.streams).toBe(0);
  });

  test("is not believed by a client that trusts another authority", async () => {
    const other = createAuthority("somebody", NOW);
    expect(await ask(await files("careful", "system:node:node1", authority, other), "node1")).toMatch(/\[feed_lost\]/);
    expect(stateServer.server?.stats.questions).toBe(0);
  });

  test("uses a certificate that was rotated, from the next connection on, and keeps the last good one", async () => {
    const next = createAuthority("the next ones", NOW);
    await files("server", "stateServer", next, next);
    const tls = await files("node", "system:node:node1", next, next);
    expect(await ask(tls, "node1")).toBe(1);
    expect(stateServer.log.of("info")).toContain("info new certificates are in use");
    await writeFile(join(directory, "server.pem"), "half a certi");
    expect(await ask(tls, "node1")).toBe(1);
    expect(stateServer.log.of("warn")).toEqual(["warn changed certificates can't be used, the last good ones stay"]);
  });

  test.each(["", "half an authori"])("keeps its authority while the file says %j", async (text) => {
    await writeFile(join(directory, "server-ca.pem"), text);
    expect(await ask(await files("node", "system:node:node1"), "node1")).toBe(1);
    expect(stateServer.log.of("warn")).toEqual(["warn changed certificates can't be used, the last good ones stay"]);
  });

  test("is checked by its address when it is asked at one, and nothing warns of that", async () => {
    const tls = await files("node", "system:node:node1");
    expect(await ask(tls, "node1")).toBe(1);
    await files("server", "stateServer", authority, authority, ["localhost", "127.0.0.2"]);
    expect(await ask(tls, "node1")).toMatch(/\[feed_lost\].*IP: 127\.0\.0\.1 is not in the cert's list/);
    expect(await ask(tls, "node1", `tls://localhost:${stateServer.server?.ports[0]}`)).toBe(1);
    expect(warnings).toEqual([]);
  });

  test("is found again by a client whose own certificate and authority were rotated too", async () => {
    const tls = await files("node", "system:node:node1");
    const port = stateServer.server?.ports[0];
    const link = await openNodeLink({ target: `tls://127.0.0.1:${port}`, nodeName: "node1", tls, settings: POD_SETTINGS });
    const feed = link.feed("IPv4");
    const never = new AbortController().signal;
    expect((await feed.next(never)).set).toHaveLength(1);
    const next = createAuthority("the next ones", NOW);
    const serverTls = await files("server", "stateServer", next, next);
    await files("node", "system:node:node1", next, next);
    const following = feed.next(never);
    const first = stateServer.server;
    await first?.close();
    await stateServer.serve({ listen: [`tls://127.0.0.1:${port}`], tls: serverTls });
    stateServer.service(2, "node1");
    expect((await following).set).toHaveLength(2);
    await eventually(() => stateServer.server?.stats.streams === 1);
    await link.close();
  });

  test("gives one certificate its share of streams and no more, whatever it does, and others theirs", async () => {
    await stateServer.server?.close();
    const server = await files("server", "stateServer");
    await stateServer.serve({ listen: ["tls://127.0.0.1:0"], tls: server, limits: { streamsMax: 20, streamsOfClientMax: 4 } });
    const target = `tls://127.0.0.1:${stateServer.server?.ports[0]}`;
    const streams: NodeStream[] = [];
    const open = async (tls: TlsFiles, nodeName?: string): Promise<void> => {
      const stream = await openNodeStream(target, () => undefined, tls);
      streams.push(stream);
      if (nodeName !== undefined) stream.send({ request: { $case: "hello", value: testHello({ nodeName }) } });
    };
    const [node1, node2, unowned] = [
      await files("node1", "system:node:node1"),
      await files("node2", "system:node:node2"),
      await files("stranger", "stranger"),
    ];
    for (let stream = 0; stream < 30; stream++) {
      await open(node1, "node1");
      await open(unowned);
    }
    let ended = 0;
    for (const stream of streams) void stream.ended.then(() => (ended += 1));
    // Each has eight connections at a time, of which four find no stream; more are closed.
    await eventually(() => ended === 52);
    expect(stateServer.server?.stats).toMatchObject({ streams: 4, silentStreams: 4 });
    expect(await ask(node1, "node1", target)).toMatch(
      /there are 4 streams already, and no more at a time: the certificate of "system:node:node1": let the others end/,
    );
    expect(await ask(node2, "node2", target)).toBe(1);
    expect(stateServer.log.of("warn").filter((line) => line.includes("more streams than one client may have"))).toHaveLength(2);
    for (const stream of streams) stream.cancel();
    await eventually(() => stateServer.server?.stats.streams === 0);
    expect(await ask(node1, "node1", target)).toBe(1);
  });

  test("closes connections that never finish their handshake, and lets others in meanwhile", async () => {
    await stateServer.server?.close();
    await stateServer.serve({ listen: ["tls://127.0.0.1:0"], tls: await files("server", "stateServer"), limits: { handshakeMs: 300 } });
    const port = stateServer.server?.ports[0] ?? 0;
    const silent = Array.from({ length: 50 }, () => connectTcp(port, "127.0.0.1"));
    await Promise.all(silent.map((socket) => once(socket, "connect")));
    const closed = Promise.all(silent.map((socket) => once(socket.resume(), "close")));
    expect(await ask(await files("node", "system:node:node1"), "node1", `tls://127.0.0.1:${port}`)).toBe(1);
    await closed;
  });

  test("gives one certificate its share of connections and no more", async () => {
    await stateServer.server?.close();
    await stateServer.serve({
      listen: ["tls://127.0.0.1:0"],
      tls: await files("server", "stateServer"),
      limits: { streamsOfClientMax: 4 },
    });
    const port = stateServer.server?.ports[0] ?? 0;
    const { ca, cert, key } = await files("node", "system:node:node1");
    const [caText, certText, keyText] = await Promise.all([ca, cert, key].map((path) => readFile(path, "utf8")));
    const sockets = Array.from({ length: 20 }, () =>
      connect({ port, host: "127.0.0.1", ca: caText, cert: certText, key: keyText, ALPNProtocols: ["h2"] })
        .on("error", () => undefined)
        .resume(),
    );
    await eventually(() => sockets.filter((socket) => socket.destroyed).length === 12);
    expect(stateServer.log.of("warn").some((line) => line.includes("more connections than one certificate may have"))).toBe(true);
    for (const socket of sockets) socket.destroy();
    await eventually(() => sockets.every((socket) => socket.closed));
    expect(await ask({ ca, cert, key }, "node1", `tls://127.0.0.1:${port}`)).toBe(1);
  });

  test("has an address wait whose handshakes take long or fail, and refuses more of it before TLS", async () => {
    const port = stateServer.server?.ports[0] ?? 0;
    const node1 = await files("node", "system:node:node1");
    const come = (count: number): readonly Socket[] =>
      Array.from({ length: count }, () =>
        connectTcp(port, "127.0.0.1")
          .on("error", () => undefined)
          .resume(),
      );
    const silent = come(HANDSHAKES_MAX);
    await Promise.all(silent.map((socket) => once(socket, "connect")));
    let answer: number | string | undefined;
    void ask(node1, "node1").then((one) => (answer = one));
    // Those that said nothing for a while make room, a few at a time.
    await eventually(() => {
      stateServer.clock.advance(PATIENCE_MS);
      return answer !== undefined;
    });
    expect(answer).toBe(1);
    const more = come(2 * HANDSHAKES_MAX + 1);
    await eventually(() => stateServer.log.of("warn").some((line) => line.includes("refused before their handshake")));
    for (const socket of [...silent, ...more]) socket.destroy();
  });

  test("closes the connections of a client that asks again and again for streams that it can't have, and of no other", async () => {
    const target = `tls://127.0.0.1:${stateServer.server?.ports[0]}`;
    const [node1, node2] = [await files("node1", "system:node:node1"), await files("node2", "system:node:node2")];
    const streams: NodeStream[] = [];
    const open = async (tls: TlsFiles): Promise<void> => void streams.push(await openNodeStream(target, () => undefined, tls));
    for (let stream = 0; stream < 16; stream++) await open(node1);
    await open(node2);
    await eventually(() => stateServer.server?.stats.silentStreams === 17);
    const first = Promise.all(streams.slice(0, 16).map((stream) => stream.ended));
    for (let again = 0; again < REFUSED_STREAMS_MAX; again++) {
      await open(node1);
      await streams.at(-1)?.ended;
    }
    await first;
    expect(stateServer.server?.stats.silentStreams).toBe(1);
    for (const stream of streams) stream.cancel();
  });

  test("says what is missing", async () => {
    const tls = await files("node", "system:node:node1");
    await expect(fetchFullState("tls://127.0.0.1:1", { nodeName: "node1" })).rejects.toThrow(
      /^\[invalid_object\] a target over TLS needs certificates/,
    );
    await expect(fetchFullState("tls://127.0.0.1:1", { nodeName: "node1", tls: { ...tls, key: "/no/such" } })).rejects.toThrow(
      /^\[invalid_object\] a file for TLS can't be read/,
    );
    const other = await files("other", "system:node:node1");
    await expect(fetchFullState("tls://127.0.0.1:1", { nodeName: "node1", tls: { ...tls, key: other.key } })).rejects.toThrow(
      /^\[invalid_object\] the certificates can't be used.*key/,
    );
    await writeFile(join(directory, "empty.pem"), "");
    await expect(
      fetchFullState("tls://127.0.0.1:1", { nodeName: "node1", tls: { ...tls, ca: join(directory, "empty.pem") } }),
    ).rejects.toThrow(/^\[invalid_object\] the certificates can't be used/);
    await expect(stateServer.serve({ listen: ["tls://127.0.0.1:0"] })).rejects.toThrow(
      /^\[invalid_object\] listening on TLS needs certificates/,
    );
    await expect(stateServer.serve({ listen: ["tls://127.0.0.1:0"], tls: { ...tls, cert: "/no/such" } })).rejects.toThrow(
      /certificates can't be used/,
    );
    const taken = [`tls://127.0.0.1:${stateServer.server?.ports[0]}`];
    await expect(stateServer.serve({ listen: taken, tls })).rejects.toThrow(/^\[already_exists\] the port can't be listened on/);
  });

  test("listens on a unix socket beside it", async () => {
    const tls = await files("server", "stateServer");
    const first = stateServer.server;
    await stateServer.serve({ listen: [stateServer.target, "tls://127.0.0.1:0"], tls });
    expect(stateServer.server?.ports).toHaveLength(1);
    expect((await (await stateServer.watch({ nodeName: "anybody" })).next()).changes.full).toBe(true);
    expect(await ask(await files("node", "system:node:node1"), "node1")).toBe(1);
    await first?.close();
  });
});
