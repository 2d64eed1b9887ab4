import { isAddressIn, isDevice } from "./values.ts";
import type { Action, ForeignChain, ForeignRule, ForeignTable, HookedPacket, Test } from "./rule.ts";

type Json = Readonly<Record<string, unknown>>;
/** A value that an expression has for a packet; undefined: not known. */
type Value = string | number | readonly (string | number)[] | undefined;
/** Elements of a named set or map. */
type NamedSets = ReadonlyMap<string, readonly unknown[]>;

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Read one table out of what `nft -j list table` printed. Pure.
 *
 * Edges: of a rule with something in it that is not known here it can't be told whether it matches.
 */
export function readNftTable(family: string, name: string, listed: unknown): ForeignTable {
  const entries = (isJson(listed) ? (listed["nftables"] ?? []) : []) as readonly Json[];
  const sets = new Map<string, readonly unknown[]>();
  const chains = new Map<string, ForeignChain & { readonly rules: ForeignRule[] }>();
  for (const entry of entries) {
    const set = (entry["set"] ?? entry["map"]) as Json | undefined;
    if (set !== undefined) sets.set(String(set["name"]), (set["elem"] ?? []) as readonly unknown[]);
  }
  for (const { chain, rule } of entries as readonly { readonly chain?: Json; readonly rule?: Json }[]) {
    if (chain !== undefined) chains.set(String(chain["name"]), { name: String(chain["name"]), ...hookOf(chain), rules: [] });
    if (rule !== undefined) chains.get(String(rule["chain"]))?.rules.push(readRule((rule["expr"] ?? []) as readonly Json[], sets));
  }
  return { name: `table ${family} ${name}`, tool: "nft", place: `${family} ${name}`, chains };
}

function hookOf(chain: Json): Pick<ForeignChain, "hook"> {
  if (chain["hook"] === undefined) return {};
  const device = chain["dev"];
  const hook = {
    at: textOf(chain["hook"]),
    priority: Number(chain["prio"]),
    type: textOf(chain["type"]),
    policy: chain["policy"] === "drop" ? "drop" : "accept",
  } as const;
  return { hook: { ...hook, ...(typeof device === "string" ? { device } : {}) } };
}

function readRule(expressions: readonly Json[], sets: NamedSets): ForeignRule {
  const tests: Test[] = [];
  const actions: ForeignRule["actions"][number][] = [];
  for (const expression of expressions) {
    const [word = "", body] = Object.entries(expression)[0] ?? [];
    if (word === "match") tests.push(matchOf(body as Json, sets));
    else if (word === "vmap") actions.push(vmapOf(body as Json, sets));
    else if (word === "mangle") actions.push(mangleOf(body as Json));
    else if (IGNORED.has(word)) continue;
    else {
      const action = actionOf(word, body);
      if (action === undefined) tests.push(() => undefined);
      else actions.push(action);
    }
  }
  return { text: ruleText(expressions), tests, actions };
}

/** Statements that decide nothing. */
const IGNORED: ReadonlySet<string> = new Set([
  "counter",
  "log",
  "flow",
  "set",
  "map",
  "snat",
  "masquerade",
  "ct timeout",
  "ct expectation",
  "secmark",
  "dup",
]);

function actionOf(word: string, body: unknown): Action | undefined {
  const chain = isJson(body) ? String(body["target"]) : "";
  switch (word) {
    case "accept":
    case "drop":
    case "reject":
    case "return":
    case "notrack":
      return { does: word };
    case "jump":
    case "goto":
      return { does: word, chain };
    case "dnat":
    case "redirect":
    case "tproxy":
      return { does: "translate" };
    default:
      return undefined;
  }
}

function vmapOf({ key, data }: Json, sets: NamedSets): (packet: HookedPacket) => Action | undefined {
  return (packet) => {
    const value = valueOf(key, packet);
    const elements = elementsOf(data, sets);
    if (value === undefined || elements === undefined) return undefined;
    const found = elements.find((element) => Array.isArray(element) && isOne(value, element[0]) === true) as readonly unknown[] | undefined;
    const [word = "", body] = isJson(found?.[1]) ? (Object.entries(found[1])[0] ?? []) : [];
    return actionOf(word, body);
  };
}

function mangleOf({ key, value }: Json): Action {
  const meta = isJson(key) && isJson(key["meta"]) ? key["meta"]["key"] : undefined;
  if (meta !== "mark") return { does: "nothing" };
  return markOf(value) ?? { does: "nothing" };
}

/** `meta mark set X`, `meta mark set meta mark or X`, and so on. */
function markOf(value: unknown): Action | undefined {
  if (typeof value === "number") return { does: "mark", keep: 0, flip: value };
  if (!isJson(value)) return undefined;
  const [operator = "", parts] = Object.entries(value)[0] ?? [];
  const [, bits] = Array.isArray(parts) ? (parts as readonly unknown[]) : [];
  const inner = Array.isArray(parts) ? markOf((parts as readonly unknown[])[0]) : undefined;
  const { keep, flip } = inner?.does === "mark" ? inner : { keep: ~0, flip: 0 };
  if (typeof bits !== "number") return undefined;
  if (operator === "|") return { does: "mark", keep: keep & ~bits, flip: (flip & ~bits) | bits };
  if (operator === "&") return { does: "mark", keep: keep & bits, flip: flip & bits };
  return operator === "^" ? { does: "mark", keep, flip: flip ^ bits } : undefined;
}

function matchOf({ op, left, right }: Json, sets: NamedSets): Test {
  return (packet) => {
    const value = valueOf(left, packet);
    if (value === undefined) return undefined;
    if (op === "<" || op === ">" || op === "<=" || op === ">=")
      return typeof right === "number" && typeof value === "number" ? isOrdered(op, value, right) : undefined;
    const isMatching = typeof right === "string" && right.startsWith("@") ? isInNamed(value, right, sets) : isOne(value, right);
    if (isMatching === undefined) return undefined;
    return op === "!=" ? !isMatching : isMatching;
  };
}

function isOrdered(op: "<" | ">" | "<=" | ">=", a: number, b: number): boolean {
  return { "<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b }[op];
}

function isInNamed(value: Exclude<Value, undefined>, name: string, sets: NamedSets): boolean | undefined {
  const elements = elementsOf(name, sets);
  return elements?.some((element) => isOne(value, Array.isArray(element) ? element[0] : element) === true);
}

function elementsOf(data: unknown, sets: NamedSets): readonly unknown[] | undefined {
  if (typeof data === "string" && data.startsWith("@")) return sets.get(data.slice(1));
  const set = isJson(data) ? data["set"] : undefined;
  return Array.isArray(set) ? (set as readonly unknown[]) : undefined;
}

/** Whether a value is what the right side says: a value, one of several, a prefix, a range, parts. */
function isOne(value: Exclude<Value, undefined>, right: unknown): boolean | undefined {
  if (Array.isArray(right)) return right.some((one) => isOne(value, one) === true);
  if (isJson(right)) {
    if (isJson(right["elem"])) return isOne(value, right["elem"]["val"]);
    if (Array.isArray(right["set"])) return isOne(value, right["set"]);
    if (isJson(right["prefix"])) return isAddressIn(String(value), `${String(right["prefix"]["addr"])}/${String(right["prefix"]["len"])}`);
    if (Array.isArray(right["range"])) return isInRange(value, right["range"] as readonly unknown[]);
    if (Array.isArray(right["concat"]) && Array.isArray(value)) {
      const parts = right["concat"] as readonly unknown[];
      return parts.every((part, index) => isOne((value as readonly (string | number)[])[index] ?? "", part) === true);
    }
    return undefined;
  }
  if (Array.isArray(value)) return (value as readonly unknown[]).some((one) => one === right);
  if (typeof right === "string" && right.endsWith("*")) return isDevice(String(value), right);
  return String(value) === String(right);
}

function isInRange(value: Exclude<Value, undefined>, [from, to]: readonly unknown[]): boolean {
  if (typeof value === "number") return Number(from) <= value && value <= Number(to);
  return isAddressIn(String(value), `${String(from)}-${String(to)}`);
}

/** What an expression is for a packet. */
function valueOf(expression: unknown, packet: HookedPacket): Value {
  if (!isJson(expression)) return undefined;
  const [word = "", body] = Object.entries(expression)[0] ?? [];
  if (word === "concat" && Array.isArray(body)) {
    const parts = body.map((part) => valueOf(part, packet));
    return parts.every((part) => typeof part === "string" || typeof part === "number") ? parts : undefined;
  }
  if (word === "&" && Array.isArray(body)) {
    const [inner, mask] = [valueOf(body[0], packet), body[1] as unknown];
    return typeof inner === "number" && typeof mask === "number" ? (inner & mask) >>> 0 : undefined;
  }
  if (!isJson(body)) return undefined;
  if (word === "payload") return payloadOf(body, packet);
  if (word === "meta") return metaOf(body["key"], packet);
  if (word === "ct") return ctOf(body["key"], packet);
  return word === "fib" ? fibOf(body, packet) : undefined;
}

function payloadOf({ protocol, field }: Json, packet: HookedPacket): Value {
  const isIP = protocol === (packet.family === "IPv4" ? "ip" : "ip6");
  if (protocol === "ip" || protocol === "ip6") {
    if (!isIP) return "another family";
    return { saddr: packet.source, daddr: packet.destination, protocol: packet.protocol, nexthdr: packet.protocol }[String(field)];
  }
  if (protocol === packet.protocol && field === "type") return packet.protocol === "icmpv6" ? "packet-too-big" : "destination-unreachable";
  if (protocol === "th" || protocol === packet.protocol) return { sport: packet.sourcePort, dport: packet.destinationPort }[String(field)];
  // Another protocol's header is not there: nothing of it matches.
  return ["tcp", "udp", "sctp", "icmp", "icmpv6"].includes(String(protocol)) ? "another protocol" : undefined;
}

function metaOf(key: unknown, { inDevice, outDevice, protocol, family, mark }: HookedPacket): Value {
  switch (key) {
    case "iifname":
    case "iif":
      return inDevice;
    case "oifname":
    case "oif":
      return outDevice;
    case "l4proto":
      return protocol === "icmpv6" ? "ipv6-icmp" : protocol;
    case "nfproto":
      return family.toLowerCase();
    case "protocol":
      return family === "IPv4" ? "ip" : "ip6";
    case "mark":
      return mark;
    default:
      return undefined;
  }
}

function ctOf(key: unknown, { state, isTranslated }: HookedPacket): Value {
  if (key === "state") return [state];
  if (key === "status") return isTranslated ? ["dnat"] : [];
  return undefined;
}

function fibOf({ result, flags }: Json, { isLocal, source, destination }: HookedPacket): Value {
  const about = [flags].flat() as readonly unknown[];
  if (result !== "type") return undefined;
  return isLocal(about.includes("saddr") ? source : destination) ? "local" : "unicast";
}

/** A rule in few words: what it does, and what it looks at. */
function ruleText(expressions: readonly Json[]): string {
  return expressions
    .map((expression) => JSON.stringify(expression))
    .join(" ")
    .replace(/["{}]/g, "")
    .slice(0, 160);
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
