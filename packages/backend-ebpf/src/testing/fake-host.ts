import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import type { FakeHost, Fault, Flow, HostAddress, Packet, Trace } from "@turnout/conformance";
import { TestClock } from "@turnout/core/testing";
import { createFakeLog, rememberFlow } from "@turnout/host/testing";
import type { EbpfWorld } from "../world.ts";
import { addExternalThings } from "./external-things.ts";
import { followPacket } from "./follow-packet.ts";
import type { PacketWay } from "./follow-packet.ts";
import { linesOf } from "./inventory.ts";
import { MemoryMachine } from "./memory-machine.ts";
import type { MemoryKernel } from "./memory-kernel.ts";
import { NftInMemory } from "./nft-in-memory.ts";
import { tamperWith } from "./tamper.ts";

const START_MS = 1_000_000;

/** The eBPF backend's host in memory, with more to look at than the kit needs. */
export interface EbpfFakeHost extends FakeHost {
  readonly world: EbpfWorld;
  readonly kernel: MemoryKernel;
  /** Where processes of node1 listen, `ip:port/TCP`. */
  readonly listeners: Set<string>;
  /** What was logged, `level message {fields}`; the last thousand lines. */
  readonly lines: readonly string[];
}

/**
 * Make a host whose kernel is in memory and carries out the very instructions of the compiled programs: for the conformance kit, and for tests of
 * this backend.
 *
 * Shape: it begins with the stage's addresses of node1, and with programs, maps and pins of somebody else.
 * Edges: the object files have to be compiled. UDP sockets and flows don't time out.
 */
export function createFakeHost(): EbpfFakeHost {
  return new MemoryHost();
}

class MemoryHost implements EbpfFakeHost {
  readonly world: EbpfWorld;
  readonly #faults = new FaultSwitches();
  readonly #clock = new TestClock(START_MS);
  readonly #log = createFakeLog();
  readonly #machine: MemoryMachine;
  readonly #nft: NftInMemory;
  readonly #way: PacketWay;
  #local: ReadonlySet<string> = new Set();

  constructor() {
    this.#machine = new MemoryMachine({ clock: this.#clock, faults: this.#faults });
    this.#nft = new NftInMemory(this.#faults, this.#machine.netlink);
    this.world = { ...this.#machine.world, exec: this.#nft.exec, clock: this.#clock, log: this.#log };
    this.#way = {
      machine: this.#machine,
      nft: this.#nft,
      isLocal: (address) => this.#local.has(address),
      remember: (packet, endpoint) => rememberFlow(this.#machine.netlink, packet, endpoint),
    };
    this.setAddresses(STAGE_ADDRESSES);
    addExternalThings(this.kernel);
  }

  get kernel(): MemoryKernel {
    return this.#machine.kernel;
  }

  get listeners(): Set<string> {
    return this.#machine.listeners;
  }

  get lines(): readonly string[] {
    return this.#log.lines;
  }

  get flows(): readonly Flow[] {
    return this.#machine.flows;
  }

  async advance(ms: number): Promise<void> {
    await this.#clock.advance(ms);
    this.#machine.age(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#local = new Set(addresses.map(({ ip }) => ip));
    this.#machine.setAddresses(addresses);
  }

  trace(packet: Packet, random: () => number): Trace {
    return followPacket(this.#way, packet, { random, stays: false });
  }

  connect(packet: Packet, random: () => number): Trace {
    return followPacket(this.#way, packet, { random, stays: true });
  }

  setFault(fault: Fault | undefined): void {
    this.#faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.#faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    return tamperWith(this.kernel, random);
  }

  own(): readonly string[] {
    return [...linesOf(this.kernel, "own"), ...this.#nft.lines(true)];
  }

  written(): number {
    return this.kernel.written + this.#nft.written;
  }

  onChange(look: () => void): void {
    this.kernel.onChange = look;
  }

  external(): readonly string[] {
    return [...linesOf(this.kernel, "foreign"), ...this.#nft.lines(false)];
  }
}
