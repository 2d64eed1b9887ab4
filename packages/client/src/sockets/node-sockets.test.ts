import { spawn, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { freePort } from "../test-support/toys.ts";
import { createNodeSockets } from "./node-sockets.ts";
import type { ClientStream, JoinOptions, Listening, SocketAddress } from "./sockets.ts";

const sockets = createNodeSockets();
const LOOPBACK = "127.0.0.1";
const open: { destroy(): void }[] = [];

afterEach(() => {
  for (const one of open.splice(0)) one.destroy();
});

async function serve(onSocket: (socket: Socket) => void): Promise<SocketAddress & { readonly server: Server }> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => undefined);
    open.push(socket);
    onSocket(socket);
  }).listen(0, LOOPBACK);
  open.push({ destroy: () => server.close() });
  await once(server, "listening");
  return { ip: LOOPBACK, port: (server.address() as AddressInfo).port, server };
}

interface Proxy {
  readonly at: SocketAddress;
  readonly listening: Listening;
  /** Resolves when the next connection is over. */
  readonly over: Promise<void>;
}

/** A listener that joins whoever comes with one endpoint. */
async function proxyTo(endpoint: SocketAddress, options: Partial<JoinOptions> = {}): Promise<Proxy> {
  const at = { ip: LOOPBACK, port: await freePort() };
  const { promise: over, resolve } = Promise.withResolvers<void>();
  const onClient = (client: ClientStream): void => {
    const dialled = sockets.dial(endpoint, 5_000, {
      onOpen: () => void sockets.join(client, dialled, { head: undefined, idleMs: 0, onOver: resolve, ...options }),
      onFailure: () => client.reset(),
    });
  };
  const listening = sockets.listen(at, onClient, () => undefined);
  open.push({ destroy: () => listening.close() });
  await listening.opened;
  return { at, listening, over };
}

async function connectTo({ port }: SocketAddress): Promise<Socket> {
  const socket = connect({ host: LOOPBACK, port, allowHalfOpen: true });
  open.push(socket);
  await once(socket, "connect");
  return socket;
}

async function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe("two streams that are one connection", () => {
  it("carry what was sent before the endpoint was there, and a half-close both ways", async () => {
    const endpoint = await serve((socket) => void readAll(socket).then((sent) => socket.end(`got ${sent.toString()}`)));
    const { at, over } = await proxyTo(endpoint);
    const socket = await connectTo(at);
    socket.end("hello");
    expect((await readAll(socket)).toString()).toBe("got hello");
    await over;
  });

  it("let the endpoint finish first", async () => {
    const fromClient = Promise.withResolvers<string>();
    const endpoint = await serve((socket) => {
      socket.end("bye");
      void readAll(socket).then((sent) => fromClient.resolve(sent.toString()));
    });
    const { at, over } = await proxyTo(endpoint);
    const socket = await connectTo(at);
    expect((await readAll(socket)).toString()).toBe("bye");
    socket.end("and I still talk");
    expect(await fromClient.promise).toBe("and I still talk");
    await over;
  });

  it("hold a sender back while nobody reads", async () => {
    const taken = Promise.withResolvers<Socket>();
    const endpoint = await serve((socket) => taken.resolve(socket.pause()));
    const { at, over } = await proxyTo(endpoint);
    const socket = await connectTo(at);
    const megabyte = Buffer.alloc(1 << 20, 1);
    const total = 64;
    let written = 0;
    // Until the kernel's buffers and ours are full: what is written then stays with the sender.
    while (socket.write(megabyte) || (await isDrained(socket))) if (++written >= total) break;
    expect(written).toBeLessThan(total);
    const reader = await taken.promise;
    const read = readAll(reader);
    socket.end();
    expect((await read).length).toBe((written + 1) << 20);
    reader.end();
    socket.resume();
    await over;
  });

  it("pass a reset on, both ways", async () => {
    const taken = Promise.withResolvers<Socket>();
    const endpoint = await serve((socket) => taken.resolve(socket.resume()));
    const first = await proxyTo(endpoint);
    const socket = await connectTo(first.at);
    const served = await taken.promise;
    const reset = once(served, "error");
    socket.resetAndDestroy();
    expect(await reset).toMatchObject([{ code: "ECONNRESET" }]);
    await first.over;

    const second = await proxyTo(await serve((one) => one.once("data", () => one.resetAndDestroy())));
    const other = await connectTo(second.at);
    const refused = once(other, "error");
    other.write("x");
    expect(await refused).toMatchObject([{ code: "ECONNRESET" }]);
    await second.over;
  });

  it("write the head first", async () => {
    const endpoint = await serve((socket) => void readAll(socket).then((sent) => socket.end(sent)));
    const { at } = await proxyTo(endpoint, { head: Buffer.from("HEAD ") });
    const socket = await connectTo(at);
    socket.end("body");
    expect((await readAll(socket)).toString()).toBe("HEAD body");
  });

  it("are cut when nothing moves for long enough", async () => {
    const endpoint = await serve((socket) => socket.resume());
    const { at, over } = await proxyTo(endpoint, { idleMs: 50 });
    const socket = await connectTo(at);
    const cut = once(socket, "error");
    expect(await cut).toMatchObject([{ code: "ECONNRESET" }]);
    await over;
  });
});

/** Whether the socket takes more soon; false: it is held back. */
async function isDrained(socket: Socket): Promise<boolean> {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), 300);
  return await once(socket, "drain", { signal: stop.signal }).then(
    () => {
      clearTimeout(timer);
      return true;
    },
    () => false,
  );
}

describe("sockets that can't be", () => {
  it("say why", async () => {
    const { port, server } = await serve(() => undefined);
    const at = { ip: LOOPBACK, port };
    const ignore = (): void => undefined;
    await expect(sockets.listen(at, ignore, ignore).opened).rejects.toMatchObject({ code: "EADDRINUSE" });
    await expect(sockets.listen({ ip: "192.0.2.77", port }, ignore, ignore).opened).rejects.toMatchObject({ code: "EADDRNOTAVAIL" });
    await expect(sockets.bind({ ip: "192.0.2.77", port }, ignore, ignore).opened).rejects.toMatchObject({ code: "EADDRNOTAVAIL" });
    server.close();
    await once(server, "close");
    const failure = await new Promise<Error>((onFailure) => sockets.dial(at, 5_000, { onOpen: ignore, onFailure }));
    expect(failure).toMatchObject({ code: "ECONNREFUSED" });
  });
});

describe("an endpoint that says nothing", () => {
  it("is given up after the time it was given", async () => {
    // It never accepts: once its queue is full the kernel answers nobody.
    const script = `
      const server = require("node:net").createServer();
      server.listen({ host: "127.0.0.1", port: 0, backlog: 1 }, () => {
        require("node:fs").writeSync(1, String(server.address().port));
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
      });`;
    const child = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    open.push({ destroy: () => child.kill("SIGKILL") });
    const [said] = (await once(child.stdout, "data")) as [Buffer];
    const to = { ip: LOOPBACK, port: Number(said.toString()) };
    const dials = Array.from({ length: 6 }, () => {
      const { promise, resolve } = Promise.withResolvers<string>();
      const stream = sockets.dial(to, 200, { onOpen: () => resolve("open"), onFailure: ({ message }) => resolve(message) });
      open.push({ destroy: () => stream.abort() });
      return promise;
    });
    expect(new Set(await Promise.all(dials))).toEqual(new Set(["open", "no answer within 200 ms"]));
  });
});

describe("datagrams", () => {
  it("go to the endpoint and back, the first ones too", async () => {
    const echo = createSocket("udp4", (data, { port, address }) => echo.send(`echo ${data.toString()}`, port, address));
    await new Promise<void>((done) => echo.bind(0, LOOPBACK, done));
    const got: string[] = [];
    const two = Promise.withResolvers<void>();
    const isOpen = Promise.withResolvers<void>();
    const flow = sockets.connect(
      { ip: LOOPBACK, port: echo.address().port },
      {
        onOpen: () => isOpen.resolve(),
        onDatagram: (data) => {
          if (got.push(Buffer.from(data).toString()) === 2) two.resolve();
        },
        onFailure: (error) => two.reject(error),
      },
    );
    flow.send(Buffer.from("1"));
    await isOpen.promise;
    flow.send(Buffer.from("2"));
    await two.promise;
    expect(got).toEqual(["echo 1", "echo 2"]);
    flow.close();
    echo.close();
  });

  it("that the endpoint refuses end the flow", async () => {
    const port = await freePort();
    const failed = Promise.withResolvers<Error>();
    const flow = sockets.connect(
      { ip: LOOPBACK, port },
      { onOpen: () => undefined, onDatagram: () => undefined, onFailure: (error) => failed.resolve(error) },
    );
    flow.send(Buffer.from("x"));
    expect(await failed.promise).toMatchObject({ code: "ECONNREFUSED" });
    flow.close();
  });

  it("for a sender that named no port are lost", async () => {
    const port = sockets.bind(
      { ip: LOOPBACK, port: await freePort() },
      () => undefined,
      () => undefined,
    );
    await port.opened;
    expect(() => port.send(Buffer.from("x"), { ip: LOOPBACK, port: 0 })).not.toThrow();
    port.close();
  });

  it("that the system has no sockets for fail after the call", () => {
    const source = fileURLToPath(new URL("node-sockets.ts", import.meta.url));
    const script = `
      const { createNodeSockets } = await import(${JSON.stringify(source)});
      const sockets = createNodeSockets();
      const codes = [];
      for (let count = 0; count < 50; count++) {
        const flow = sockets.connect({ ip: "127.0.0.1", port: 9 }, {
          onOpen: () => undefined,
          onDatagram: () => undefined,
          onFailure: (error) => { codes.push(error.code); flow.close(); },
        });
      }
      await new Promise((done) => setImmediate(done));
      console.log(codes.length > 0 && codes.every((code) => code === "EMFILE"));
      process.exit();`;
    const command = `ulimit -n 40; exec "$0" --conditions=@turnout/source --input-type=module -e "$1"`;
    const { stdout, stderr } = spawnSync("sh", ["-c", command, process.execPath, script], { encoding: "utf8" });
    expect({ stdout, stderr }).toEqual({ stdout: "true\n", stderr: "" });
  });

  it.each(["127.0.0.1", "::1"])("are refused by the kernel at %s while the port is held, and taken afterwards", async (ip) => {
    const at = { ip, port: await freePort() };
    const taken = Promise.withResolvers<SocketAddress>();
    const port = sockets.bind(
      at,
      (_, from) => taken.resolve(from),
      () => undefined,
    );
    await port.opened;
    await port.setRefusing(true);
    const refused = Promise.withResolvers<Error>();
    const flow = sockets.connect(at, {
      onOpen: () => undefined,
      onDatagram: () => undefined,
      onFailure: (error) => refused.resolve(error),
    });
    flow.send(Buffer.from("x"));
    expect(await refused.promise).toMatchObject({ code: "ECONNREFUSED" });
    flow.close();
    await expect(
      sockets.bind(
        at,
        () => undefined,
        () => undefined,
      ).opened,
    ).rejects.toMatchObject({ code: "EADDRINUSE" });
    await port.setRefusing(false);
    const answered = Promise.withResolvers<string>();
    const client = sockets.connect(at, {
      onOpen: () => undefined,
      onDatagram: (data) => answered.resolve(Buffer.from(data).toString()),
      onFailure: (error) => answered.reject(error),
    });
    client.send(Buffer.from("x"));
    port.send(Buffer.from("heard"), await taken.promise);
    expect(await answered.promise).toBe("heard");
    client.close();
    port.close();
  });
});
