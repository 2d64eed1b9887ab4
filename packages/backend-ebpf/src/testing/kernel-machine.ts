// The machine of the conformance kit that is this kernel: real sockets ask the programs of sockets, packets are given to those of tc.
import type { Flow, Packet } from "@turnout/conformance";
import { hostPort } from "@turnout/core/backend";
import type { Direction, LoadedObject } from "@turnout/host/bpf";
import { rawPacket } from "./raw-packets.ts";
import { c } from "./calls.ts";
import type { FlowKey } from "./conntrack-table.ts";
import { DEVICE_ADDRESS } from "./kernel-stage.ts";
import type { KernelStage } from "./kernel-stage.ts";
import { MapContent } from "./map-content.ts";
import { peerOf, waysOf } from "./place.ts";
import { programsAt } from "./programs-at.ts";

/** What a program of tc returns: the packet goes on, or is dropped. @source linux/pkt_cls.h */
const SHOT = 2;
const PROTOCOL: Readonly<Record<Packet["protocol"], number>> = { TCP: 6, UDP: 17, SCTP: 132 };
/** A packet that opens a connection of TCP. */
const SYN = 2;
const NS_PER_MS = 1_000_000n;
/** The kernel's time is never ahead of the host's by more. */
const LATE_NS = 20n * NS_PER_MS;
/** Where packets come from: those that stay one port after another, all others the last. No socket gets such a port by itself. */
const PORTS = { first: 20_000, last: 64_000 } as const;

/** Where `struct kept` has its time. */
export const LAST_NS = 48;

/** What becomes of a question at a socket: it fails at once, or goes on to an address, perhaps another one. */
export type SocketFate = { readonly is: "refused" } | { readonly is: "goes"; readonly address: string; readonly port: number };

/** What becomes of a packet at a device. */
export interface PacketFate {
  readonly verdict: "next" | "shot";
  /** Its mark after the programs. */
  readonly mark: number;
  /** What the kernel's NAT will make of it; undefined: nothing. */
  readonly flow: { readonly address: string; readonly port: number; readonly source: string } | undefined;
}

interface KeptSocket {
  readonly socket: number;
  readonly flow: Flow;
}

interface KeptFlow {
  readonly key: FlowKey;
  readonly flow: Flow;
}

/** One host's machine, for as long as its stage is not another's. */
export class KernelMachine {
  readonly stage: KernelStage;
  readonly #sockets: KeptSocket[] = [];
  readonly #tracked: KeptFlow[] = [];
  readonly #contents = new Map<number, MapContent>();
  #questions = 0;
  /** How many of them were sockets', each asked in the next way. */
  #asked = 0;
  #isOver = false;
  /** When what affinity remembers was last as old as this host's clock has it. */
  #agedNs = process.hrtime.bigint();
  #port: number = PORTS.first;

  constructor(stage: KernelStage) {
    this.stage = stage;
  }

  /** How many packets were given to programs. */
  get questions(): number {
    return this.#questions;
  }

  /** Connected sockets that nobody has ended, and what conntrack has of packets. */
  get flows(): readonly Flow[] {
    this.stage.enter();
    return [
      ...this.#sockets.filter(({ socket }) => peerOf(socket) !== undefined).map(({ flow }) => flow),
      ...this.#tracked.filter(({ key }) => this.stage.conntrack.find(key) !== undefined).map(({ flow }) => flow),
    ];
  }

  /** A process of a place (`node1`, or a pod of it) asks for a packet's destination, each time in another way. What it leaves behind stays if `stays`. */
  connectFrom(place: string, packet: Packet, stays: boolean): SocketFate {
    const from = this.stage.places.get(place);
    if (from === undefined) throw new Error(`no processes of ${place} are on this node`);
    return this.#leavingNothing(stays, () => {
      const ways = waysOf(packet);
      this.#questions++;
      const way = stays ? ({ by: "connect", isMapped: false } as const) : ways[this.#asked++ % ways.length];
      if (way === undefined) throw new Error("there is a way to ask");
      let kept: number | undefined;
      const asked = from.ask(packet, way, stays && packet.protocol === "UDP" ? (socket) => void (kept = socket) : undefined);
      if (asked.is === "refused") return asked;
      const { address, port } = asked;
      if (kept !== undefined) this.#sockets.push({ socket: kept, flow: flowOf(packet, hostPort(address, port)) });
      return { is: "goes", address, port };
    });
  }

  /** A packet comes in by a device of node1, or goes out by it. */
  receive(device: string, direction: Direction, packet: Packet, stays: boolean): PacketFate {
    const ifindex = this.stage.devices.get(device);
    if (ifindex === undefined) throw new Error(`node1 has no device ${device}`);
    return this.#leavingNothing(stays, () => {
      this.#questions++;
      const key: FlowKey = { ...packet, protocol: PROTOCOL[packet.protocol], sourcePort: this.#sourcePort(stays) };
      const fate = this.#runPrograms(ifindex, direction, packet, key);
      const flow = this.stage.conntrack.find(key);
      if (flow === undefined) return { ...fate, flow };
      if (stays && packet.protocol === "UDP") this.#tracked.push({ key, flow: flowOf(packet, hostPort(flow.toAddress, flow.toPort)) });
      else this.stage.conntrack.forget(key);
      return { ...fate, flow: { address: flow.toAddress, port: flow.toPort, source: flow.fromAddress } };
    });
  }

  /** Have conntrack know the flow of a UDP packet that goes on as it is: where programs are tried without a packet, no hook of conntrack sees it. */
  note(packet: Packet): void {
    if (packet.protocol !== "UDP") return;
    this.stage.enter();
    const key: FlowKey = { ...packet, protocol: PROTOCOL.UDP, sourcePort: this.#sourcePort(true) };
    this.stage.conntrack.note(key);
    this.#tracked.push({ key, flow: flowOf(packet, hostPort(packet.destination, packet.port)) });
  }

  /** Have all that affinity remembers be older by this, and not by the time that the test takes. */
  age(ms: number): void {
    const nowNs = process.hrtime.bigint();
    for (const content of this.#affinity()) makeOlder(content, BigInt(ms) * NS_PER_MS - (nowNs - this.#agedNs));
    this.#agedNs = nowNs;
  }

  /** End what stays: the stage is another's now. */
  close(): void {
    this.#isOver = true;
    for (const { socket } of this.#sockets.splice(0)) c.close(socket);
    for (const { key } of this.#tracked.splice(0)) this.stage.conntrack.forget(key);
    for (const content of this.#contents.values()) content.close();
    this.#contents.clear();
  }

  #runPrograms(ifindex: number, direction: Direction, { mark = 0 }: Packet, key: FlowKey): Omit<PacketFate, "flow"> {
    const packet = rawPacket({ ...key, from: key.source, fromPort: key.sourcePort, to: key.destination, toPort: key.port, flags: SYN });
    Buffer.from(DEVICE_ADDRESS.replaceAll(":", ""), "hex").copy(packet);
    let now = mark;
    for (const id of programsAt(ifindex, direction)) {
      // By which device it came in is told of what comes in; what goes out is the node's own.
      const fields = { mark: now, ifindex, ...(direction === "ingress" ? { ingressIfindex: ifindex } : {}) };
      const outcome = this.#programOf(id)?.testRun({ packet, fields });
      // Somebody else's lets all go.
      if (outcome === undefined) continue;
      if (outcome.code === SHOT) return { verdict: "shot", mark: outcome.fields.mark };
      now = outcome.fields.mark;
    }
    return { verdict: "next", mark: now };
  }

  #programOf(id: number): ReturnType<LoadedObject["program"]> | undefined {
    for (const object of this.stage.objects.inUse())
      for (const program of object.programs.values()) if (program.info.id === id) return program;
    return undefined;
  }

  /** What stays keeps its port. */
  #sourcePort(stays: boolean): number {
    if (!stays) return PORTS.last;
    return this.#port++;
  }

  #leavingNothing<T>(stays: boolean, ask: () => T): T {
    if (this.#isOver) throw new Error("this host's stage is another's");
    this.stage.enter();
    if (process.hrtime.bigint() - this.#agedNs > LATE_NS) this.age(0);
    const contents = stays ? [] : this.#affinity();
    const before = contents.map((content) => content.read());
    try {
      return ask();
    } finally {
      for (const [index, content] of contents.entries()) content.restore(before[index] ?? new Map());
    }
  }

  #affinity(): readonly MapContent[] {
    const maps = this.stage.objects.inUse().flatMap(({ maps: all }) => all.get("affinity") ?? []);
    return [...new Map(maps.map((map) => [map.info.id, map])).values()].map((map) => this.#contentOf(map));
  }

  #contentOf(map: ReturnType<LoadedObject["map"]>): MapContent {
    let content = this.#contents.get(map.info.id);
    if (content === undefined) this.#contents.set(map.info.id, (content = new MapContent(map)));
    return content;
  }
}

function flowOf({ family, source, destination, port }: Packet, endpoint: string): Flow {
  return { family, source, destination, port, endpoint };
}

/** Nothing is remembered of what is to come: programs would take that for very old. */
function makeOlder(affinity: MapContent, ns: bigint): void {
  for (const [key, value] of affinity.read()) {
    // Before this machine was started, times are below 0; programs get the right difference all the same.
    const then = value.readBigInt64LE(LAST_NS) - ns;
    const now = process.hrtime.bigint();
    value.writeBigInt64LE(then < now ? then : now, LAST_NS);
    affinity.map.update(Buffer.from(key, "hex"), value);
  }
}
