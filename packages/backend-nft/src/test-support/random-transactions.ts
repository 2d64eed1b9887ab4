import { pickOne } from "@turnout/core/testing";
import { concat, ct, goTo, match, meta, numgen, payload, setMark, vmap } from "@turnout/host/nft-statement";
import type { NftRuleStatement, NftStatement } from "@turnout/host/nft-statement";
import { Commands } from "./commands.ts";

/** What names something, by the word in front of it: another such name may stand there, too. */
const NAMES: ReadonlySet<string> = new Set([
  "name",
  "table",
  "chain",
  "set",
  "target",
  "data",
  "key",
  "value",
  "comment",
  "hook",
  "prio",
  "handle",
]);

/** Where a statement names something. */
interface Place {
  readonly word: string;
  readonly value: string | number;
  readonly path: readonly string[];
}

function placesIn(value: unknown, path: readonly string[] = []): readonly Place[] {
  const word = path.at(-1) ?? "";
  if ((typeof value === "string" || typeof value === "number") && NAMES.has(word)) return [{ word, value, path }];
  // What an element's parts are follows from its set, and what is asked of a packet stays.
  if (typeof value !== "object" || value === null || ["parts", "meta", "ct", "payload"].includes(word)) return [];
  return Object.entries(value).flatMap(([key, inner]) => placesIn(inner, [...path, key]));
}

function withValue<T>(tree: T, [first, ...rest]: readonly string[], value: unknown): T {
  if (first === undefined) return value as T;
  if (Array.isArray(tree))
    return tree.map((item, index) => (String(index) === first ? withValue(item as unknown, rest, value) : (item as unknown))) as T;
  return { ...tree, [first]: withValue((tree as Readonly<Record<string, unknown>>)[first], rest, value) };
}

/** Break a transaction in one place, as another program's mistake, or a backend with a fault, would. */
export function mutate(
  statements: readonly NftStatement[],
  others: readonly NftStatement[],
  random: () => number,
): readonly NftStatement[] {
  const at = Math.floor(random() * statements.length);
  const statement = statements[at];
  if (statement === undefined) return statements;
  switch (Math.floor(random() * 8)) {
    case 0:
      return statements.toSpliced(at, 1);
    case 1:
      return statements.toSpliced(at, 0, statement);
    case 2:
      return statements.toSpliced(Math.floor(random() * statements.length), 0, pickOne(others, random));
    case 3:
      return statements.length < 2 ? statements : [...statements.slice(at), ...statements.slice(0, at)];
    default: {
      const places = placesIn(statement);
      if (places.length === 0) return statements;
      const { word, path } = pickOne(places, random);
      const donors = placesIn(pickOne(others, random)).filter((place) => place.word === word);
      const stray = { name: "nope", table: "nope", target: "nope", comment: "x".repeat(129) }[word];
      if (donors.length === 0 && stray === undefined) return statements;
      const value = stray !== undefined && (donors.length === 0 || random() < 0.3) ? stray : pickOne(donors, random).value;
      return statements.with(at, withValue(statement, path, value));
    }
  }
}

const t = new Commands("turnout");
const MARK = meta("mark");
const PARTS: readonly (readonly NftRuleStatement[])[] = [
  [match(payload("ip", "daddr"), "10.96.0.1")],
  [match(payload("ip", "saddr"), { prefix: { addr: "10.1.0.0", len: 16 } }, "!=")],
  [match(payload("ip", "daddr"), "@cluster-ips")],
  [match(payload("ip", "daddr"), "@cluster-ips", "!=")],
  [match(concat(payload("ip", "saddr"), payload("ip", "daddr")), "@hairpin")],
  [match(payload("ip6", "daddr"), "fd00:96::1")],
  [match(payload("tcp", "dport"), 80)],
  [match(payload("tcp", "dport"), { set: [80, 443] })],
  [match(payload("tcp", "dport"), { range: [1, 1_024] })],
  [match(payload("udp", "dport"), 53, "!=")],
  [match(meta("l4proto"), { set: ["tcp", "udp"] })],
  [match(MARK, 0x4000)],
  [match({ "&": [MARK, 0x4000] }, 0x4000)],
  [setMark(5)],
  [setMark({ "|": [MARK, 0x4000] })],
  [match(ct("state"), "new", "in")],
  [match(ct("status"), "dnat", "in")],
  [match(meta("iifname"), "veth*")],
  [match(meta("oifname"), "lo")],
  [match({ fib: { result: "type", flags: ["daddr"] } }, "local")],
  [{ counter: null }],
  [{ map: { op: "update", elem: { elem: { val: payload("ip", "saddr"), timeout: 3_000 } }, data: 2 ** 30, map: "@clients" } }],
  [{ map: { op: "delete", elem: payload("ip", "saddr"), data: meta("priority"), map: "@clients" } }],
  [{ mangle: { key: meta("priority"), value: { map: { key: payload("ip", "saddr"), data: "@clients" } } } }],
  [{ mangle: { key: meta("priority"), value: 2 ** 30 } }],
  [{ mangle: { key: meta("priority"), value: numgen(2, 2 ** 29) } }],
  [match(payload("tcp", "dport"), "@cluster-ips")],
  [match(payload("ip", "daddr"), "@services")],
  [],
];
const ENDS: readonly NftRuleStatement[] = [
  { drop: null },
  { accept: null },
  { return: null },
  goTo("refuse"),
  { jump: { target: "refuse" } },
  goTo("dispatch"),
  goTo("nope"),
  { jump: { target: "nat-prerouting" } },
  { reject: null },
  { masquerade: null },
  { masquerade: { flags: "fully-random" } },
  { dnat: { addr: "10.1.0.1" } },
  { snat: { addr: "10.1.0.1" } },
  {
    dnat: {
      family: "ip",
      addr: { map: { key: concat(payload("ip", "daddr"), payload("tcp", "dport"), numgen(2)), data: "@endpoints-tcp" } },
    },
  },
  { dnat: { family: "ip", addr: { map: { key: concat(payload("tcp", "dport"), numgen(2)), data: "@nodeport-endpoints-tcp" } } } },
  vmap(concat(payload("ip", "daddr"), meta("l4proto"), payload("th", "dport")), "@services"),
  vmap(concat(meta("l4proto"), payload("th", "dport")), "@nodeports"),
  vmap(payload("ip", "daddr"), "@services"),
  vmap(payload("tcp", "dport"), {
    set: [
      [80, { accept: null }],
      [443, goTo("refuse")],
    ],
  }),
  vmap(meta("priority"), "@serving"),
  goTo("a"),
  { jump: { target: "b" } },
  { jump: { target: "c" } },
];
const ELEMENTS: readonly (readonly [set: string, ...elements: readonly (string | readonly [string, string])[]])[] = [
  ["cluster-ips", "10.96.0.1"],
  ["cluster-ips", "10.96.0.99", "10.96.0.98"],
  ["cluster-ips", "fd00:96::9"],
  ["services", ["10.96.0.9 . tcp . 80", "drop"]],
  ["services", ["10.96.0.9 . tcp . 80", "goto refuse"]],
  ["services", ["10.96.0.9 . tcp . 80", "goto nope"]],
  ["services", "10.96.0.9 . tcp . 80"],
  ["services", ["10.96.0.9 . tcp", "drop"]],
  ["services", ["10.96.0.9 . tcp . 70000", "drop"]],
  ["services", ["10.96.0.9 . tcp . 80", "goto nat-prerouting"]],
  ["services", ["10.96.0.9 . tcp . 80", "goto a"]],
  ["services", ["10.96.0.9 . tcp . 81", "jump dispatch"]],
  ["nope", "1"],
  ["endpoints-tcp", ["10.96.0.9 . 80 . 0", "10.1.0.1 . 8080"]],
  ["endpoints-tcp", ["10.96.0.9 . 80 . 0", "10.1.0.2 . 8080"]],
  ["endpoints-tcp", ["10.96.0.9 . 80 . 4294967295", "10.1.0.1 . 1"]],
  ["endpoints-tcp", ["10.96.0.9 . 80 . 4294967296", "10.1.0.1 . 1"]],
  ["endpoints-tcp", ["10.96.0.9 . 80 . 3", "drop"]],
  ["hairpin", "10.1.0.1 . 10.1.0.1"],
  ["hairpin", "10.1.0.1"],
  ["nodeports", ["tcp . 30000", "goto b"]],
  ["nodeports", ["tcp . 30000", "drop"], ["udp . 30000", "goto refuse"]],
  ["serving", ["1073741825", "goto c"]],
  ["small", "1", "2", "3"],
  ["small", "4"],
  ["timed", "10.0.0.1"],
  ["marks", ["5", "16"]],
  ["marks", ["5", "17"]],
];
const LONG = "n".repeat(255);
const CHANGES: readonly NftStatement[] = [
  { add: t.table() },
  { create: t.table() },
  { add: new Commands("other").table() },
  { delete: new Commands("other").table() },
  { delete: new Commands("nope").table() },
  ...["dispatch", "nope", "a", "b", "c"].map((name) => ({ flush: t.chain(name) })),
  ...["a", "b", "c", LONG, `${LONG}n`, "nat-prerouting"].map((name) => ({ add: t.chain(name) })),
  { create: t.chain("a") },
  ...["a", "b", "c", "refuse", "nope", "base", LONG].map((name) => ({ delete: t.chain(name) })),
  { add: t.hooked("base", "input", 0) },
  { add: t.chain("base", { type: "filter", hook: "input", prio: 0, policy: "drop" }) },
  { add: t.hooked("base", "input", 100, "nat") },
  { add: t.hooked("bad", "forward", 0, "nat") },
  { add: t.hooked("bad", "prerouting", -300, "nat") },
  { add: t.hooked("bad", "input", 0, "nothing") },
  { add: t.hooked("bad", "nowhere", 0) },
  { add: t.hooked("nat-prerouting", "prerouting", 0, "nat") },
  { add: t.hooked("a", "input", 0) },
  { add: t.set("small", { type: "inet_service", size: 3 }) },
  { add: t.set("timed", { type: "ipv4_addr", timeout: 3_600 }) },
  { add: t.map("serving", { type: { typeof: meta("priority") }, map: "verdict" }) },
  {
    add: t.map("clients", {
      type: { typeof: payload("ip", "saddr") },
      map: { typeof: meta("priority") },
      flags: ["dynamic", "timeout"],
    }),
  },
  { add: t.map("marks", { type: "inet_service", map: "mark" }) },
  { add: t.set("bad", { type: "nothing" }) },
  { add: t.set("cluster-ips", { type: "ipv4_addr" }) },
  { add: t.set("cluster-ips", { type: "ipv6_addr" }) },
  { create: t.set("cluster-ips", { type: "ipv4_addr" }) },
  ...["small", "timed", "cluster-ips", "nope", "nodeport-ips"].map((name) => ({ delete: t.set(name) })),
  ...["marks", "services"].map((name) => ({ delete: t.map(name) })),
  ...["cluster-ips", "nope"].map((name) => ({ flush: t.set(name) })),
  { flush: t.map("services") },
  { flush: t.table() },
  { add: t.set("nodeport-ips", { type: "ipv4_addr" }) },
];
const CHAINS = ["a", "b", "c", "a", "b", "c", "refuse", "dispatch", "nat-prerouting", "nat-postrouting", "filter-forward", "base"];

/** Make up a statement that another program might write about the IPv4 table; about half of them are refused somewhere. */
export function randomStatement(random: () => number): NftStatement {
  const kind = random();
  if (kind < 0.3) return pickOne(CHANGES, random);
  if (kind < 0.6) {
    const verb = random() < 0.65 ? "add" : "delete";
    const [set, ...elements] = pickOne(ELEMENTS, random);
    return t.elements(
      verb,
      set,
      ...(verb === "add" ? elements : elements.map((element) => (typeof element === "string" ? element : element[0]))),
    );
  }
  const parts = Array.from({ length: Math.floor(random() * 3) }, () => pickOne(PARTS, random)).flat();
  const rule = { family: "ip", table: "turnout", chain: pickOne(CHAINS, random), expr: [...parts, pickOne(ENDS, random)] } as const;
  return random() < 0.3 ? { insert: { rule } } : { add: { rule } };
}
