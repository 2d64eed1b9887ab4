// What UDP sockets are remembered by, and what becomes of those that aren't connected: scenarios of sockets-child.ts.
import { createSocket } from "node:dgram";
import type { RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServiceFixture } from "@turnout/core/testing";
import { ask, askBy, at } from "./clients.ts";
import type { Question } from "./clients.ts";
import { askByCrowd } from "./connect-often.ts";
import { elementsIn } from "./proxy.ts";
import type { Proxy } from "./proxy.ts";

/** Who must be answered is waited for so long on a busy machine. */
const ANSWERED_MS = 5_000;

const PLAIN: ServiceFixture = { name: "plain", number: 2, protocol: "UDP", local: 1 };

/** Scenarios by name; `start` has the programs at work. */
export const udpScenarios = (start: () => Promise<Proxy>): Readonly<Record<string, () => Promise<unknown>>> => ({
  // Sockets that aren't connected: endpoints come, and then one goes that some of them have.
  async kept() {
    const { want } = await start();
    const service: ServiceFixture = { name: "kept", number: 1, protocol: "UDP" };
    const sockets = Array.from({ length: 24 }, (_, index) => (index % 2 === 0 ? createSocket("udp4") : createSocket("udp6")));
    const endpoints = async (): Promise<readonly string[]> => {
      const question = (index: number): Question => at("sendto", index % 2 === 0 ? "10.96.0.1" : "fd00:96::1");
      return await Promise.all(
        sockets.map((socket, index) => askBy(socket, question(index), ANSWERED_MS).then((text) => text.replace(/^.* says /, ""))),
      );
    };
    want([{ ...service, local: 1, remote: 1 }]);
    const first = await endpoints();
    want([{ ...service, local: 2, remote: 2 }]);
    const more = await endpoints();
    want([{ ...service, local: 0, remote: 2 }]);
    const fewer = await endpoints();
    const isStaying = (index: number): boolean => /1[56]$/.test(first[index] ?? "");
    return {
      first: [...new Set(first)].toSorted(),
      isKept: more.join() === first.join(),
      isKeptStill: fewer.every((endpoint, index) => !isStaying(index) || endpoint === first[index]),
      // By chance all of them may have got the same one.
      strays: fewer.filter((endpoint) => !/1[56]$/.test(endpoint)),
      again: (await endpoints()).join() === fewer.join(),
    };
  },

  // More sockets of TCP than are remembered, behind one of UDP.
  async crowd() {
    const { want, map } = await start();
    want([PLAIN, { name: "crowd", number: 9, local: 1 }]);
    const socket = createSocket("udp4");
    socket.connect(80, "10.96.0.2");
    await once(socket, "connect");
    askByCrowd("10.96.0.9", 80, 4 * map("asked_tcp").info.maxEntries);
    const { address, port } = socket.remoteAddress();
    const message = once(socket, "message");
    socket.send("?");
    const [, from] = (await message) as [Buffer, RemoteInfo];
    return [`${address}:${port}`, `${from.address}:${from.port}`];
  },

  // Somebody asks a server of UDP from an address of the node and a port that is a node port, too: the answer is for him.
  async nodePortAsClient() {
    const { want, map, counted } = await start();
    want([{ ...PLAIN, spec: { type: "NodePort", nodePort: 30_002 } }]);
    const answers: string[] = [];
    for (const [own, node] of [
      ["10.1.1.70", "172.18.0.1"],
      ["fd00:1:1::70", "fd00:18::1"],
    ] as const) {
      const type = own.includes(":") ? "udp6" : "udp4";
      for (const isClient of [false, true]) {
        const server = createSocket(type);
        server.bind(9000, own);
        await once(server, "listening");
        // A socket that has asked the service there goes on to ask it.
        if (isClient) answers.push(await askBy(server, at("sendto", node, 30_002)));
        server.once("message", (_, { address, port }) => server.send(`${own} answers`, port, address));
        answers.push(await ask({ ...at("sendto", own, 9000), from: node, fromPort: 30_002, patienceMs: 200 }));
        server.close();
      }
    }
    const noted = (await elementsIn(map("chosen_udp"))).length;
    return { answers, noted, counted: [counted("plain", "UDP"), counted("plain", "UDP", "IPv6")] };
  },
});

/** What sockets asked for is remembered as long as they are open; of one that isn't connected nothing is among them. */
export async function closedSockets(start: () => Promise<Proxy>): Promise<unknown> {
  const { want, map } = await start();
  want([PLAIN, { name: "tcp", number: 1, local: 1 }]);
  const remembered = async (): Promise<unknown> => ({
    asked_tcp: (await elementsIn(map("asked_tcp"))).length,
    asked_udp: (await elementsIn(map("asked_udp"))).length,
  });
  const addresses = (number: number): readonly string[] => [`10.96.0.${number}`, `fd00:96::${number}`, `::ffff:10.96.0.${number}`];
  const connections = addresses(1).map((host) => connect({ host, port: 80, allowHalfOpen: true }));
  const sockets = addresses(2).map((address) => createSocket(address.includes(":") ? "udp6" : "udp4"));
  for (const [index, address] of addresses(2).entries()) sockets[index]?.connect(80, address);
  await Promise.all([...connections, ...sockets].map((one) => once(one, "connect")));
  const other = createSocket("udp4");
  await askBy(other, at("sendto", "10.96.0.2"), ANSWERED_MS);
  const open = await remembered();
  for (const connection of connections) connection.destroy();
  for (const socket of [...sockets, other]) socket.close();
  // The connections are closed after this turn.
  await sleep(100);
  return { open, left: await remembered() };
}
