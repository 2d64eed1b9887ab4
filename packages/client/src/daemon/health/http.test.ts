import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text as textOf } from "node:stream/consumers";
import type { Clock, ProxyError } from "@turnout/core";
import { systemClock } from "@turnout/core/process";
import { afterEach, describe, expect, test, vi } from "vitest";
import { eventually, ToyClock, ToyLog } from "../../test-support/toys.ts";
import { CONNECTIONS_MAX, HttpConnections } from "./http-connections.ts";
import { listen, routes, serveHttp, type Handler, type HttpServer } from "./http.ts";

const open: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((server) => server.close()));
});

async function start(handler: Handler, log: ToyLog = new ToyLog(), clock: Clock = new ToyClock()): Promise<string> {
  const server = await listen({ ip: "127.0.0.1", port: 0 }, handler, { clock, log });
  open.push(server);
  return `http://127.0.0.1:${server.port}`;
}

/** What a server answers to these bytes. */
async function answerTo(url: string, bytes: string): Promise<string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(bytes));
  return await textOf(socket);
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
    const clock = new ToyClock();
    const url = await start(() => OK, new ToyLog(), clock);
    const slow = connect(Number(new URL(url).port), "127.0.0.1", () => slow.write("GET / HTTP/1.1\r\nX-Slow: "));
    await eventually("the connection is there", () => open[0]?.connections === 1);
    void clock.advance(5_000);
    await once(slow.resume(), "close");
    expect(slow.destroyed).toBe(true);
  });

  test("a client that goes on sending after its request loses its connection", async () => {
    const url = await start(() => new Promise(() => undefined));
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () =>
      socket.write(`POST / HTTP/1.1\r\nHost: a\r\n\r\n${"x".repeat(1_000_000)}`),
    );
    socket.resume().on("error", () => undefined);
    await new Promise((resolve) => socket.once("close", resolve));
    expect(socket.bytesRead).toBe(0);
    await eventually("the server has closed it", () => open[0]?.connections === 0);
  });

  test("a client that stays after its answer loses its connection", async () => {
    const clock = new ToyClock();
    const url = await start(() => OK, new ToyLog(), clock);
    const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1", allowHalfOpen: true }, () =>
      socket.write("GET / HTTP/1.0\r\n\r\n"),
    );
    await once(socket.resume(), "end");
    expect(open[0]?.connections).toBe(1);
    await clock.advance(2_000);
    await eventually("it is closed", () => open[0]?.connections === 0);
    socket.destroy();
  });

  test("a client that leaves while it waits for its turn is not answered", async () => {
    const [clock, asked] = [new ToyClock(), new Array<string>()];
    const handler: Handler = (path) => (asked.push(path) === 1 ? new Promise(() => undefined) : OK);
    const port = Number(new URL(await start(handler, new ToyLog(), clock)).port);
    const ask = (path: string): Socket => {
      const socket: Socket = connect(port, "127.0.0.1", () => socket.write(`GET ${path} HTTP/1.0\r\n\r\n`));
      return socket;
    };
    ask("/slow");
    await eventually("the slow one is asked for", () => asked.length === 1);
    const left = ask("/left");
    await eventually("it waits", () => open[0]?.connections === 2);
    await clock.advance(0);
    left.resetAndDestroy();
    await eventually("it has left", () => open[0]?.connections === 1);
    await clock.advance(3_000);
    expect(asked).toEqual(["/slow"]);
  });

  test("a connection is answered one request, whatever follows it unasked", async () => {
    let asked = 0;
    const url = await start(() => {
      asked += 1;
      return OK;
    });
    const answer = await answerTo(url, "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2_000));
    expect([asked, answer.match(/HTTP\/1\.1 200 OK/g)?.length, answer.includes("Connection: close")]).toEqual([1, 1, true]);
  });

  test.each([
    ["no HTTP", "SSH-2.0-OpenSSH_9.2\r\n\r\n"],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["no host", "GET / HTTP/1.1\r\n\r\n"],
    ["two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"],
    ["a line that is no header", "GET / HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n"],
  ])("a request with %s is refused", async (_name, bytes) => {
    const url = await start(() => OK);
    expect(await answerTo(url, bytes)).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  });

  test("a client of HTTP/1.0 that ends its side at once is answered", async () => {
    const url = await start(() => OK);
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.end("GET /livez HTTP/1.0\r\n\r\n"));
    expect(await textOf(socket)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*fine$/s);
  });

  test("a client that asks a lot waits, and others, of other servers too, are answered within the share of the time", async () => {
    const [clock, log] = [new ToyClock(), new ToyLog()];
    const connections = new HttpConnections({ clock, log });
    const answered: string[] = [];
    const urls: string[] = [];
    for (const ip of ["127.0.0.1", "127.0.0.2"]) {
      const handler: Handler = (_path, { remoteAddress }) => {
        answered.push(remoteAddress);
        // A large answer: half of what may be saved up.
        clock.nowMs = (
          (before) => () =>
            before + 50
        )(clock.nowMs());
        return OK;
      };
      const server = await listen({ ip, port: 0 }, handler, { clock, log, connections });
      open.push(server);
      urls.push(`${ip}:${server.port}`);
    }
    const ask = (at: string | undefined, from: string): void => {
      const [host, port] = (at ?? "").split(":");
      const socket = connect({ host, port: Number(port), localAddress: from }, () => socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
      socket.resume();
    };
    for (let again = 0; again < 20; again++) ask(urls[0], "127.0.0.3");
    await eventually("what was saved up is spent", () => answered.length === 3 && open[0]?.connections === 17);
    ask(urls[1], "127.0.0.4");
    await eventually("the other client is there", () => open[1]?.connections === 1);
    while (answered.length < 5) {
      clock.nowMs = (
        (before) => () =>
          before + 10
      )(clock.nowMs());
      await clock.advance(10);
    }
    expect(answered.slice(3)).toContain("127.0.0.4");
  });

  /** Connect again and again, each time sending the beginning of something; returns how to stop. */
  function comeBack(url: string, text: string, clients: number, localAddress: string): () => void {
    const port = Number(new URL(url).port);
    const sockets = new Set<Socket>();
    let isOver = false;
    const come = (): void => {
      if (isOver) return;
      const socket = connect({ port, host: "127.0.0.1", localAddress }, () => socket.write(text));
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
    ["send half a request", "GET / HTTP/1.1\r\nX-Slow: ", "127.0.0.1"],
    ["send nothing", "", "127.0.0.1"],
    ["ask as fast as they can, at another address,", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "127.0.0.2"],
  ])("clients that %s and come back keep nobody out, and take no more than the bound", async (_name, text, from) => {
    const log = new ToyLog();
    let laterMs = 0;
    const real = systemClock();
    const clock = { ...real, nowMs: () => real.nowMs() + laterMs };
    const url = await start(() => OK, log, clock);
    const stop = comeBack(url, text, CONNECTIONS_MAX + 100, from);
    try {
      await eventually("more connections than the bound", () => log.lines.length > 0);
      for (let probe = 0; probe < 25; probe++) {
        expect(await (await fetch(url, { headers: { Connection: "close" } })).text()).toBe("fine");
        expect(open[0]?.connections).toBeLessThanOrEqual(CONNECTIONS_MAX + 1);
      }
      expect(log.lines).toHaveLength(1);
      expect(log.lines[0]).toMatch(/^warn too many connections: .* address=127\.0\.0\.1:0 most=512 closed=1 /);
      laterMs = 60_000;
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
    return { port: server.port, free: () => server.close() };
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
