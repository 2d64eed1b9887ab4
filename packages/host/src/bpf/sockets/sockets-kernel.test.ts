import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import type { Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { needs } from "@turnout/house/needs";
import { beforeEach, describe, expect, it } from "vitest";
import { inOwnNamespaces } from "../../test-support/own-namespaces.ts";
import { tool } from "../../test-support/tool.ts";
import { inNetworkNamespace, networkNamespaceCookie } from "./namespace.ts";
import { createSockets } from "./sockets.ts";

async function udpServer(): Promise<UdpSocket> {
  const socket = createSocket("udp4");
  await once(socket.bind(0, "127.0.0.1"), "listening");
  return socket;
}

async function udpClient(type: "udp4" | "udp6", address: string, port: number): Promise<UdpSocket> {
  const socket = createSocket(type);
  socket.connect(port, address);
  await once(socket, "connect");
  return socket;
}

const ended = (socket: NodeJS.EventEmitter): Promise<unknown> =>
  once(socket, "error").then(([error]) => (error as NodeJS.ErrnoException).code);

describe("sockets of a real kernel", needs("root", "netns", "ip"), () => {
  inOwnNamespaces();
  beforeEach(() => void tool("ip", "link", "set", "lo", "up"));

  it("ends UDP sockets whose other end is gone, of both families, and no others", async () => {
    const [gone, stays] = [await udpServer(), await udpServer()];
    const { port } = gone.address();
    const clients = [await udpClient("udp4", "127.0.0.1", port), await udpClient("udp6", "::ffff:127.0.0.1", port)];
    const other = await udpClient("udp4", "127.0.0.1", stays.address().port);
    const endings = Promise.all(clients.map(ended));
    const sockets = createSockets();
    const ends = [{ address: "127.0.0.1", port }];
    const found = await sockets.connectedTo("UDP", ends);
    expect(found).toMatchObject(Array.from({ length: 2 }, () => ({ remote: ends[0], local: { address: "127.0.0.1" } })));
    expect(new Set(found.map(({ cookie }) => cookie)).size).toBe(2);
    expect([
      await sockets.connectedTo("UDP", [{ address: "127.0.0.2", port }]),
      await sockets.connectedTo("UDP", []),
      await sockets.connectedTo("TCP", ends),
    ]).toEqual([[], [], []]);
    expect([await sockets.destroy(found), await endings]).toEqual([2, ["ECONNABORTED", "ECONNABORTED"]]);
    expect([await sockets.destroy(found), await sockets.connectedTo("UDP", ends)]).toEqual([0, []]);
    other.send("still there");
    expect(String((await once(stays, "message"))[0])).toBe("still there");
    for (const socket of [gone, stays, ...clients, other]) socket.close();
    sockets.close();
  });

  it("ends TCP sockets", async () => {
    const server = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const client = connect(port, "127.0.0.1");
    await once(client, "connect");
    const ending = ended(client);
    const sockets = createSockets();
    const found = await sockets.connectedTo("TCP", [{ address: "127.0.0.1", port }]);
    expect([found.length, await sockets.destroy(found), await ending]).toEqual([1, 1, "ECONNABORTED"]);
    server.close();
    sockets.close();
  });

  it("ends sockets in another network namespace, and comes back", async () => {
    const program = `
      const socket = require("dgram").createSocket("udp4");
      socket.on("error", (error) => { console.log(error.code); socket.close(); });
      socket.connect(5353, "127.0.0.1", () => console.log("connected"));
      setInterval(() => undefined, 1000);`;
    const pod = spawn("unshare", ["-n", "sh", "-c", 'ip link set lo up && exec "$0" -e "$1"', process.execPath, program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const path = `/proc/${pod.pid}/ns/net`;
    const [here, there] = [createSockets(), createSockets(path)];
    try {
      const lines = createInterface({ input: pod.stdout })[Symbol.asyncIterator]();
      const home = readlinkSync("/proc/self/ns/net");
      const ends = [{ address: "127.0.0.1", port: 5353 }];
      expect((await lines.next()).value).toBe("connected");
      expect(await here.connectedTo("UDP", ends)).toEqual([]);
      expect(await there.destroy(await there.connectedTo("UDP", ends))).toBe(1);
      expect((await lines.next()).value).toBe("ECONNABORTED");
      expect(readlinkSync("/proc/self/ns/net")).toBe(home);
      const [ours, theirs, again] = [networkNamespaceCookie(), inNetworkNamespace(path, networkNamespaceCookie), networkNamespaceCookie()];
      expect([again === ours, theirs === ours]).toEqual([true, false]);
      await expect(createSockets("/proc/4194304/ns/net").connectedTo("UDP", ends)).rejects.toThrow(
        /^\[not_found\] a network namespace can't be opened \(ENOENT\): \/proc\/4194304\/ns\/net$/,
      );
      await expect(createSockets("/proc/self/status").connectedTo("UDP", ends)).rejects.toThrow(
        "[not_found] a network namespace can't be entered, this is none (EINVAL): /proc/self/status",
      );
    } finally {
      for (const one of [here, there]) one.close();
      pod.kill("SIGKILL");
    }
  });
});
