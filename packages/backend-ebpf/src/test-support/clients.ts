// Endpoints and clients of the scenarios: real sockets of this process's network namespace.
import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import type { Socket } from "node:dgram";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { hostPort } from "@turnout/core/backend";

/** The port of all endpoints, as in states.ts. */
const PORT = 8080;
/** Nobody answered so long, unless the question says another time. */
const SILENCE_MS = 1_000;

/** How somebody asks: by a connection, by UDP that is connected, or by UDP that isn't. */
export type How = "tcp" | "udp" | "sendto";

interface Peer {
  readonly address: string;
  readonly port: number;
}

/** Who is asked. */
export interface Question {
  readonly how: How;
  readonly address: string;
  readonly port: number;
  /** By which address of its own, and by which port; undefined: the kernel chooses. */
  readonly from?: string;
  readonly fromPort?: number;
  /** How long a datagram is; undefined: a byte. Where it is said, the answer's length is told. */
  readonly bytes?: number;
  /** How long an answer is waited for. */
  readonly patienceMs?: number;
}

/** Addresses by family; each has a server on each protocol. */
export const ENDPOINTS: readonly string[] = [10, 11, 15, 16, 20, 25, 50, 55, 60, 65, 70, 75, 85, 86].flatMap((last) => [
  `10.1.1.${last}`,
  `fd00:1:1::${last}`,
]);

/** Give this network namespace the node's addresses and all endpoints', and a way out into nowhere. */
export function furnish(): void {
  const lines = [
    "link set lo up",
    "link add nowhere arp off type veth peer name wall",
    "link set wall up",
    "addr add 172.18.0.1/32 dev nowhere",
    "addr add fd00:18::1/128 dev nowhere nodad",
    "link set nowhere up",
    "route add default dev nowhere",
    "-6 route add default dev nowhere",
    ...ENDPOINTS.map((address) => `addr add ${address}/${address.includes(":") ? "128 dev lo nodad" : "32 dev lo"}`),
  ];
  for (const line of lines) execFileSync("ip", line.split(" "), { stdio: ["ignore", "ignore", "pipe"] });
}

/** Have servers at all endpoints; each says its own address. */
export async function serve(): Promise<void> {
  await listenAt(ENDPOINTS, PORT, (own) => own);
}

/** Have servers of TCP and UDP that say something and don't keep the process alive; gives what ends them. */
export async function listenAt(addresses: readonly string[], port: number, says: (own: string) => string): Promise<() => void> {
  const ends: (() => unknown)[] = [];
  for (const address of addresses) {
    const server = createServer((socket) => socket.on("error", () => undefined).end(says(address))).listen(port, address);
    const udp = createSocket(address.includes(":") ? "udp6" : "udp4");
    udp.on("message", (_, client) => udp.send(says(address), client.port, client.address));
    udp.bind(port, address);
    await Promise.all([once(server, "listening"), once(udp, "listening")]);
    ends.push(
      () => server.close(),
      () => udp.close(),
    );
    server.unref();
    udp.unref();
  }
  return () => {
    for (const end of ends) end();
  };
}

/** Ask, and say who seems to answer and what it says (`10.96.0.1:80 says 10.1.1.10`), the error, or `silence`. */
export async function ask(question: Question): Promise<string> {
  return question.how === "tcp" ? askTcp(question) : askUdp(question);
}

async function askTcp({ address, port, from, fromPort, patienceMs }: Question): Promise<string> {
  const socket = connect({
    host: address,
    port,
    ...(from === undefined ? {} : { localAddress: from }),
    ...(fromPort === undefined ? {} : { localPort: fromPort }),
  });
  const [answer, settle] = settled(patienceMs);
  socket.on("error", (error) => settle(codeOf(error)));
  socket.on("data", (said: Buffer) => settle(`${hostPort(socket.remoteAddress ?? "", socket.remotePort ?? 0)} says ${said.toString()}`));
  try {
    return await answer;
  } finally {
    socket.destroy();
  }
}

async function askUdp({ how, address, port, from, fromPort, bytes, patienceMs }: Question): Promise<string> {
  const socket = createSocket(address.includes(":") ? "udp6" : "udp4");
  const message = "?".padEnd(bytes ?? 1);
  const [answer, settle] = settled(patienceMs);
  let peer = "";
  socket.on("error", (error) => settle(codeOf(error)));
  socket.on("message", (said, by) => {
    const length = bytes === undefined ? "" : ` in ${said.length} bytes`;
    settle(`${peer}${hostPort(by.address, by.port)} says ${said.toString().trimEnd()}${length}`);
  });
  try {
    if (from !== undefined || fromPort !== undefined) {
      socket.bind(fromPort ?? 0, from);
      await once(socket, "listening");
    }
    if (how === "udp") {
      socket.connect(port, address);
      const isConnectedNow = await once(socket, "connect").then(
        () => true,
        () => false,
      );
      if (!isConnectedNow) return await answer;
      peer = `${safePeer(socket)} `;
      socket.send(message, (error) => error && settle(codeOf(error)));
    } else socket.send(message, port, address, (error) => error && settle(codeOf(error)));
    return await answer;
  } finally {
    socket.close();
  }
}

function safePeer(socket: ReturnType<typeof createSocket>): string {
  try {
    const { address, port } = socket.remoteAddress();
    return hostPort(address, port);
  } catch (error) {
    return codeOf(error);
  }
}

/** A question; services are asked at port 80. */
export function at(how: How, address: string, port = 80): Question {
  return { how, address, port };
}

/** Ask one after another. */
export async function askAll(questions: readonly Question[]): Promise<readonly string[]> {
  const answers: string[] = [];
  for (const question of questions) answers.push(await ask(question));
  return answers;
}

/** Which endpoints answer when somebody asks so often, sorted. */
export async function endpointsOf(question: Question, times: number): Promise<readonly string[]> {
  const answers = await askAll(Array.from({ length: times }, () => question));
  return [...new Set(answers.map((answer) => answer.replace(/^.* says /, "")))].toSorted();
}

/** Ask several services by one socket, one after another. */
export async function askByOne(type: "udp4" | "udp6", questions: readonly Question[]): Promise<readonly string[]> {
  const socket = createSocket(type);
  const answers: string[] = [];
  for (const question of questions) answers.push(await askBy(socket, question));
  socket.close();
  return answers;
}

/** Ask by a socket that stays open and isn't connected. @param patienceMs until nothing counts as silence */
export async function askBy(socket: Socket, { address, port }: Question, patienceMs: number = SILENCE_MS): Promise<string> {
  const message = once(socket, "message");
  socket.send("?", port, address);
  const answer = message.then(([said, from]) => `${hostPort((from as Peer).address, (from as Peer).port)} says ${String(said)}`);
  return await Promise.race([answer, sleep(patienceMs, "silence", { ref: false })]);
}

function settled(patienceMs = SILENCE_MS): [Promise<string>, (text: string) => void] {
  let settle: (text: string) => void = () => undefined;
  const answer = new Promise<string>((resolve) => {
    const timer = setTimeout(() => resolve("silence"), patienceMs);
    settle = (text): void => {
      clearTimeout(timer);
      resolve(text);
    };
  });
  return [answer, settle];
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
