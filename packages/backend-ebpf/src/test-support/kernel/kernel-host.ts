// A host of the conformance kit whose sockets, packets and programs are this kernel's.
import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import type { FakeHost, Flow, HostAddress, Packet, Trace } from "@turnout/conformance";
import { TestClock } from "@turnout/core/testing";
import { createFakeLog, createFakeNetlink } from "@turnout/host/testing";
import { followPacket } from "../../testing/follow-packet.ts";
import type { PacketWay } from "../../testing/follow-packet.ts";
import { NftInMemory } from "../../testing/nft-in-memory.ts";
import type { EbpfWorld } from "../../world.ts";
import type { KernelStages } from "./kernel-stages.ts";
import { pinnedLines } from "./pinned-lines.ts";

const START_MS = 1_000_000;

/**
 * The clock and nft are in memory, as in the host that is so altogether.
 *
 * Edges: for scenarios alone: nothing fails, is refused or tampered with here.
 */
export class KernelHost implements FakeHost {
  readonly world: EbpfWorld;
  readonly #clock = new TestClock(START_MS);
  readonly #tables = createFakeNetlink();
  readonly #nft = new NftInMemory(new FaultSwitches(), this.#tables);
  readonly #machine: ReturnType<KernelStages["create"]>;
  readonly #way: PacketWay;
  #local: ReadonlySet<string> = new Set();

  constructor(stages: KernelStages) {
    this.#machine = stages.create();
    this.#way = {
      machine: this.#machine,
      nft: this.#nft,
      isLocal: (address) => this.#local.has(address),
      remember: (packet, endpoint) => {
        if (endpoint === undefined) this.#machine.note(packet);
      },
    };
    const { world } = this.#machine;
    const { deleteNftTable } = this.#tables;
    const netlink = { ...world.netlink, deleteNftTable };
    this.world = { ...world, netlink, exec: this.#nft.exec, clock: this.#clock, log: createFakeLog() };
    this.setAddresses(STAGE_ADDRESSES);
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

  own(): readonly string[] {
    return [...pinnedLines(this.#machine.stage, "own"), ...this.#nft.lines(true)];
  }

  external(): readonly string[] {
    return [...pinnedLines(this.#machine.stage, "foreign"), ...this.#nft.lines(false)];
  }

  setFault(): never {
    throw new Error("nothing fails here: that is for the host in memory");
  }

  refuse(): never {
    throw new Error("nothing is refused here: that is for the host in memory");
  }

  tamper(): never {
    throw new Error("nobody tampers here: that is for the host in memory");
  }
}
