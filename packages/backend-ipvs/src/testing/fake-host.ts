import { TestClock } from "@turnout/core/testing";
import { FAMILIES, familyOf, hostPort } from "@turnout/core";
import { FaultSwitches, STAGE_ADDRESSES } from "@turnout/conformance";
import type { FakeHost, Fault, Flow, Packet, Trace } from "@turnout/conformance";
import type { Exec } from "@turnout/core";
import type { HostAddress } from "@turnout/host";
import { createFakeIp, createFakeLog, createFakeNetlink, createFakeSysctl, flowsOf, rememberFlow } from "@turnout/host/testing";
import type { FakeLinks, FakeNetlink, FakeSysctl } from "@turnout/host/testing";
import { FakeIpset } from "@turnout/host/testing/ipset";
import { FakeIptables, linesOf, tamperWith } from "@turnout/host/testing/iptables";
import type { Balance, FakeIptablesOptions } from "@turnout/host/testing/iptables";
import { FakeIpvs } from "@turnout/host/testing/ipvs";
import { DEVICE } from "../names.ts";
import type { IpvsWorld } from "../world.ts";
import { isOwnChain, isOwnSet, OWNERSHIP } from "./ownership.ts";

const START_MS = 1_000_000;
const EXTERNAL_DEVICE = "docker0";
const SYSCTLS: Readonly<Record<string, string>> = {
  "net.ipv4.conf.all.route_localnet": "0",
  "net.ipv4.conf.all.arp_ignore": "0",
  "net.ipv4.conf.all.arp_announce": "0",
  "net.ipv4.ip_forward": "1",
  "net.ipv6.conf.all.forwarding": "1",
  "net.ipv4.vs.conntrack": "0",
  "net.ipv4.vs.expire_nodest_conn": "0",
  "net.ipv4.vs.expire_quiescent_template": "0",
};

/** The ipvs backend's host in memory, with more to look at than the kit needs. */
export interface IpvsFakeHost extends FakeHost {
  readonly world: IpvsWorld;
  readonly ipvs: FakeIpvs;
  readonly ipset: FakeIpset;
  readonly sysctl: FakeSysctl;
  /** What was logged, `level message {fields}`; the last thousand lines. */
  readonly lines: readonly string[];
}

/**
 * Make a host with IPVS, ipset, iptables and addresses that exist in memory: for the conformance kit, and for tests of this backend.
 *
 * Shape: it begins with the stage's addresses of node1, a device, rules, a set and a virtual server of others.
 * Edges: UDP flows don't time out. There are no routes.
 */
export function createFakeHost(options: FakeIptablesOptions = {}): IpvsFakeHost {
  return new FakeIpvsHost(options);
}

class FakeIpvsHost implements IpvsFakeHost {
  readonly world: IpvsWorld;
  readonly sysctl: FakeSysctl = createFakeSysctl(SYSCTLS);
  readonly ipset: FakeIpset;
  readonly ipvs: FakeIpvs;
  readonly #faults = new FaultSwitches();
  readonly #clock = new TestClock(START_MS);
  readonly #netlink: FakeNetlink = createFakeNetlink();
  readonly #log = createFakeLog();
  readonly #iptables: FakeIptables;
  readonly #links: FakeLinks = { devices: new Map([[EXTERNAL_DEVICE, "bridge"]]), addresses: [], onChange: () => this.#reportAddresses() };
  #addresses: readonly HostAddress[] = STAGE_ADDRESSES;
  #boundCount = 0;

  constructor(options: FakeIptablesOptions) {
    this.ipset = new FakeIpset({ faults: this.#faults, isNamed: (name) => this.#iptables.isSetNamed(name) });
    const host = { clock: this.#clock, netlink: this.#netlink, sysctl: this.sysctl, faults: this.#faults, sets: this.ipset };
    this.ipvs = new FakeIpvs({ clock: this.#clock, faults: this.#faults, sysctl: this.sysctl });
    this.#iptables = new FakeIptables(host, options);
    this.world = {
      exec: programs({ ip: createFakeIp(this.#links, this.#faults), ipset: this.ipset.exec }, this.#iptables.exec),
      netlink: this.#netlink,
      clock: this.#clock,
      log: this.#log,
      ipvs: this.ipvs,
      losesReusedPorts: false,
    };
    this.#netlink.serveSets((name) => this.ipset.sets.get(name)?.entries.size);
    this.ipset.run("restore", "create SOMEBODYS hash:ip family inet\nadd SOMEBODYS 192.0.2.9\n");
    const service = { family: "IPv4", protocol: "TCP", address: "192.0.2.80", port: 80 } as const;
    this.ipvs.run(
      { verb: "add-service", service: { ...service, scheduler: "rr", flags: 0, timeoutSeconds: 0, clientPrefixLength: 32 } },
      { verb: "add-server", service, server: { address: "192.0.2.81", port: 80, weight: 1 } },
    );
    this.#reportAddresses();
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
    this.#addresses = addresses;
    this.#reportAddresses();
  }

  trace(packet: Packet, random: () => number): Trace {
    return this.#iptables.trace(
      packet,
      this.#following(random, (ends) => this.ipvs.trace(ends, random)),
    );
  }

  connect(packet: Packet, random: () => number): Trace {
    const trace = this.#iptables.connect(
      packet,
      this.#following(random, (ends) => this.ipvs.connect(ends, random)),
    );
    if (trace.is === "forward" || trace.is === "pass") rememberFlow(this.#netlink, packet, trace.endpoint);
    return trace;
  }

  counted(): number {
    return this.ipvs.connected;
  }

  setFault(fault: Fault | undefined): void {
    this.#faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.#faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    const acts = [
      () => this.#tamperWithRules(random),
      () => this.#tamperWithSets(random),
      () => this.#tamperWithServers(random),
      () => this.#tamperWithAddresses(random),
    ];
    const first = Math.floor(random() * acts.length);
    for (let tries = 0; tries < acts.length; tries++) {
      const done = acts[(first + tries) % acts.length]?.();
      if (done !== undefined) return done;
    }
    return undefined;
  }

  own(): readonly string[] {
    return [
      ...this.#iptables.ruleSets.flatMap((rules) => linesOf(rules, "own", OWNERSHIP)),
      ...this.#setLines(isOwnSet),
      ...this.#serverLines((address) => this.#isOwnServer(address)),
      ...this.#links.addresses.map(({ ip, link }) => `${familyOf(ip)} address ${ip} on ${link}`).toSorted(),
    ];
  }

  written(): number {
    return this.#iptables.written + this.ipset.written + this.ipvs.written + this.#boundCount;
  }

  external(): readonly string[] {
    return [
      ...this.#iptables.ruleSets.flatMap((rules) => linesOf(rules, "foreign", OWNERSHIP)),
      ...this.#setLines((name) => !isOwnSet(name)),
      ...this.#serverLines((address) => !this.#isOwnServer(address)),
      ...[...this.#links.devices].filter(([name]) => name !== DEVICE).map(([name, kind]) => `${kind} ${name}`),
    ];
  }

  #setLines(isWanted: (name: string) => boolean): readonly string[] {
    return [...this.ipset.sets]
      .filter(([name]) => isWanted(name))
      .flatMap(([name, { entries }]) => [`set ${name}`, ...[...entries.keys()].map((entry) => `entry ${name} ${entry}`).toSorted()])
      .toSorted();
  }

  #isOwnServer(address: string): boolean {
    return address !== "192.0.2.80";
  }

  /** Real servers of weight 0 are on their way out. */
  #serverLines(isWanted: (address: string) => boolean): readonly string[] {
    return this.ipvs
      .virtualServers()
      .filter(({ address }) => isWanted(address))
      .flatMap(({ family, protocol, address, port, scheduler, flags, timeoutSeconds, realServers }) => {
        const name = `${family} ${protocol} ${hostPort(address, port)}`;
        return [
          `service ${name} ${scheduler} flags ${flags} timeout ${timeoutSeconds}`,
          ...realServers
            .filter(({ weight }) => weight > 0)
            .map((server) => `server ${name} ${hostPort(server.address, server.port)} ${server.weight}`),
        ];
      })
      .toSorted();
  }

  #tamperWithRules(random: () => number): string | undefined {
    const tampering = tamperWith(this.#iptables.ruleSets, random, isOwnChain);
    if (tampering === undefined) return undefined;
    const { variant, family } = tampering.rules;
    this.#iptables.write(variant, family, tampering.input);
    return `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore: ${tampering.input.trimEnd().replaceAll("\n", "; ")}`;
  }

  #tamperWithSets(random: () => number): string | undefined {
    const entries = [...this.ipset.sets].flatMap(([name, set]) =>
      isOwnSet(name) ? [...set.entries.keys()].map((entry) => `${name} ${entry}`) : [],
    );
    const chosen = entries[Math.floor(random() * entries.length)];
    if (chosen === undefined) return undefined;
    if (random() < 0.2) {
      const [name = ""] = chosen.split(" ");
      this.ipset.run(`flush ${name}`);
      return `ipset flush ${name}`;
    }
    this.ipset.run(`del ${chosen}`);
    return `ipset del ${chosen}`;
  }

  #tamperWithServers(random: () => number): string | undefined {
    const services = this.ipvs.virtualServers().filter(({ address }) => this.#isOwnServer(address));
    const service = services[Math.floor(random() * services.length)];
    if (service === undefined) return undefined;
    const [server] = service.realServers;
    const name = hostPort(service.address, service.port);
    const roll = random();
    if (server === undefined || roll < 0.3) {
      this.ipvs.run({ verb: "delete-service", service });
      return `ipvsadm: took ${name}`;
    }
    if (roll < 0.55) {
      this.ipvs.run({ verb: "delete-server", service, server });
      return `ipvsadm: took a server of ${name}`;
    }
    if (roll < 0.8) {
      const weight = server.weight === 0 ? 7 : 0;
      this.ipvs.run({ verb: "edit-server", service, server: { ...server, weight } });
      return `ipvsadm: weight ${weight} for a server of ${name}`;
    }
    const address = service.family === "IPv4" ? "198.18.0.9" : "2001:db8::9";
    this.ipvs.run({ verb: "add-server", service, server: { address, port: 80, weight: 1 } });
    return `ipvsadm: added a server to ${name}`;
  }

  #tamperWithAddresses(random: () => number): string | undefined {
    const { addresses } = this.#links;
    const [gone] = addresses.splice(Math.floor(random() * addresses.length), 1);
    if (gone === undefined) return undefined;
    this.#reportAddresses();
    return `took ${gone.ip} off ${gone.link}`;
  }

  #following(random: () => number, balance: Balance): Parameters<FakeIptables["trace"]>[1] {
    const local = new Set([...this.#addresses, ...this.#links.addresses].map(({ ip }) => ip));
    return { isLocal: (address) => local.has(address) || (address.startsWith("127.") && local.has("127.0.0.1")), random, balance };
  }

  #reportAddresses(): void {
    this.#boundCount++;
    for (const family of FAMILIES) {
      this.#netlink.setAddresses(
        family,
        [...this.#addresses, ...this.#links.addresses].filter(({ ip }) => familyOf(ip) === family),
      );
    }
  }
}

/** Programs by name, each with its own exec; all others are `others`. */
function programs(known: Readonly<Record<string, Exec>>, others: Exec): Exec {
  const execOf = (file: string): Exec => known[file.slice(file.lastIndexOf("/") + 1)] ?? others;
  return {
    run: (file, args, options) => execOf(file).run(file, args, options),
    open: (file, args) => execOf(file).open(file, args),
  };
}
