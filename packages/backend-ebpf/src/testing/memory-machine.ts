import { fileURLToPath } from "node:url";
import { PLACES, STAGE_NODE, UPLINK } from "@turnout/conformance";
import type { FaultSwitches, Flow, HostAddress, Packet } from "@turnout/conformance";
import { FAMILIES, familyOf } from "@turnout/core";
import { hostPort, ProxyError } from "@turnout/core/backend";
import type { Clock, IPFamily, Protocol } from "@turnout/core/backend";
import type { CgroupHook, Direction } from "@turnout/host/bpf";
import { createFakeNetlink, flowsOf } from "@turnout/host/testing";
import type { FakeNetlink } from "@turnout/host/testing";
import { ClosingContext, SkbContext, SocketContext } from "./contexts.ts";
import type { SocketAddress } from "./contexts.ts";
import { Conntrack } from "./conntrack.ts";
import type { Machine, PacketFate, Question, SocketFate } from "./machine.ts";
import { DEVICES, NETLINK_DEVICES, ROUTES } from "./devices.ts";
import { MemoryBpf } from "./memory-bpf.ts";
import { MemoryKernel } from "./memory-kernel.ts";
import { MemorySockets } from "./memory-sockets.ts";
import { addressBytes, addressText, packetBytes, PROTOCOL_NUMBERS } from "./packet-bytes.ts";
import { codeOf, runProgram } from "./program-code.ts";
import type { AskingSocket, RunAbout } from "./run-about.ts";

/** What a tc program returns to hand a packet on to the next one, and to drop it. @source linux/pkt_cls.h */
const NEXT = -1;
const SHOT = 2;
/** Of a hook of sockets: the call goes on. */
const ALLOWED = 1;

const BPFFS = "/sys/fs/bpf";
const CGROUP = "/sys/fs/cgroup";
const CGROUP_ID = 1n;
const LINK_LOCAL: Readonly<Record<IPFamily, string>> = { IPv4: "169.254.0.1", IPv6: "fe80::1" };

/** Cookies of network namespaces by whose they are: node1's, and those of its pods. */
const NAMESPACES: ReadonlyMap<string, bigint> = new Map([
  [STAGE_NODE, 1n],
  ...PLACES.filter(({ kind, node }) => kind === "pod" && node === STAGE_NODE).map(
    ({ name }, index) => [name, BigInt(4096 + index)] as const,
  ),
]);

/** The path of a place's network namespace. */
export function namespacePath(place: string): string {
  return place === STAGE_NODE ? "/proc/1/ns/net" : `/run/netns/${place}`;
}

/** What a machine in memory is made with. */
export interface MemoryMachineOptions {
  readonly clock: Pick<Clock, "nowMs">;
  readonly faults: FaultSwitches;
}

/** The object files of this package as they were compiled. */
export const OBJECT_FILES: Readonly<Record<"sockets" | "packets", string>> = {
  sockets: fileURLToPath(new URL("../../dist/programs/sockets.bpf.o", import.meta.url)),
  packets: fileURLToPath(new URL("../../dist/programs/packets.bpf.o", import.meta.url)),
};

/** A kernel in memory that carries out the very instructions of the compiled programs. */
export class MemoryMachine implements Machine {
  readonly world: Machine["world"];
  readonly kernel: MemoryKernel;
  readonly netlink: FakeNetlink = createFakeNetlink();
  /** Where processes of node1 listen, `ip:port/TCP`. */
  readonly listeners: Set<string> = new Set();
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #sockets = new MemorySockets();
  #addresses: readonly HostAddress[] = [];
  #lastCookie = 0n;
  #lastPort = 32_768;

  constructor({ clock, faults }: MemoryMachineOptions) {
    this.#clock = clock;
    this.netlink.setDevices(NETLINK_DEVICES, ROUTES);
    const cgroups = new Map([[CGROUP, CGROUP_ID]]);
    this.kernel = new MemoryKernel({ faults, bpffs: BPFFS, cgroups, devices: new Set(DEVICES.values()) });
    this.world = {
      bpf: new MemoryBpf(this.kernel),
      pinFiles: this.kernel.files,
      objectFiles: OBJECT_FILES,
      buildOf: (file) => codeOf(file).digest.slice(0, 16),
      probeBpf: () =>
        Promise.resolve({ libbpf: "1.1", bpffs: BPFFS, cgroup2: CGROUP, missingHooks: [], missingKfuncs: [], missing: new Map() }),
      mounts: () => ({ bpffs: BPFFS, cgroup2: CGROUP }),
      namespaceCookie: (path) => String(cookieOf(path)),
      cgroupNumber: (folder) => cgroups.get(folder)?.toString(),
      writeText: () => {
        throw new ProxyError("permission_denied", "nothing is written here but pins");
      },
      namespaces: () => [...NAMESPACES.keys()].map(namespacePath),
      sockets: (namespace) => this.#sockets.of(namespace),
      netlink: this.netlink,
    };
  }

  get flows(): readonly Flow[] {
    return [...this.#sockets.flows, ...flowsOf(this.netlink)];
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#addresses = addresses;
    for (const family of FAMILIES) {
      const own = addresses.filter(({ ip }) => familyOf(ip) === family);
      this.netlink.setAddresses(family, own);
    }
  }

  /** Programs are told the clock's time. */
  age(_ms: number): void {
    // Nothing that they have noted need change.
  }

  connectFrom(place: string, packet: Packet, question: Question): SocketFate {
    const ask = (): SocketFate => this.#ask(place, packet, question);
    return question.stays ? ask() : this.kernel.journal.takingBack(ask);
  }

  receive(device: string, direction: Direction, packet: Packet, question: Question): PacketFate {
    const ask = (): PacketFate => this.#meet(device, direction, packet, question);
    const fate = question.stays ? ask() : this.kernel.journal.takingBack(ask);
    return fate;
  }

  /** A program makes a socket and asks; of UDP it connects the socket or sends at once, and hears the answer. */
  #ask(place: string, packet: Packet, { random, stays }: Question): SocketFate {
    const namespace = NAMESPACES.get(place);
    if (namespace === undefined) throw new ProxyError("invalid_object", "no process is here", { object: place });
    const { family, protocol } = packet;
    const isConnecting = stays || protocol !== "UDP" || random() < 0.5;
    // A socket of IPv6 asks for IPv4, too.
    const isOfIPv6 = family === "IPv6" || random() < 0.5;
    const socket: AskingSocket = { cookie: (this.#lastCookie += 1n), namespace, result: 0 };
    const asked: SocketAddress = { address: addressBytes(packet.destination), port: packet.port };
    const call = (kind: "connect" | "sendmsg" | "recvmsg" | "getpeername", at: SocketAddress): SocketAddress | undefined =>
      this.#call(`${kind}${isOfIPv6 ? "6" : "4"}`, at, protocol, socket, isConnecting && kind !== "connect", random);
    const to = call(isConnecting ? "connect" : "sendmsg", asked);
    if (to === undefined) return { is: "refused" };
    const shown = call(isConnecting ? "getpeername" : "recvmsg", to);
    if (shown === undefined || shown.port !== asked.port || !shown.address.equals(asked.address))
      throw new ProxyError("invalid_object", "a socket is shown another peer than it asked for", {
        object: `${packet.destination}:${packet.port}`,
      });
    const [address, port] = [addressText(to.address), to.port];
    // One that got what it asked for is as any flow of packets.
    if (!stays || protocol !== "UDP" || (to.port === asked.port && to.address.equals(asked.address))) {
      const closing = new ClosingContext(!isOfIPv6, PROTOCOL_NUMBERS[protocol], isConnecting ? to : undefined);
      for (const { program } of this.kernel.programsAt("sock_release")) runProgram(program, closing, this.#about(random, { socket }));
    } else {
      const ends = { asked: { address: packet.destination, port: packet.port }, remote: { address, port } };
      this.#sockets.add({ namespace: namespacePath(place), cookie: socket.cookie, family, source: packet.source, ...ends });
    }
    return { is: "goes", address, port };
  }

  /** Have the programs at a hook decide, one after another; undefined: the call fails. */
  #call(
    hook: CgroupHook,
    at: SocketAddress,
    protocol: Protocol,
    socket: AskingSocket,
    isConnected: boolean,
    random: () => number,
  ): SocketAddress | undefined {
    const context = new SocketContext(hook, at, PROTOCOL_NUMBERS[protocol], isConnected);
    for (const { program } of this.kernel.programsAt(hook))
      if (runProgram(program, context, this.#about(random, { socket })) !== ALLOWED) return undefined;
    return context.result;
  }

  #meet(device: string, direction: Direction, packet: Packet, { random }: Question): PacketFate {
    const { family, protocol, source, destination, port, mark = 0 } = packet;
    const conntrack = new Conntrack(() => this.#clock.nowMs());
    const sourcePort = (this.#lastPort = this.#lastPort < 60_999 ? this.#lastPort + 1 : 32_768);
    const ends = { family, protocol, source: addressBytes(source), sourcePort, destination: addressBytes(destination), port };
    const bytes = packetBytes(ends);
    const ifindex = DEVICES.get(device) ?? 0;
    const ingressIfindex = direction === "ingress" || packet.link !== "" ? (DEVICES.get(packet.link) ?? ifindex) : 0;
    const context = new SkbContext({ bytes, mark, priority: 0, ingressIfindex, ifindex });
    const sourceTowards = (address: Buffer): Buffer | undefined => this.#sourceTowards(address, family);
    for (const { program } of this.kernel.programsOn(ifindex, direction)) {
      const code = runProgram(program, context, this.#about(random, { packet: { bytes, conntrack, sourceTowards } }));
      if (code === SHOT) return { verdict: "shot", mark: context.mark, flow: undefined };
      if (code !== NEXT) break;
    }
    const flow = conntrack.find({
      protocol,
      source: ends.source.toString("latin1"),
      sourcePort,
      destination: ends.destination.toString("latin1"),
      port,
    });
    return { verdict: "next", mark: context.mark, flow: flow === undefined ? undefined : fateOf(flow.reply) };
  }

  #about(random: () => number, about: Partial<Pick<RunAbout, "socket" | "packet">>): RunAbout {
    const nowNs = (): bigint => BigInt(this.#clock.nowMs()) * 1_000_000n;
    // A program at a device runs in node1's network namespace, as do those of node1's sockets.
    const isOfNode = about.socket === undefined || about.socket.namespace === NAMESPACES.get(STAGE_NODE);
    const listens: RunAbout["listens"] = (protocol, address, port) =>
      isOfNode && this.listeners.has(`${hostPort(addressText(address), port)}/${protocol}`);
    return { nowNs, random, listens, socket: undefined, packet: undefined, ...about };
  }

  /** All ways lead over the uplink, but for those to the node's own addresses. Where it has no other address, its link-local one is taken. */
  #sourceTowards(address: Buffer, family: IPFamily): Buffer | undefined {
    const to = addressText(address);
    if (this.#addresses.some(({ ip }) => ip === to)) return undefined;
    const source = this.#addresses.find(({ ip, link }) => link === UPLINK && familyOf(ip) === family);
    return addressBytes(source?.ip ?? LINK_LOCAL[family]);
  }
}

function cookieOf(path: string | undefined): bigint {
  const found = [...NAMESPACES].find(([place]) => path === undefined || namespacePath(place) === path)?.[1];
  if (found === undefined) throw new ProxyError("not_found", "there is no such network namespace", { object: path ?? "" });
  return found;
}

function fateOf(reply: {
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
}): NonNullable<PacketFate["flow"]> {
  const text = (bytes: string): string => addressText(Buffer.from(bytes, "latin1"));
  return { address: text(reply.source), port: reply.sourcePort, source: text(reply.destination) };
}
