import { FAMILIES, familyOf, hostPort } from "@turnout/core";
import type { FakeHost, Packet, Trace } from "@turnout/conformance";
import type { Exec } from "@turnout/core";
import { LinuxFakeHost } from "@turnout/fakes";
import { createFakeIp, createFakeSysctl } from "@turnout/host/testing";
import type { FollowOptions } from "@turnout/fakes";
import type { FakeSysctl } from "@turnout/host/testing";
import { FakeIpset } from "@turnout/fakes/ipset";
import { FakeIptables, linesOf } from "@turnout/fakes/iptables";
import type { FakeIptablesOptions, RuleOwnership } from "@turnout/fakes/iptables";
import { FakeIpvs } from "@turnout/fakes/ipvs";
import { isOwnChain, SHARED_CHAINS } from "../layout.ts";
import { DEVICE } from "../names.ts";
import { ownSets } from "../observe.ts";
import type { IpvsWorld } from "../world.ts";

const TABLES = ["filter", "nat", "mangle"] as const;

/** What in the tables is this backend's. */
const OWNERSHIP: RuleOwnership = {
  isOwnChain: (name) => TABLES.some((table) => isOwnChain(table, name) || SHARED_CHAINS[table].includes(name)),
  isSharedChain: (_, name) => TABLES.some((table) => SHARED_CHAINS[table].includes(name)),
  isTail: () => false,
};
const OWN_SETS: ReadonlySet<string> = new Set(FAMILIES.flatMap(ownSets));

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

class FakeIpvsHost extends LinuxFakeHost implements IpvsFakeHost {
  readonly world: IpvsWorld;
  readonly sysctl: FakeSysctl = createFakeSysctl(SYSCTLS);
  readonly ipset: FakeIpset;
  readonly ipvs: FakeIpvs;
  readonly #iptables: FakeIptables;

  constructor(options: FakeIptablesOptions) {
    super();
    const { clock, netlink, faults, log, sysctl } = this;
    this.ipset = new FakeIpset({ faults, isNamed: (name) => this.#iptables.isSetNamed(name) });
    const host = { clock, netlink, sysctl, faults, sets: this.ipset };
    this.ipvs = new FakeIpvs({ clock, faults, sysctl });
    this.#iptables = new FakeIptables(host, options);
    this.world = {
      exec: programs({ ip: createFakeIp(this.links, faults), ipset: this.ipset.exec }, this.#iptables.exec),
      netlink,
      clock,
      log,
      ipvs: this.ipvs,
      losesReusedPorts: false,
    };
    netlink.serveSets((name) => this.ipset.sets.get(name)?.entries.size);
    this.ipset.run("restore", "create SOMEBODYS hash:ip family inet\nadd SOMEBODYS 192.0.2.9\n");
    const service = { family: "IPv4", protocol: "TCP", address: "192.0.2.80", port: 80 } as const;
    this.ipvs.run(
      { verb: "add-service", service: { ...service, scheduler: "rr", flags: 0, timeoutSeconds: 0, clientPrefixLength: 32 } },
      { verb: "add-server", service, server: { address: "192.0.2.81", port: 80, weight: 1 } },
    );
  }

  counted(): number {
    return this.ipvs.connected;
  }

  tamper(random: () => number): string | undefined {
    const acts = [
      () => this.#iptables.tamper(random, OWNERSHIP.isOwnChain),
      () => this.#tamperWithSets(random),
      () => this.#tamperWithServers(random),
      () => this.takeAddress(random),
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
      ...this.#setLines((name) => OWN_SETS.has(name)),
      ...this.#serverLines((address) => this.#isOwnServer(address)),
      ...this.links.addresses.map(({ ip, link }) => `${familyOf(ip)} address ${ip} on ${link}`).toSorted(),
    ];
  }

  written(): number {
    return this.#iptables.written + this.ipset.written + this.ipvs.written + this.reported;
  }

  external(): readonly string[] {
    return [
      ...this.#iptables.ruleSets.flatMap((rules) => linesOf(rules, "foreign", OWNERSHIP)),
      ...this.#setLines((name) => !OWN_SETS.has(name)),
      ...this.#serverLines((address) => !this.#isOwnServer(address)),
      ...[...this.links.devices].filter(([name]) => name !== DEVICE).map(([name, kind]) => `${kind} ${name}`),
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

  #tamperWithSets(random: () => number): string | undefined {
    const entries = [...this.ipset.sets].flatMap(([name, set]) =>
      OWN_SETS.has(name) ? [...set.entries.keys()].map((entry) => `${name} ${entry}`) : [],
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

  protected follow(packet: Packet, options: FollowOptions, stays: boolean): Trace {
    const { random } = options;
    return this.#iptables.follow(packet, options, stays, (ends) =>
      stays ? this.ipvs.connect(ends, random) : this.ipvs.trace(ends, random),
    );
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
