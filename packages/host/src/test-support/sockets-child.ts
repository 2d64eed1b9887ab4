// Run by bpf/sockets-kernel.test.ts in a network namespace of its own; prints what it saw as JSON.
import { createSocket } from "node:dgram";
import type { Socket as UdpSocket } from "node:dgram";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { inNetworkNamespace, networkNamespaceCookie } from "../bpf/sockets/namespace.ts";
import { createSockets } from "../bpf/sockets/sockets.ts";
import { runScenario, refusal, tool } from "./bpf-scene.ts";

async function udpServer(): Promise<{ readonly socket: UdpSocket; readonly port: number }> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return { socket, port: socket.address().port };
}

async function udpClient(
  type: "udp4" | "udp6",
  address: string,
  port: number,
): Promise<{ readonly socket: UdpSocket; readonly ended: Promise<string> }> {
  const socket = createSocket(type);
  socket.connect(port, address);
  await once(socket, "connect");
  return { socket, ended: once(socket, "error").then(([error]) => String((error as NodeJS.ErrnoException).code)) };
}

const scenarios: Readonly<Record<string, () => Promise<unknown>>> = {
  async udp() {
    tool("ip", "link", "set", "lo", "up");
    const [gone, stays] = [await udpServer(), await udpServer()];
    const four = await udpClient("udp4", "127.0.0.1", gone.port);
    const six = await udpClient("udp6", "::ffff:127.0.0.1", gone.port);
    const other = await udpClient("udp4", "127.0.0.1", stays.port);
    const sockets = createSockets();
    const ends = [{ address: "127.0.0.1", port: gone.port }];
    const found = await sockets.connectedTo("UDP", ends);
    const isAlike = found.every(
      ({ local, remote }) => remote.port === gone.port && remote.address === "127.0.0.1" && local.address === "127.0.0.1",
    );
    const cookies = new Set(found.map(({ cookie }) => cookie)).size;
    const none = [
      (await sockets.connectedTo("UDP", [{ address: "127.0.0.2", port: gone.port }])).length,
      (await sockets.connectedTo("UDP", [])).length,
      (await sockets.connectedTo("TCP", ends)).length,
    ];
    const destroyed = await sockets.destroy(found);
    const codes = [await four.ended, await six.ended];
    const again = [await sockets.destroy(found), (await sockets.connectedTo("UDP", ends)).length];
    other.socket.send("still there");
    const [said] = (await once(stays.socket, "message")) as [Buffer];
    for (const { socket } of [gone, stays, four, six, other]) socket.close();
    sockets.close();
    return { found: found.length, isAlike, cookies, none, destroyed, codes, again, said: said.toString() };
  },

  async tcp() {
    tool("ip", "link", "set", "lo", "up");
    const server = createServer((socket) => socket.on("error", () => undefined)).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const client = connect(port, "127.0.0.1");
    await once(client, "connect");
    const ended = once(client, "error").then(([error]) => String((error as NodeJS.ErrnoException).code));
    const sockets = createSockets();
    const found = await sockets.connectedTo("TCP", [{ address: "127.0.0.1", port }]);
    const destroyed = await sockets.destroy(found);
    const code = await ended;
    server.close();
    sockets.close();
    return { found: found.length, destroyed, code };
  },

  // A pod's sockets are in the pod's network namespace.
  async elsewhere() {
    const program = `
      const socket = require("dgram").createSocket("udp4");
      socket.on("error", (error) => { console.log(error.code); socket.close(); });
      socket.connect(5353, "127.0.0.1", () => console.log("connected"));
      // Its namespace is asked for later.
      setInterval(() => undefined, 1000);`;
    const pod = spawn("unshare", ["-n", "sh", "-c", 'ip link set lo up && exec "$0" -e "$1"', process.execPath, program], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const lines = createInterface({ input: pod.stdout })[Symbol.asyncIterator]();
      const first = await lines.next();
      const home = readlinkSync("/proc/self/ns/net");
      const ends = [{ address: "127.0.0.1", port: 5353 }];
      const here = createSockets();
      const there = createSockets(`/proc/${pod.pid}/ns/net`);
      const found = [(await here.connectedTo("UDP", ends)).length, await there.connectedTo("UDP", ends)] as const;
      const destroyed = await there.destroy(found[1]);
      const last = await lines.next();
      const isHome = readlinkSync("/proc/self/ns/net") === home;
      const namespaces = [
        networkNamespaceCookie(),
        inNetworkNamespace(`/proc/${pod.pid}/ns/net`, networkNamespaceCookie),
        networkNamespaceCookie(),
      ];
      here.close();
      there.close();
      const gone = createSockets("/proc/4194304/ns/net");
      const noNamespace = createSockets("/proc/self/status");
      return {
        said: [first.value, last.value],
        found: [found[0], found[1].length],
        destroyed,
        isHome,
        namespaces: namespaces.map((cookie) => namespaces.indexOf(cookie)),
        gone: await refusal(() => gone.connectedTo("UDP", ends)),
        noNamespace: await refusal(() => noNamespace.connectedTo("UDP", ends)),
      };
    } finally {
      pod.kill("SIGKILL");
    }
  },
};

await runScenario(scenarios);
