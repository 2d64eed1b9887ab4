import { TestClock } from "@turnout/core/testing";
import { FAMILIES, familyOf } from "@turnout/core";
import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import type { FakeHost, Fault, Flow, Packet, Trace } from "@turnout/conformance";
import type { ExecResult } from "@turnout/core";
import type { HostAddress, LinuxWorld } from "@turnout/host";
import { createFakeLog, createFakeNetlink, createFakeSysctl, flowsOf, rememberFlow } from "@turnout/host/testing";
import type { FakeNetlink, FakeSysctl } from "@turnout/host/testing";
import { FakeIptables, linesOf, tamperWith } from "@turnout/host/testing/iptables";
import type { FakeIptablesOptions, FollowOptions } from "@turnout/host/testing/iptables";
import { isOwnChain, OWNERSHIP } from "./ownership.ts";

const START_MS = 1_000_000;
const SYSCTLS: Readonly<Record<string, string>> = {
  "net.ipv4.conf.all.route_localnet": "0",
  "net.ipv4.ip_forward": "1",
  "net.ipv6.conf.all.forwarding": "1",
  "net.netfilter.nf_conntrack_tcp_be_liberal": "0",
};

/** The iptables backend's host in memory, with more to look at than the kit needs. */
export interface IptablesFakeHost extends FakeHost {
  readonly world: LinuxWorld;
  readonly sysctl: FakeSysctl;
  /** What was logged, `level message {fields}`; the last thousand lines. */
  readonly lines: readonly string[];
  /** Somebody else runs one of the programs, e.g. `iptables-nft-restore --noflush`. */
  run(command: string, input?: string): Promise<ExecResult>;
  /** Somebody takes the lock that legacy tools wait for; call what it gives to let it go. */
  holdLock(): () => void;
}

/**
 * Make a host with iptables, ip6tables and a kernel that exist in memory: for the conformance kit, and for tests of this backend.
 *
 * Shape: it begins with the stage's addresses of node1 and with rules of others; see {@link FakeIptables}.
 * Edges: UDP flows don't time out: their clients are taken to keep them alive. There are no routes.
 */
export function createFakeHost(options: FakeIptablesOptions = {}): IptablesFakeHost {
  return new FakeIptablesHost(options);
}

class FakeIptablesHost implements IptablesFakeHost {
  readonly world: LinuxWorld;
  readonly sysctl: FakeSysctl = createFakeSysctl(SYSCTLS);
  readonly #faults = new FaultSwitches();
  readonly #clock = new TestClock(START_MS);
  readonly #netlink: FakeNetlink = createFakeNetlink();
  readonly #log = createFakeLog();
  readonly #iptables: FakeIptables;
  #local: ReadonlySet<string> = new Set();

  constructor(options: FakeIptablesOptions) {
    const host = { clock: this.#clock, netlink: this.#netlink, sysctl: this.sysctl, faults: this.#faults };
    this.#iptables = new FakeIptables(host, options);
    this.world = { exec: this.#iptables.exec, netlink: this.#netlink, clock: this.#clock, log: this.#log };
    this.setAddresses(STAGE_ADDRESSES);
  }

  get lines(): readonly string[] {
    return this.#log.lines;
  }

  get flows(): readonly Flow[] {
    return flowsOf(this.#netlink);
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#local = new Set(addresses.map(({ ip }) => ip));
    for (const family of FAMILIES) {
      this.#netlink.setAddresses(
        family,
        addresses.filter(({ ip }) => familyOf(ip) === family),
      );
    }
  }

  trace(packet: Packet, random: () => number): Trace {
    return this.#iptables.trace(packet, this.#following(random));
  }

  connect(packet: Packet, random: () => number): Trace {
    const trace = this.#iptables.connect(packet, this.#following(random));
    if (trace.is === "forward" || trace.is === "pass") rememberFlow(this.#netlink, packet, trace.endpoint);
    return trace;
  }

  setFault(fault: Fault | undefined): void {
    this.#faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.#faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    const tampering = tamperWith(this.#iptables.ruleSets, random, isOwnChain);
    if (tampering === undefined) return undefined;
    const { variant, family } = tampering.rules;
    this.#iptables.write(variant, family, tampering.input);
    return `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore: ${tampering.input.trimEnd().replaceAll("\n", "; ")}`;
  }

  own(): readonly string[] {
    return this.#iptables.ruleSets.flatMap((rules) => linesOf(rules, "own", OWNERSHIP));
  }

  written(): number {
    return this.#iptables.written;
  }

  external(): readonly string[] {
    return this.#iptables.ruleSets.flatMap((rules) => linesOf(rules, "foreign", OWNERSHIP));
  }

  run(command: string, input?: string): Promise<ExecResult> {
    return this.#iptables.run(command, input);
  }

  holdLock(): () => void {
    return this.#iptables.holdLock();
  }

  #following(random: () => number): FollowOptions {
    return { isLocal: (address) => this.#local.has(address) || (address.startsWith("127.") && this.#local.has("127.0.0.1")), random };
  }
}
