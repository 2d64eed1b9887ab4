import { objectId } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import { placeOf, readSaved, rulesOf, sharedObjects } from "@turnout/host/iptables/text";
import type { TableName } from "@turnout/host/iptables/text";
import { GUARD_CHAIN, GUARD_JUMPS, GUARD_RULE, isOwnChain, JUMPS, SHARED_CHAINS } from "./layout.ts";
import type { IptablesObject } from "./objects.ts";

const TABLES: readonly TableName[] = ["filter", "nat", "mangle"];
const TO_NODE_PORTS = "-j KUBE-NODEPORTS";
/** How the comments of jumps begin in every mode but for one of ipvs mode's. */
const OF_A_PROXY = '--comment "kubernetes ';
/** In the jumps of ipvs mode, and of no other, to filter KUBE-PROXY-FIREWALL. */
export const OF_IPVS_MODE = '--comment "kube-proxy firewall rules"';

/** What `iptables-save` printed of each table. */
export type Saved = Readonly<Record<TableName, string>>;

/**
 * Read the objects out of what `iptables-save` printed.
 *
 * Shape: only chains with our names, and jumps to them; whatever else is there is not looked at.
 * Edges: in shared chains every rule counts as ours, so that what somebody put there goes; `hasGuard`: look for the guard as well.
 */
export function parseSaved(saved: Saved, family: IPFamily, hasGuard: boolean): ReadonlyMap<string, IptablesObject> {
  const objects = new Map<string, IptablesObject>();
  const add = (object: IptablesObject): void => void objects.set(objectId(object), object);
  for (const table of TABLES) {
    const chains = readTable(saved[table], table, family, hasGuard);
    for (const [name, rules] of chains) {
      const key = `${table} ${name}`;
      if (SHARED_CHAINS[table].includes(name))
        for (const object of sharedObjects(key, rulesOf(rules), (rule) => isTail(key, rule))) add(object);
      else if (isOwnChain(table, name)) add({ kind: "chain", key, value: rules });
      else for (const object of outsideObjects(table, name, rulesOf(rules), hasGuard)) add(object);
    }
  }
  return objects;
}

/** Write what `iptables -S` printed of some chains of one table as `iptables-save` prints a table. */
export function savedOf(table: TableName, listed: Iterable<string>): string {
  const lines = Array.from(listed, (text) => text.split("\n")).flat();
  const heads = lines.flatMap((line) => /^-[PN] (\S+)/.exec(line)?.[1] ?? []);
  return [`*${table}`, ...heads.map((name) => `:${name} - [0:0]`), ...lines.filter((line) => line.startsWith("-A ")), "COMMIT"].join("\n");
}

/** Tell from the tail of nat KUBE-SERVICES whether node ports answer on loopback: only then is route_localnet ours. */
export function answersOnLoopback(objects: ReadonlyMap<string, IptablesObject>): boolean {
  const tail = objects.get("shared nat KUBE-SERVICES")?.value;
  if (typeof tail !== "string") return false;
  return tail.split("\n").some((rule) => (rule.includes("--dst-type LOCAL") && !rule.startsWith("! -d ")) || rule.startsWith("-d 127."));
}

/** Tell whether packets for Services are sent to the chains: those that kubelet makes as well, such as nat KUBE-MARK-MASQ, are none of a service proxy's. */
export function sendsServices(objects: Iterable<IptablesObject>): boolean {
  return [...objects].some(
    ({ kind, key, value }) => kind === "jumps" && key.startsWith("nat ") && String(value).includes("-j KUBE-SERVICES"),
  );
}

/** Count the rules in force per table, as far as they are ours. */
export function countRules(objects: Iterable<IptablesObject>): Readonly<Record<"filter" | "nat", number>> {
  const counts = { filter: 0, nat: 0 };
  for (const object of objects) {
    const table = object.key.startsWith("nat ") ? "nat" : object.key.startsWith("filter ") ? "filter" : undefined;
    if (table === undefined) continue;
    if (object.kind === "guard") counts[table] += placeOf(object).rule === "" ? 0 : 1;
    else if (typeof object.value === "number") counts[table] += object.value;
    else if (typeof object.value === "string" && object.value !== "") counts[table] += object.value.split("\n").length;
  }
  return counts;
}

/** The chains of one table that concern us, with their rules. */
function readTable(text: string, table: TableName, family: IPFamily, hasGuard: boolean): ReadonlyMap<string, string> {
  return readSaved(
    text,
    family,
    (name) =>
      SHARED_CHAINS[table].includes(name) ||
      isOwnChain(table, name) ||
      (hasGuard && table === "filter" && name === GUARD_CHAIN) ||
      JUMP_SOURCES.has(`${table} ${name}`),
  );
}

/** Chains of the kernel's, each behind its table, that lead to ours. */
export const JUMP_SOURCES: ReadonlySet<string> = new Set([
  ...JUMPS.map(({ table, from }) => `${table} ${from}`),
  ...GUARD_JUMPS.map((from) => `filter ${from}`),
]);

/** The tail of nat KUBE-SERVICES leads to the node ports. */
function isTail(key: string, rule: string): boolean {
  return key === "nat KUBE-SERVICES" && rule.endsWith(TO_NODE_PORTS);
}

/** Jumps in the kernel's chains, and what kubelet shares with us. */
function outsideObjects(table: TableName, chain: string, rules: readonly string[], hasGuard: boolean): readonly IptablesObject[] {
  const where = `${table} ${chain}`;
  if (chain === GUARD_CHAIN) {
    const rule: readonly IptablesObject[] = rules.includes(GUARD_RULE)
      ? [{ kind: "guard", key: `${where} ${GUARD_RULE}`, value: true }]
      : [];
    return [{ kind: "guard", key: where, value: true }, ...rule];
  }
  const own = rules.filter((rule) => isJump(table, rule));
  const jumps: readonly IptablesObject[] = own.length === 0 ? [] : [{ kind: "jumps", key: where, value: own.join("\n") }];
  const toGuard = `-j ${GUARD_CHAIN}`;
  const isGuarded = hasGuard && table === "filter" && GUARD_JUMPS.includes(chain) && rules.includes(toGuard);
  return isGuarded ? [...jumps, { kind: "guard", key: `${where} ${toGuard}`, value: true }] : jumps;
}

/**
 * A service proxy's own jump, also of a version that matched otherwise; what somebody else sends to our chains is his.
 *
 * Edges: the jumps of ipvs mode to the chain that both modes have count. They match open connections, too, which our rules there would drop.
 */
function isJump(table: TableName, rule: string): boolean {
  return (
    (rule.includes(OF_A_PROXY) || rule.includes(OF_IPVS_MODE)) &&
    JUMPS.some((jump) => jump.table === table && rule.endsWith(`-j ${jump.to}`))
  );
}
