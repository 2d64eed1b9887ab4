import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import { hostPort, objectId } from "@turnout/core/backend";
import type { IPFamily, Observed } from "@turnout/core/backend";
import { portEntry } from "@turnout/host/ipset/text";
import type { SavedSet } from "@turnout/host/ipset/text";
import type { IpvsListing, IpvsTimeouts, VirtualServer } from "@turnout/host/ipvs/model";
import { readSaved, rulesOf, sharedObjects } from "@turnout/host/iptables/text";
import type { TableName } from "@turnout/host/iptables/text";
import { FORMER_JUMPS, isOwnChain, JUMPS, SHARED_CHAINS } from "./layout.ts";
import { SET_BASES, setName } from "./names.ts";
import type { SetBase } from "./names.ts";
import { serviceKey } from "./objects.ts";
import type { IpvsObject } from "./objects.ts";
import type { IpvsOptions } from "./options.ts";
import { MARK_FLAG, serviceObject } from "./servers.ts";
import { savedSetObject } from "./sets.ts";

/** What the host holds, as its tools tell it. */
export interface Look {
  /** What `iptables-save` printed of each table. */
  readonly saved: Readonly<Record<TableName, string>>;
  /** Our sets, by name; those that aren't there are missing. */
  readonly sets: ReadonlyMap<string, SavedSet>;
  readonly listing: IpvsListing;
  /** Addresses on our device. */
  readonly bound: readonly string[];
  /** The host's other addresses. */
  readonly hostAddresses: readonly string[];
  /** Kernel parameters that we set, by name. */
  readonly parameters: ReadonlyMap<string, string>;
  /** Undefined: IPVS isn't there. */
  readonly timeouts: IpvsTimeouts | undefined;
}

const TABLES: readonly TableName[] = ["filter", "nat", "mangle"];

/** Sets whose members say that a virtual server at an address of the host is ours. */
const SPEAKING: readonly SetBase[] = [
  "KUBE-CLUSTER-IP",
  "TURNOUT-INTERNAL",
  "KUBE-EXTERNAL-IP",
  "KUBE-EXTERNAL-IP-LOCAL",
  "KUBE-LOAD-BALANCER",
  "KUBE-NODE-PORT-SCTP-HASH",
  "TURNOUT-DROP",
];

/**
 * Read what is ours out of a look at the host.
 *
 * Shape: a virtual server is ours where it has our mark, its address is on our device, its address and port are in one of our sets, or where the host
 * has its address and its port is in the set of node ports, as kube-proxy's. Real servers of TCP with weight 0 are on their way out.
 * Edges: in `excludeCIDRs` an address on our device says nothing: only what our sets name is ours.
 */
export function readLook(
  look: Look,
  family: IPFamily,
  { excludeCIDRs, timeouts }: Pick<IpvsOptions, "excludeCIDRs" | "timeouts">,
): Observed<IpvsObject> {
  const objects = new Map<string, IpvsObject>();
  const lingering: IpvsObject[] = [];
  const add = (object: IpvsObject): void => void objects.set(objectId(object), object);
  for (const table of TABLES) for (const object of objectsOf(look.saved[table], table, family)) add(object);
  for (const [name, set] of look.sets) {
    add(savedSetObject(name, set));
    for (const entry of set.entries) add({ kind: "entry", key: `${name} ${entry}`, value: true });
  }
  for (const ip of look.bound) add({ kind: "address", key: ip, value: true });
  for (const [key, value] of look.parameters) add({ kind: "sysctl", key, value });
  // Those that are left to the kernel are nobody's.
  for (const key of ["tcp", "tcpFin", "udp"] as const)
    if (look.timeouts !== undefined && timeouts[key] !== 0) add({ kind: "timeout", key, value: look.timeouts[key] });
  const isOurs = ownership(look, family, excludeCIDRs);
  for (const server of look.listing.virtualServers) {
    if (!isOurs(server)) continue;
    const key = serviceKey(server);
    add(serviceObject(key, server));
    for (const { address, port, weight } of server.realServers) {
      const object: IpvsObject = { kind: "server", key: `${key} ${hostPort(address, port)}`, value: weight };
      // Of other protocols than TCP those of weight 0 are wanted so, or go at once.
      if (weight === 0 && server.protocol === "TCP") lingering.push(object);
      else add(object);
    }
  }
  return { objects, lingering };
}

/** Tell which virtual servers are ours. Those that a part of a look shows to be ours are so by all of it. Pure. */
export function ownership(
  { sets, bound, hostAddresses }: Pick<Look, "sets" | "bound" | "hostAddresses">,
  family: IPFamily,
  excludeCIDRs: readonly string[],
): (server: VirtualServer) => boolean {
  const excluded = excludeCIDRs.flatMap((text) => parseCIDR(text) ?? []);
  const entriesOf = (base: SetBase): readonly string[] => sets.get(setName(base, family))?.entries ?? [];
  const members = new Set(SPEAKING.flatMap(entriesOf));
  const nodePorts = new Set(
    (["TCP", "UDP"] as const).flatMap((protocol) => entriesOf(`KUBE-NODE-PORT-${protocol}`).map((port) => `${protocol} ${port}`)),
  );
  const own = new Set([...bound, ...entriesOf("KUBE-IPVS-IPS")]);
  const host = new Set(hostAddresses);
  return ({ protocol, address, port, flags }) => {
    if ((flags & MARK_FLAG) !== 0) return true;
    if (members.has(portEntry(address, protocol, port)) || (host.has(address) && nodePorts.has(`${protocol} ${port}`))) return true;
    const ip = parseIP(address);
    return own.has(address) && !(ip !== undefined && excluded.some((cidr) => cidrContains(cidr, ip)));
  };
}

/** The chains of one table that concern us, and our jumps. */
function objectsOf(text: string, table: TableName, family: IPFamily): readonly IpvsObject[] {
  const sources = new Set([...JUMPS, ...FORMER_JUMPS].filter((jump) => jump.table === table).map(({ from }) => from));
  const chains = readSaved(text, family, (name) => SHARED_CHAINS[table].includes(name) || isOwnChain(table, name) || sources.has(name));
  return [...chains].flatMap(([name, rules]): readonly IpvsObject[] => {
    const key = `${table} ${name}`;
    if (SHARED_CHAINS[table].includes(name)) return sharedObjects(key, rulesOf(rules), () => false);
    if (isOwnChain(table, name)) return [{ kind: "chain", key, value: rules }];
    const own = rulesOf(rules).filter((rule) => isJump(table, rule));
    return own.length === 0 ? [] : [{ kind: "jumps", key, value: own.join("\n") }];
  });
}

/** A service proxy's own jump, also into a chain that only kube-proxy has. What somebody else sends to our chains is his. */
function isJump(table: TableName, rule: string): boolean {
  const target = / -j (\S+)$/.exec(rule)?.[1] ?? "";
  return /--comment "(?:kubernetes |kube-proxy )/.test(rule) && isOwnChain(table, target);
}

/** The names of all our sets in a family. */
export function ownSets(family: IPFamily): readonly string[] {
  return SET_BASES.map((base) => setName(base, family));
}
