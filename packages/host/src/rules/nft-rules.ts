import { flagsOf, hasFlags } from "./tcp-flags.ts";
import { clipped, directionOf, isAddressIn, isDevice, queuesOf } from "./values.ts";
import type { Action, ExternalChain, ExternalRule, ExternalTable, PartlyKnown, Test } from "./rule.ts";

type Json = Readonly<Record<string, unknown>>;
/** A value that an expression has for a packet; undefined: not known. */
type Value = string | number | readonly (string | number)[] | undefined;
/** The value of a header that the packet doesn't have. */
const ELSEWHERE = "of another protocol";
/** Elements of a named set or map. */
type NamedSets = ReadonlyMap<string, readonly unknown[]>;

const isJson = (value: unknown): value is Json => typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Read one table out of what `nft -j list table` printed. Pure.
 *
 * Shape: `shown` is what else nft prints of it.
 * Edges: of a rule with something in it that is not known here it can't be told whether it matches.
 */
export function readNftTable(family: string, name: string, listed: unknown, shown: Partial<ShownTable> = {}): ExternalTable {
  const { texts = new Map<string, string>(), devices = new Map<string, readonly string[]>() } = shown;
  const entries = (isJson(listed) ? (listed["nftables"] ?? []) : []) as readonly Json[];
  const sets = new Map<string, readonly unknown[]>();
  const chains = new Map<string, ExternalChain & { readonly rules: ExternalRule[] }>();
  for (const entry of entries) {
    const set = (entry["set"] ?? entry["map"]) as Json | undefined;
    if (set !== undefined) sets.set(String(set["name"]), Array.isArray(set["elem"]) ? (set["elem"] as readonly unknown[]) : []);
  }
  for (const { chain, rule } of entries as readonly { readonly chain?: Json; readonly rule?: Json }[]) {
    if (chain !== undefined) chains.set(String(chain["name"]), { name: String(chain["name"]), ...hookOf(chain, devices), rules: [] });
    if (rule === undefined) continue;
    const deletion = `nft delete rule ${family} ${name} ${String(rule["chain"])} handle ${String(rule["handle"])}`;
    const read = readRule((rule["expr"] ?? []) as readonly Json[], sets);
    chains.get(String(rule["chain"]))?.rules.push({ ...read, text: texts.get(String(rule["handle"])) ?? read.text, deletion });
  }
  return { name: `table ${family} ${name}`, tool: "nft", place: `${family} ${name}`, chains };
}

/** What nft 1.0.6 leaves out of JSON. */
export interface ShownTable {
  /** Rules in nft's own words, by their handles. */
  readonly texts: ReadonlyMap<string, string>;
  /** The devices of hooks, by the names of chains. */
  readonly devices: ReadonlyMap<string, readonly string[]>;
}

/** Read what `nft -a -t list table` printed. Pure. */
export function readShownTable(shown: string): ShownTable {
  return { texts: textsByHandle(shown), devices: devicesByChain(shown) };
}

/** Take rules out of what `nft -a -t list table` printed, by their handles, which no two of a table share. Pure. */
export function textsByHandle(shown: string): ReadonlyMap<string, string> {
  const rules = [...shown.matchAll(/^\t+(?!(?:chain|set|map|flowtable|ct \w+|counter|quota|limit) \S+ \{)(.+) # handle (\d+)$/gm)];
  return new Map(rules.map(([, text = "", handle = ""]) => [handle, clipped(text)]));
}

function devicesByChain(shown: string): ReadonlyMap<string, readonly string[]> {
  const chains = shown.matchAll(
    /^\tchain (\S+) \{.*\n(?:\t\tcomment .*\n)?\t\ttype \S+ hook \S+ devices? (?:= \{ ([^}]*) \}|(\S+)) priority/gm,
  );
  return new Map(
    Array.from(chains, ([, chain = "", several, one = ""]) => [
      chain,
      (several ?? one).split(", ").map((name) => name.replaceAll('"', "")),
    ]),
  );
}

function hookOf(chain: Json, shown: ReadonlyMap<string, readonly string[]>): Pick<ExternalChain, "hook"> {
  if (chain["hook"] === undefined) return {};
  const listed: unknown = chain["dev"];
  const devices = listed === undefined ? shown.get(String(chain["name"])) : [listed].flat().map(textOf);
  const hook = {
    at: textOf(chain["hook"]),
    priority: Number(chain["prio"]),
    type: textOf(chain["type"]),
    policy: chain["policy"] === "drop" ? "drop" : "accept",
  } as const;
  return { hook: { ...hook, ...(devices === undefined ? {} : { devices }) } };
}

function readRule(expressions: readonly Json[], sets: NamedSets): Omit<ExternalRule, "deletion"> {
  const tests: Test[] = [];
  const actions: ExternalRule["actions"][number][] = [];
  for (const expression of expressions) {
    // null: what this nft can't print.
    const [word = "", body] = isJson(expression) ? (Object.entries(expression)[0] ?? []) : [];
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
const IGNORED: ReadonlySet<string> = new Set(["counter", "log", "flow", "set", "map", "ct timeout", "ct expectation", "secmark", "dup"]);

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
    case "masquerade":
      return { does: "source", address: "" };
    // To another device, as it is: this host sees no more of it.
    case "fwd":
      return { does: "drop" };
    case "snat":
      return isJson(body) && typeof body["addr"] === "string" ? { does: "source", address: body["addr"] } : { does: "accept" };
    case "queue":
      return queueOf(isJson(body) ? body : {});
    default:
      return undefined;
  }
}

function queueOf({ num = 0, flags }: Json): Action {
  const range: unknown = isJson(num) ? num["range"] : [num, num];
  const [first, last] = Array.isArray(range) ? (range as readonly unknown[]).map(Number) : [];
  const queues = first === undefined || last === undefined ? [] : queuesOf(first, last);
  return { does: "queue", queues, isBypassed: [flags].flat().includes("bypass") };
}

function vmapOf({ key, data }: Json, sets: NamedSets): (packet: PartlyKnown) => Action | readonly Action[] | undefined {
  return (packet) => {
    const value = valueOf(key, packet);
    const listed = elementsOf(data, sets);
    const elements = (listed ?? []).filter((element): element is readonly unknown[] => Array.isArray(element));
    // Random numbers, for instance: any of the elements may be met. Of a map that was not listed nobody knows which.
    if (value === undefined || listed === undefined) return elements.flatMap(([, verdict]) => verdictOf(verdict) ?? []);
    return verdictOf(elements.find(([one]) => isOne(value, one) === true)?.[1]);
  };
}

function verdictOf(verdict: unknown): Action | undefined {
  const [word = "", body] = isJson(verdict) ? (Object.entries(verdict)[0] ?? []) : [];
  return actionOf(word, body);
}

function mangleOf({ key, value }: Json): Action {
  const meta = isJson(key) && isJson(key["meta"]) ? key["meta"]["key"] : undefined;
  if (meta !== "mark") return { does: "nothing" };
  // What can't be computed here, such as the mark of the connection, is not known afterwards.
  return markOf(value) ?? { does: "mark", keep: 0, flip: 0, unclear: 0xff_ff_ff_ff };
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
    const masked = maskOfFlags(left);
    if (masked !== undefined && (op === "==" || op === "!="))
      return flagsOf(packet) !== undefined && hasFlags(packet, masked, flagNames(right)) === (op === "==");
    const value = valueOf(left, packet);
    if (value === undefined) return undefined;
    // nft asks for the protocol first, whatever is compared.
    if (value === ELSEWHERE) return false;
    if (op === "<" || op === ">" || op === "<=" || op === ">=")
      return typeof right === "number" && typeof value === "number" ? isOrdered(op, value, right) : undefined;
    const isMatching = typeof right === "string" && right.startsWith("@") ? isInNamed(value, right, sets) : isOne(value, right);
    if (isMatching === undefined) return undefined;
    return op === "!=" ? !isMatching : isMatching;
  };
}

/** The mask of `tcp flags & (…)`, and of `tcp flags` all of them; undefined: it is something else. */
function maskOfFlags(expression: unknown): readonly string[] | undefined {
  if (isFlags(expression)) return ["all"];
  const parts: unknown = isJson(expression) ? expression["&"] : undefined;
  return Array.isArray(parts) && isFlags(parts[0]) ? flagNames(parts[1]) : undefined;
}

function isFlags(expression: unknown): boolean {
  const payload = isJson(expression) ? expression["payload"] : undefined;
  return isJson(payload) && payload["protocol"] === "tcp" && payload["field"] === "flags";
}

/** The names in `syn`, `[syn, ack]` or a tree of `|`. */
function flagNames(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(flagNames);
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

function isInRange(value: Exclude<Value, undefined>, [from, to]: readonly unknown[]): boolean | undefined {
  if (typeof value === "number") return Number(from) <= value && value <= Number(to);
  return isAddressIn(String(value), `${String(from)}-${String(to)}`);
}

/** What an expression is for a packet. */
function valueOf(expression: unknown, packet: PartlyKnown): Value {
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
  if (word === "ct") return ctOf(body, packet);
  return word === "fib" ? fibOf(body, packet) : undefined;
}

function payloadOf({ protocol, field }: Json, packet: PartlyKnown): Value {
  const isIP = protocol === (packet.family === "IPv4" ? "ip" : "ip6");
  if (protocol === "ip" || protocol === "ip6") {
    if (!isIP) return ELSEWHERE;
    return { saddr: packet.source, daddr: packet.destination, protocol: packet.protocol, nexthdr: packet.protocol }[String(field)];
  }
  if (protocol === "ether" && field === "type") return packet.family === "IPv4" ? "ip" : "ip6";
  if (protocol === "tcp" && field === "flags") return packet.protocol === undefined ? undefined : (flagsOf(packet) ?? ELSEWHERE);
  if (protocol === packet.protocol && field === "type") return packet.protocol === "icmpv6" ? "packet-too-big" : "destination-unreachable";
  if (protocol === "th" || protocol === packet.protocol) return { sport: packet.sourcePort, dport: packet.destinationPort }[String(field)];
  // Another protocol's header is not there: nothing of it matches.
  const isOther = packet.protocol !== undefined && ["tcp", "udp", "sctp", "icmp", "icmpv6"].includes(String(protocol));
  return isOther ? ELSEWHERE : undefined;
}

function metaOf(key: unknown, { inDevice, outDevice, protocol, family, mark, unclearMark = 0 }: PartlyKnown): Value {
  switch (key) {
    case "iifname":
    case "iif":
      return inDevice;
    case "oifname":
    case "oif":
      return outDevice;
    case "l4proto":
      return protocol === "icmpv6" ? "ipv6-icmp" : protocol;
    // nft prints the first of these, and takes the second.
    case "pkttype":
      return ["host", "unicast"];
    case "nfproto":
      return family.toLowerCase();
    case "protocol":
      return family === "IPv4" ? "ip" : "ip6";
    case "mark":
      return unclearMark === 0 ? mark : undefined;
    default:
      return undefined;
  }
}

function ctOf({ key, dir }: Json, packet: PartlyKnown): Value {
  const { state, isTranslated, original, protocol, family } = packet;
  if (dir === "original") {
    const [, version, field = key] = /^(ip6?) (.*)$/.exec(textOf(key)) ?? [];
    if (version !== undefined && version !== (family === "IPv4" ? "ip" : "ip6")) return ELSEWHERE;
    return { saddr: original?.source, daddr: original?.destination, "proto-dst": original?.destinationPort, protocol }[String(field)];
  }
  if (key === "state") return [state];
  if (key === "direction") return directionOf(packet);
  if (key === "status") return isTranslated === undefined ? undefined : isTranslated ? ["dnat"] : [];
  return undefined;
}

function fibOf({ result, flags }: Json, { isLocal, source, destination, inDevice, isAnsweredThere }: PartlyKnown): Value {
  const about = [flags].flat() as readonly unknown[];
  // nft says "false" where it looks whether a route is missing (fib saddr . iif oif missing).
  if ((result === "oif" || result === "check") && about.includes("saddr") && about.includes("iif") && isAnsweredThere !== undefined)
    return !isAnsweredThere ? "false" : result === "oif" ? inDevice : "true";
  const address = about.includes("saddr") ? source : destination;
  const isOwn = result !== "type" || address === undefined ? undefined : isLocal(address);
  return isOwn === undefined ? undefined : isOwn ? "local" : "unicast";
}

/** A rule in few words: what it does, and what it looks at. */
function ruleText(expressions: readonly Json[]): string {
  const words = expressions.map((expression) => JSON.stringify(expression)).join(" ");
  return clipped(words.replace(/["{}]/g, ""));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
