import { FAMILIES, familyOf } from "@turnout/core";
import { TestClock } from "@turnout/core/testing";
import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import type { Fault, Flow, Packet, Trace } from "@turnout/conformance";
import type { HostAddress } from "@turnout/host";
import { createFakeLog, createFakeNetlink } from "@turnout/host/testing";
import type { FakeLinks, FakeLog, FakeNetlink } from "@turnout/host/testing";

const START_MS = 1_000_000;

/** How a packet is followed. */
export interface FollowOptions {
  isLocal(address: string): boolean;
  /** In [0, 1). */
  readonly random: () => number;
}

/**
 * What the fake hosts of all backends on Linux share: a clock, addresses, conntrack's flows, faults, a log.
 *
 * Shape: it begins with the stage's addresses of node1.
 * Edges: UDP flows don't time out: their clients are taken to keep them alive. There are no routes.
 */
export abstract class LinuxFakeHost {
  protected readonly faults: FaultSwitches = new FaultSwitches();
  protected readonly clock: TestClock = new TestClock(START_MS);
  protected readonly netlink: FakeNetlink = createFakeNetlink();
  protected readonly log: FakeLog = createFakeLog();
  /** Devices, and addresses of those that the proxy made; another program's bridge is there. */
  protected readonly links: FakeLinks = {
    devices: new Map([["docker0", "bridge"]]),
    addresses: [],
    onChange: () => this.reportAddresses(),
  };
  /** How often addresses were reported. */
  protected reported = 0;
  #addresses: readonly HostAddress[] = STAGE_ADDRESSES;

  constructor() {
    this.reportAddresses();
  }

  /** What was logged, `level message {fields}`; the last thousand lines. */
  get lines(): readonly string[] {
    return this.log.lines;
  }

  /** The flows that conntrack remembers. */
  get flows(): readonly Flow[] {
    return this.netlink.flows;
  }

  /** Let time go by. */
  advance(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Give the host other addresses. */
  setAddresses(addresses: readonly HostAddress[]): void {
    this.#addresses = addresses;
    this.reportAddresses();
  }

  /** Follow the first packet of a connection, and leave nothing behind. */
  trace(packet: Packet, random: () => number): Trace {
    return this.follow(packet, this.#following(random), false);
  }

  /** Follow the first packet of a connection, which stays. */
  connect(packet: Packet, random: () => number): Trace {
    const trace = this.follow(packet, this.#following(random), true);
    if (trace.is === "forward" || trace.is === "pass") this.netlink.rememberFlow(packet, trace.endpoint);
    return trace;
  }

  /** Have changes fail. */
  setFault(fault: Fault | undefined): void {
    this.faults.setFault(fault);
  }

  /** Have the host refuse what has one of these addresses. */
  refuse(addresses: readonly string[]): void {
    this.faults.refuse(addresses);
  }

  /** Where a packet goes. */
  protected abstract follow(packet: Packet, options: FollowOptions, stays: boolean): Trace;

  /** All addresses of the host. */
  protected get addresses(): readonly HostAddress[] {
    return [...this.#addresses, ...this.links.addresses];
  }

  /** Have the kernel report the addresses that there are now. */
  protected reportAddresses(): void {
    this.reported++;
    for (const family of FAMILIES)
      this.netlink.setAddresses(
        family,
        this.addresses.filter(({ ip }) => familyOf(ip) === family),
      );
  }

  /** Another program takes an address off a device that the proxy made. */
  protected takeAddress(random: () => number): string | undefined {
    const { addresses } = this.links;
    const [gone] = addresses.splice(Math.floor(random() * addresses.length), 1);
    if (gone === undefined) return undefined;
    this.reportAddresses();
    return `took ${gone.ip} off ${gone.link}`;
  }

  #following(random: () => number): FollowOptions {
    const local = new Set(this.addresses.map(({ ip }) => ip));
    return { isLocal: (address) => local.has(address) || (address.startsWith("127.") && local.has("127.0.0.1")), random };
  }
}
