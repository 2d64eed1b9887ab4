import { objectId, parseIP } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { GUARD_CHAIN, GUARD_JUMPS, GUARD_RULE, isOwnChain, JUMPS, SHARED_CHAINS } from "./layout.ts";
import type { TableName } from "./layout.ts";
import { MISPLACED, placeOf } from "./objects.ts";
import type { IptablesObject } from "./objects.ts";

const TABLES: readonly TableName[] = ["filter", "nat", "mangle"];
const TO_NODE_PORTS = "-j KUBE-NODEPORTS";

/** What `iptables-save` printed of each table. */
export type Saved = Readonly<Record<TableName, string>>;

/**
 * Read the objects out of what `iptables-save` printed.
 *
 * Shape: only chains with our names, and jumps to them; whatever else is there is not looked at (k/k#112477: rules of a newer tool may not
 * even be readable).
 * Edges: in shared chains every rule counts as ours, so that what somebody put there goes; `hasGuard`: look for the guard as well.
 */
export function parseSaved(saved: Saved, family: IPFamily, hasGuard: boolean): ReadonlyMap<string, IptablesObject> {
  const objects = new Map<string, IptablesObject>();
  const add = (object: IptablesObject): void => void objects.set(objectId(object), object);
  for (const table of TABLES) {
    const chains = readTable(saved[table], table, family, hasGuard);
    for (const [name, rules] of chains) {
      const key = `${table} ${name}`;
      if (SHARED_CHAINS[table].includes(name)) for (const object of sharedObjects(key, rules)) add(object);
      else if (isOwnChain(table, name)) add({ kind: "chain", key, value: rules.join("\n") });
      else for (const object of outsideObjects(table, name, rules, hasGuard)) add(object);
    }
  }
  return objects;
}

/** Tell from the tail of nat KUBE-SERVICES whether node ports answer on loopback: only then is route_localnet ours. */
export function answersOnLoopback(objects: ReadonlyMap<string, IptablesObject>): boolean {
  const tail = objects.get("shared nat KUBE-SERVICES")?.value;
  if (typeof tail !== "string") return false;
  return tail.split("\n").some((rule) => (rule.includes("--dst-type LOCAL") && !rule.startsWith("! -d ")) || rule.startsWith("-d 127."));
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
function readTable(text: string, table: TableName, family: IPFamily, hasGuard: boolean): ReadonlyMap<string, readonly string[]> {
  const chains = new Map<string, string[]>();
  const isOurs = (name: string): boolean =>
    SHARED_CHAINS[table].includes(name) || isOwnChain(table, name) || (hasGuard && table === "filter" && name === GUARD_CHAIN);
  for (const line of text.split("\n")) {
    if (line.startsWith(":")) {
      const name = line.slice(1, line.indexOf(" "));
      if (isOurs(name)) chains.set(name, []);
    } else if (line.startsWith("-A ")) {
      const end = line.indexOf(" ", 3);
      const name = end < 0 ? line.slice(3) : line.slice(3, end);
      const rule = end < 0 ? "" : line.slice(end + 1).trimEnd();
      const rules = chains.get(name);
      if (rules !== undefined) rules.push(family === "IPv6" ? canonicalAddresses(rule) : rule);
      else if (JUMP_SOURCES.has(`${table} ${name}`)) chains.set(name, [rule]);
    }
  }
  return chains;
}

const JUMP_SOURCES: ReadonlySet<string> = new Set([
  ...JUMPS.map(({ table, from }) => `${table} ${from}`),
  ...GUARD_JUMPS.map((from) => `filter ${from}`),
]);

/** The C library writes the last 32 bits of some IPv6 addresses with dots; we never do. */
function canonicalAddresses(rule: string): string {
  if (!/:\d+\.\d+\./.test(rule)) return rule;
  return rule.replace(/[0-9a-f:]+:\d+\.\d+\.\d+\.\d+/g, (text) => parseIP(text)?.text ?? text);
}

function sharedObjects(key: string, rules: readonly string[]): readonly IptablesObject[] {
  const hasTail = key === "nat KUBE-SERVICES";
  const tail: string[] = [];
  const counts = new Map<string, number>();
  let isLast = true;
  for (const rule of rules) {
    if (hasTail && rule.endsWith(TO_NODE_PORTS)) tail.push(rule);
    else {
      isLast &&= tail.length === 0;
      counts.set(rule, (counts.get(rule) ?? 0) + 1);
    }
  }
  const value = [...(isLast ? [] : [MISPLACED]), ...tail].join("\n");
  return [
    { kind: "shared", key, value },
    ...Array.from(counts, ([rule, count]): IptablesObject => ({ kind: "rule", key: `${key} ${rule}`, value: count })),
  ];
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

/** A service proxy's own jump, also of a version that matched otherwise; what somebody else sends to our chains is his. */
function isJump(table: TableName, rule: string): boolean {
  return rule.includes('--comment "kubernetes ') && JUMPS.some((jump) => jump.table === table && rule.endsWith(`-j ${jump.to}`));
}
