import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, isIPv6 } from "node:net";
import type { Socket } from "node:net";
import { loadUdpSockets } from "./udp-socket.ts";

/** Where something is asked for. */
export interface TrafficPlace {
  readonly address: string;
  readonly tcp: number;
  readonly udp: number;
}

/** Traffic to places of a kind that goes on whenever it is its turn. */
export interface Conversation {
  work(isOver: () => boolean): Promise<void>;
  /** How much there was so far: connections, answers, packets or bytes. */
  count(): number;
  end(): void;
}

/** What a conversation is begun with. */
export interface Talk {
  /** Taken in turn, where there are several. */
  readonly places: readonly TrafficPlace[];
  readonly serverPid: number;
}

/** What is measured; a rate each. */
export type TrafficMeasureName = "connects" | "requests" | "bulk" | "packets";

/** Ways to talk, by what is measured. */
export const CONVERSATIONS: Readonly<Record<TrafficMeasureName, (talk: Talk) => Promise<Conversation>>> = {
  connects: (talk) => Promise.resolve(connecting(talk)),
  requests: asking,
  bulk: sending,
  packets: flooding,
};

/** What a server drops instead of saying it back: more than this at once is `bulk`. */
export const ANSWERED_BYTES = 4096;
const BULK = Buffer.alloc(16 * ANSWERED_BYTES);
const CONNECTS_AT_ONCE = 8;
/** Datagrams between two looks at the clock. */
const BURST = 32;

/** Gives places in turn, for ever. */
export function inTurn<T>(all: readonly T[]): () => T {
  let next = 0;
  return () => {
    const one = all[next++ % all.length];
    if (one === undefined) throw new RangeError("nothing to take turns");
    return one;
  };
}

/** New connections, several at once. */
function connecting({ places }: Talk): Conversation {
  return severalAtOnce(places, connectTo);
}

/** Open a TCP connection and reset it; resolves to the ms until it was open. */
export function connectTo({ address, tcp }: TrafficPlace): Promise<number> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const socket = connect({ host: address, port: tcp, timeout: 5000 });
    socket.once("error", reject);
    socket.once("timeout", () => socket.destroy(new Error(`no answer from ${address}:${tcp}`)));
    socket.once("connect", () => {
      const ms = performance.now() - startMs;
      // A reset instead of a goodbye: no TIME_WAIT, so ports don't run out.
      socket.resetAndDestroy();
      resolve(ms);
    });
  });
}

/** New connections that are asked once, several at once; each is reset when it has answered. */
export function visiting({ places }: Pick<Talk, "places">): Conversation {
  return severalAtOnce(places, visit);
}

function severalAtOnce(places: Talk["places"], act: (place: TrafficPlace) => Promise<unknown>): Conversation {
  const next = inTurn(places);
  let count = 0;
  const goOn = async (isOver: () => boolean): Promise<void> => {
    for (; !isOver(); count++) await act(next());
  };
  return {
    work: async (isOver) => void (await Promise.all(Array.from({ length: CONNECTS_AT_ONCE }, () => goOn(isOver)))),
    count: () => count,
    end: () => undefined,
  };
}

/** Connect, ask, and leave with the answer. @throws {Error} when there is none. */
export async function visit(place: TrafficPlace): Promise<void> {
  const socket = await opened(place);
  try {
    await ask(socket);
  } finally {
    socket.resetAndDestroy();
  }
}

async function ask(socket: Socket): Promise<void> {
  const answered = Promise.race([
    once(socket, "data"),
    once(socket, "close").then(() => {
      throw new Error("the connection ended instead of an answer");
    }),
  ]);
  socket.write("p");
  await answered;
}

/** Questions and answers of a byte over one connection that is kept. */
async function asking({ places }: Talk): Promise<Conversation> {
  const socket = await opened(inTurn(places)());
  let count = 0;
  return {
    async work(isOver) {
      for (; !isOver(); count++) {
        const answered = once(socket, "data");
        socket.write("p");
        await answered;
      }
    },
    count: () => count,
    end: () => void socket.resetAndDestroy(),
  };
}

/** As much as goes, one way over one connection. */
async function sending({ places }: Talk): Promise<Conversation> {
  const socket = await opened(inTurn(places)());
  return {
    async work(isOver) {
      while (!isOver()) if (!socket.write(BULK)) await once(socket, "drain");
    },
    count: () => socket.bytesWritten - socket.writableLength,
    end: () => void socket.resetAndDestroy(),
  };
}

/** Datagrams one way, as many as go, by one socket to all places in turn; those count that came to the server. */
async function flooding({ places, serverPid }: Talk): Promise<Conversation> {
  const sockets = await loadUdpSockets();
  const socket = sockets.open(isIPv6(inTurn(places)().address) ? "IPv6" : "IPv4");
  const next = inTurn(places.map(({ address, udp }) => sockets.addressOf(address, udp)));
  return {
    async work(isOver) {
      while (!isOver()) for (let count = 0; count < BURST; count++) socket.send(next());
    },
    count: () => arrivedAt(serverPid),
    end: () => socket.close(),
  };
}

/** Datagrams that came to a process's namespace: nobody reads them there, so each finds the socket's buffer full. */
function arrivedAt(pid: number): number {
  return (
    udpCount(readFileSync(`/proc/${pid}/net/snmp`, "utf8"), "RcvbufErrors") + udp6Count(readFileSync(`/proc/${pid}/net/snmp6`, "utf8"))
  );
}

/** A counter of the line `Udp:` in the text of /proc/net/snmp: names in one line, numbers in the next. Pure. */
export function udpCount(snmp: string, name: string): number {
  const [names = "", numbers = ""] = snmp.split("\n").filter((line) => line.startsWith("Udp: "));
  const place = names.split(" ").indexOf(name);
  if (place < 0) throw new Error(`/proc/net/snmp has no counter ${name} of UDP`);
  return Number(numbers.split(" ")[place]);
}

/** The same of the text of /proc/net/snmp6, which has a line for each. Pure. */
export function udp6Count(snmp6: string): number {
  const number = /^Udp6RcvbufErrors\s+(\d+)$/m.exec(snmp6)?.[1];
  if (number === undefined) throw new Error("/proc/net/snmp6 has no counter Udp6RcvbufErrors");
  return Number(number);
}

async function opened({ address, tcp }: TrafficPlace): Promise<Socket> {
  const socket = connect({ host: address, port: tcp, noDelay: true });
  await once(socket, "connect");
  return socket;
}
