import { connect, createServer } from "node:net";
import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Harness } from "../line-channel.ts";

/** Where the server is, past every proxy. */
export const SERVER_PORT = 9_000;

/** The first byte of a connection says what the server is to do. */
const SINK = 0x53;
const ECHO = 0x45;
const CHUNK = Buffer.alloc(64 * 1024, SINK);
const PING = Buffer.alloc(64, ECHO);
const ACKNOWLEDGEMENT_BYTES = 8;

/** Take everything and say how much it was, or say everything back. Phase: `listening`, which nobody has to answer. */
export async function userspaceServer(_parameters: unknown, harness: Harness): Promise<void> {
  const server = createServer({ noDelay: true, allowHalfOpen: true }, serveOne);
  await new Promise<void>((resolve) => server.listen(SERVER_PORT, "127.0.0.1", 4_096, resolve));
  await harness.reached("listening");
}

function serveOne(socket: Socket): void {
  let taken = 0;
  let isEcho: boolean | undefined;
  socket.on("error", () => undefined);
  socket.on("data", (data) => {
    isEcho ??= data[0] === ECHO;
    taken += data.length;
    if (isEcho) socket.write(data);
  });
  socket.on("end", () => {
    if (isEcho === true) return socket.end();
    const acknowledgement = Buffer.alloc(ACKNOWLEDGEMENT_BYTES);
    acknowledgement.writeDoubleBE(taken);
    socket.end(acknowledgement);
  });
}

/** Send for a while over so many connections; MB/s that arrived, until the server has said so. */
export async function throughput(port: number, connections: number, forMs: number): Promise<number> {
  const startMs = performance.now();
  const untilMs = startMs + forMs;
  const taken = await Promise.all(Array.from({ length: connections }, () => sendFor(port, untilMs)));
  return taken.reduce((sum, bytes) => sum + bytes, 0) / 1e6 / ((performance.now() - startMs) / 1000);
}

async function sendFor(port: number, untilMs: number): Promise<number> {
  const socket = await opened(port);
  const acknowledged = new Promise<number>((resolve, reject) => {
    socket.once("data", (data) => resolve(data.readDoubleBE()));
    socket.once("close", () => reject(new Error("the connection ended before all was acknowledged")));
  });
  while (performance.now() < untilMs) {
    if (!socket.write(CHUNK)) await new Promise((resolve) => socket.once("drain", resolve));
  }
  socket.end();
  const taken = await acknowledged;
  socket.destroy();
  return taken;
}

/** Round trips of 64 bytes over one connection that is kept; ms each. */
export async function pings(port: number, count: number): Promise<readonly number[]> {
  const socket = await opened(port);
  const samples: number[] = [];
  for (let k = -200; k < count; k++) {
    const ms = await pingOnce(socket);
    if (k >= 0) samples.push(ms);
  }
  socket.destroy();
  return samples;
}

/** Connect, ask, hear the answer and leave, eight at a time; how many a second. */
export async function visits(port: number, forMs: number): Promise<number> {
  const startMs = performance.now();
  let count = 0;
  const visit = async (): Promise<void> => {
    while (performance.now() - startMs < forMs) {
      const socket = await opened(port);
      await pingOnce(socket);
      // A reset instead of a goodbye: no TIME_WAIT, so ports don't run out.
      socket.resetAndDestroy();
      count++;
    }
  };
  await Promise.all(Array.from({ length: 8 }, visit));
  return count / ((performance.now() - startMs) / 1000);
}

/** Wait until somebody listens and passes a byte on. @throws {Error} when nobody does within ten seconds. */
export async function answering(port: number): Promise<void> {
  const untilMs = performance.now() + 10_000;
  for (;;) {
    try {
      const socket = await opened(port);
      await pingOnce(socket);
      socket.destroy();
      return;
    } catch (error) {
      if (performance.now() > untilMs) throw error;
      await sleep(50);
    }
  }
}

function pingOnce(socket: Socket): Promise<number> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    let taken = 0;
    const fail = (): void => reject(new Error("the connection ended instead of an answer"));
    const take = (data: Buffer): void => {
      taken += data.length;
      if (taken < PING.length) return;
      socket.off("data", take).off("close", fail);
      resolve(performance.now() - startMs);
    };
    socket.on("data", take).once("close", fail);
    socket.write(PING);
  });
}

function opened(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port, noDelay: true });
    socket.once("error", reject).once("connect", () => {
      socket.off("error", reject).on("error", () => undefined);
      resolve(socket);
    });
  });
}
