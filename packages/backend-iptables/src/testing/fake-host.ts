import type { FakeHost, Packet, Trace } from "@turnout/conformance";
import type { ExecResult } from "@turnout/core";
import type { LinuxWorld } from "@turnout/host";
import { LinuxFakeHost } from "@turnout/fakes";
import { createFakeSysctl } from "@turnout/host/testing";
import type { FollowOptions } from "@turnout/fakes";
import type { FakeSysctl } from "@turnout/host/testing";
import { FakeIptables, linesOf } from "@turnout/fakes/iptables";
import type { FakeIptablesOptions, RuleOwnership } from "@turnout/fakes/iptables";
import { isOwnChain, SHARED_CHAINS } from "../layout.ts";

const TABLES = ["filter", "nat", "mangle"] as const;

/** What in the tables is this backend's. KUBE-FIREWALL is kubelet's, whoever made it. */
const OWNERSHIP: RuleOwnership = {
  isOwnChain: (name) => TABLES.some((table) => isOwnChain(table, name) || SHARED_CHAINS[table].includes(name)),
  isSharedChain: (_, name) => TABLES.some((table) => SHARED_CHAINS[table].includes(name)),
  // What leads to KUBE-NODEPORTS isn't for one port; it counts from the chain's end.
  isTail: (table, { chain }) => table === "nat" && chain === "KUBE-NODEPORTS",
};

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

class FakeIptablesHost extends LinuxFakeHost implements IptablesFakeHost {
  readonly world: LinuxWorld;
  readonly sysctl: FakeSysctl = createFakeSysctl(SYSCTLS);
  readonly #iptables: FakeIptables;

  constructor(options: FakeIptablesOptions) {
    super();
    const { clock, netlink, faults, log, sysctl } = this;
    this.#iptables = new FakeIptables({ clock, netlink, sysctl, faults }, options);
    this.world = { exec: this.#iptables.exec, netlink, clock, log };
  }

  tamper(random: () => number): string | undefined {
    return this.#iptables.tamper(random, OWNERSHIP.isOwnChain);
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

  protected follow(packet: Packet, options: FollowOptions, stays: boolean): Trace {
    return this.#iptables.follow(packet, options, stays);
  }
}
