import { once } from "node:events";
import { connect, type AddressInfo, type Socket } from "node:net";
import { promisify } from "node:util";
import type { Server } from "node:http";
import type { ProxyError } from "@turnout/core";
import { afterEach, describe, expect, test, vi } from "vitest";
import { eventually, ToyClock, ToyLog } from "../../test-support/toys.ts";
import { CONNECTIONS_MAX } from "./connection-bound.ts";
import { closeServer, listen, routes, serveHttp, type Handler } from "./http.ts";

const open: Server[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map(closeServer));
});

async function start(handler: Handler, log: ToyLog = new ToyLog(), clock: ToyClock = new ToyClock()): Promise<string> {
  const server = await listen({ ip: "127.0.0.1", port: 0 }, handler, { clock, log });
  open.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const OK = { status: 200, headers: { "X-Test": "1" }, body: "fine" };

describe("listen", () => {
  test("answers, without the query in the path", async () => {
    const paths: string[] = [];
    const url = await start((path) => {
      paths.push(path);
      return OK;
    });
    const response = await fetch(`${url}/healthz?verbose=1`);
    expect([response.status, response.headers.get("x-test"), await response.text()]).toEqual([200, "1", "fine"]);
    expect(paths).toEqual(["/healthz"]);
  });

  test("HEAD has headers and no body, a POST's body is thrown away", async () => {
    const url = await start(() => OK);
    const head = await fetch(url, { method: "HEAD" });
    expect([head.headers.get("content-length"), await head.text()]).toEqual(["4", ""]);
    expect(await (await fetch(url, { method: "POST", body: "x".repeat(100_000) })).text()).toBe("fine");
  });

  test("a handler that fails is a 500 and a log line, not the end", async () => {
    const log = new ToyLog();
    const url = await start(() => Promise.reject(new Error("boom")), log);
    expect((await fetch(url)).status).toBe(500);
    expect((await fetch(url)).status).toBe(500);
    expect(log.lines[0]).toContain("boom");
  });

  test("a header that is too long is refused", async () => {
    const url = await start(() => OK);
    expect((await fetch(url, { headers: { "X-Long": "a".repeat(10_000) } })).status).toBe(431);
  });

  test("a client that never finishes its request loses its connection", async () => {
    const url = await start(() => OK);
    const slow = connect(Number(new URL(url).port), "127.0.0.1", () => slow.write("GET / HTTP/1.1\r\nX-Slow: "));
    await once(slow.resume(), "close");
    expect(slow.destroyed).toBe(true);
  });

  /** Connect again and again, each time sending the beginning of something; returns how to stop. */
  function comeBack(url: string, text: string, clients: number): () => void {
    const port = Number(new URL(url).port);
    const sockets = new Set<Socket>();
    let isOver = false;
    const come = (): void => {
      if (isOver) return;
      const socket = connect(port, "127.0.0.1", () => socket.write(text));
      sockets.add(socket);
      // A connection that is closed from the other side may be reset.
      socket.resume().on("error", () => undefined);
      socket.once("close", () => {
        sockets.delete(socket);
        come();
      });
    };
    for (let client = 0; client < clients; client++) come();
    return () => {
      isOver = true;
      for (const socket of sockets) socket.destroy();
    };
  }

  test.each([
    ["send half a request", "GET / HTTP/1.1\r\nX-Slow: "],
    ["send nothing", ""],
    ["ask once and stay", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"],
  ])("clients that %s and come back keep nobody out, and take no more than the bound", async (_name, text) => {
    const [clock, log] = [new ToyClock(), new ToyLog()];
    const url = await start(() => OK, log, clock);
    const count = promisify((done: (error: Error | null, count: number) => void) => void open[0]?.getConnections(done));
    const stop = comeBack(url, text, CONNECTIONS_MAX + 100);
    try {
      await eventually("more connections than the bound", () => log.lines.length > 0);
      for (let probe = 0; probe < 25; probe++) {
        expect(await (await fetch(url, { headers: { Connection: "close" } })).text()).toBe("fine");
        expect(await count()).toBeLessThanOrEqual(CONNECTIONS_MAX + 1);
      }
      expect(log.lines).toHaveLength(1);
      expect(log.lines[0]).toMatch(/^warn too many connections: .* address=127\.0\.0\.1:0 most=512 closed=1 /);
      await clock.advance(60_000);
      await eventually("the next line", () => log.lines.length > 1);
    } finally {
      stop();
    }
  });

  test("nothing of a request is in the answer", async () => {
    const url = await start(routes({ "/healthz": () => OK }));
    const headers = { "X-Mine": "<script>mine</script>", Host: "mine.example", Origin: "https://mine.example" };
    const response = await fetch(`${url}/<script>mine</script>?mine=1`, { method: "POST", headers, body: "mine" });
    const answer = `${JSON.stringify([...response.headers])} ${await response.text()}`;
    expect([response.status, answer.includes("mine"), answer.includes("script")]).toEqual([404, false, false]);
  });

  test.each([
    ["not ours", "192.0.2.1", "not_found", "see ip address"],
    ["in use", "127.0.0.1", "already_exists", "see who has it"],
  ])("an address that is %s", async (_name, ip, code, hint) => {
    const port = Number(new URL(await start(() => OK)).port);
    await expect(listen({ ip, port }, () => OK, { clock: new ToyClock(), log: new ToyLog() })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(new RegExp(`: ${ip}:${port}: ${hint}`)) as string,
    });
  });
});

test("routes: own paths only, not what every object has", async () => {
  const handler = routes({ "/a": () => OK });
  const asked = { method: "GET", accept: "", host: "", remoteAddress: "", query: new URLSearchParams() };
  expect((await handler("/a", asked)).status).toBe(200);
  expect((await handler("/constructor", asked)).status).toBe(404);
  expect((await handler("/", asked)).status).toBe(404);
});

describe("serveHttp", () => {
  async function takenPort(): Promise<{ port: number; free: () => Promise<void> }> {
    const server = await listen({ ip: "127.0.0.1", port: 0 }, () => OK, { clock: new ToyClock(), log: new ToyLog() });
    return { port: (server.address() as AddressInfo).port, free: () => closeServer(server) };
  }

  test("an address in use is reported once and tried again every 5 s", async () => {
    const { port, free } = await takenPort();
    const [clock, log, stop] = [new ToyClock(), new ToyLog(), new AbortController()];
    const onListenError = vi.fn<(error: ProxyError) => void>();
    const done = serveHttp(
      { name: "healthz", address: { ip: "127.0.0.1", port }, handler: () => OK, hardFail: false, onListenError, clock, log },
      stop.signal,
    );
    await eventually("the first report", () => log.lines.length > 0);
    await clock.advance(5_000);
    await clock.advance(5_000);
    await free();
    await eventually("listening after the address is free", async () => {
      await clock.advance(5_000);
      return log.lines.some((line) => line.startsWith("info serving healthz"));
    });
    expect(log.lines.filter((line) => line.startsWith("warn"))).toHaveLength(1);
    expect(onListenError.mock.calls).toMatchObject([[{ code: "already_exists", object: `127.0.0.1:${port}` }]]);
    const client = connect(port, "127.0.0.1");
    await once(client, "connect");
    stop.abort();
    await done;
    client.destroy();
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow("fetch failed");
  });

  test("with hardFail it is the end", async () => {
    const { port, free } = await takenPort();
    const serving = serveHttp(
      { name: "healthz", address: { ip: "127.0.0.1", port }, handler: () => OK, hardFail: true, clock: new ToyClock(), log: new ToyLog() },
      new AbortController().signal,
    );
    await expect(serving).rejects.toMatchObject({ code: "already_exists" });
    await free();
  });
});
