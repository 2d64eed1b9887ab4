import { ProxyError } from "@turnout/core";
import { flagsOf, hasFlags } from "../rules/tcp-flags.ts";
import { clipped, queuesOf } from "../rules/values.ts";
import type { Action, ExternalChain, ExternalRule, ExternalTable, PartlyKnown, Test } from "../rules/rule.ts";
import { constantOf, MISSING, valueOf } from "./expression-values.ts";
import { isJson, isOne, listedSet, setOf } from "./named-sets.ts";
import type { Json, KnownValue, NamedSet, NamedSets } from "./named-sets.ts";
import type { ShownTable } from "./shown-table.ts";

/**
 * Read one table out of what `nft -j list table` printed. Pure.
 *
 * Shape: `shown` is what else nft prints of it.
 * Edges: of a rule with something in it that is not known here it can't be told whether it matches.
 */
export function readNftTable(family: string, name: string, listed: unknown, shown: Partial<ShownTable> = {}): ExternalTable {
  const { texts = new Map<string, string>(), devices = new Map<string, readonly string[]>() } = shown;
  const entries = (isJson(listed) ? (listed["nftables"] ?? []) : []) as readonly Json[];
  const sets = new Map<string, NamedSet>();
  const chains = new Map<string, ExternalChain & { readonly rules: ExternalRule[] }>();
  for (const entry of entries) {
    const set = (entry["set"] ?? entry["map"]) as Json | undefined;
    if (set !== undefined) sets.set(String(set["name"]), listedSet(Array.isArray(set["elem"]) ? set["elem"] : []));
  }
  for (const { chain, rule } of entries as readonly { readonly chain?: Json; readonly rule?: Json }[]) {
    if (chain !== undefined) chains.set(String(chain["name"]), { name: String(chain["name"]), ...hookOf(chain, devices), rules: [] });
    if (rule === undefined) continue;
    const deletion = `nft delete rule ${family} ${name} ${String(rule["chain"])} handle ${String(rule["handle"])}`;
    const expressions = (rule["expr"] ?? []) as readonly unknown[];
    const text = texts.get(String(rule["handle"])) ?? ruleText(expressions);
    chains.get(String(rule["chain"]))?.rules.push({ ...readNftRule(expressions, sets), text, deletion });
  }
  return { name: `table ${family} ${name}`, tool: "nft", place: `${family} ${name}`, chains };
}

/**
 * Read a listing: its forms are nft's, and another version's may be others.
 * @throws {ProxyError} `tool_failed` for whatever `read` throws.
 */
export function readingListing<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    const hint = "is this nft newer than those that Turnout was tested with?";
    throw ProxyError.from(error, "tool_failed", "what nft listed can't be read", { hint });
  }
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

/** What one statement is: it says whether the rule goes on, or does something. */
type Step = ExternalRule["actions"][number];

/** Read a rule of nft's syntax tree. Pure. */
export function readNftRule(expressions: readonly unknown[], sets: NamedSets): Pick<ExternalRule, "tests" | "actions"> {
  const tests: Test[] = [];
  const actions: Step[] = [];
  for (const expression of expressions) {
    // null: what this nft can't print.
    const [word = "", body] = isJson(expression) ? (Object.entries(expression)[0] ?? []) : [];
    if (IGNORED.has(word)) continue;
    const step = word === "match" ? undefined : stepOf(word, body, sets);
    const test = word === "match" ? matchOf(body as Json, sets) : (): undefined => undefined;
    if (word === "reject" && isJson(body) && body["type"] === "tcp reset") addTest(isTcp);
    if (step === undefined) addTest(test);
    else actions.push(step);
  }
  // Also a rule that only counts is one that a packet meets.
  return { tests, actions: actions.length === 0 ? [{ does: "nothing" }] : actions };

  /** What a packet is after earlier statements decides of later ones. */
  function addTest(test: Test): void {
    if (actions.length === 0) tests.push(test);
    else
      actions.push((packet) => {
        const isMatching = test(packet);
        return isMatching === true ? undefined : { does: isMatching === false ? "next" : "maybe" };
      });
  }
}

const isTcp: Test = ({ protocol }) => (protocol === undefined ? undefined : protocol === "tcp");

/** Statements that decide nothing. */
const IGNORED: ReadonlySet<string> = new Set(["counter", "log", "flow", "ct timeout", "ct expectation", "secmark", "dup"]);

/** What a statement does; undefined: it is not known here. */
function stepOf(word: string, body: unknown, sets: NamedSets): Step | undefined {
  switch (word) {
    case "vmap":
      return vmapOf(body as Json, sets);
    case "mangle":
      return mangleOf(body as Json, sets);
    // Nothing comes behind it.
    case "continue":
      return { does: "nothing" };
    case "set":
    case "map":
      return learnOf(body as Json, sets);
    case "dnat":
    case "redirect":
    case "tproxy":
    case "snat":
      return natOf(word === "snat", isJson(body) ? body : {}, sets);
    default:
      return actionOf(word, body);
  }
}

function actionOf(word: string, body: unknown): Action | undefined {
  const chain = isJson(body) ? String(body["target"]) : "";
  switch (word) {
    case "accept":
    case "drop":
    case "reject":
    case "return":
    case "notrack":
      return { does: word };
    case "continue":
      return { does: "next" };
    case "jump":
    case "goto":
      return { does: word, chain };
    case "masquerade":
      return { does: "source", address: "" };
    // To another device, as it is: this host sees no more of it.
    case "fwd":
      return { does: "drop" };
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

function natOf(isOfSource: boolean, { addr, port }: Json, sets: NamedSets): Step {
  return (packet): Action => {
    const target = constantOf(addr) ?? valueOf(addr, packet, sets);
    if (target === MISSING) return { does: "next" };
    const [address, mapped = port] = target === undefined ? [] : [target].flat();
    if (isOfSource) return typeof address === "string" ? { does: "source", address } : { does: "accept" };
    return {
      does: "translate",
      ...(typeof address === "string" ? { address } : {}),
      ...(typeof mapped === "number" ? { port: mapped } : {}),
    };
  };
}

/** What a packet writes into a set or map; where that is followed, one that is full ends the rule. */
function learnOf({ op, elem, data, set, map = set }: Json, sets: NamedSets): Step {
  const wrapped = isJson(elem) && isJson(elem["elem"]) ? elem["elem"] : { val: elem };
  const timeoutMs = typeof wrapped["timeout"] === "number" ? { timeoutMs: wrapped["timeout"] * 1_000 } : {};
  return (packet): Action => {
    const value = packet.learn === undefined ? undefined : valueOf(wrapped["val"], packet, sets);
    const held = packet.learn === undefined || data === undefined ? "" : (constantOf(data) ?? valueOf(data, packet, sets));
    if (packet.learn === undefined || value === undefined || held === undefined) return { does: "nothing" };
    if (value === MISSING || held === MISSING) return { does: "next" };
    const does = op === "update" ? "renews" : op === "delete" ? "deletes" : "adds";
    const entry = { set: textOf(map).slice(1), key: keyText(value), value: keyText(held), does, ...timeoutMs } as const;
    return { does: packet.learn(entry) ? "nothing" : "next" };
  };
}

function keyText(value: KnownValue): string {
  return [value].flat().join(" . ");
}

function vmapOf({ key, data }: Json, sets: NamedSets): (packet: PartlyKnown) => Action | readonly Action[] | undefined {
  return (packet) => {
    const value = valueOf(key, packet, sets);
    const map = setOf(data, sets);
    if (value === MISSING) return { does: "next" };
    // Random numbers, for instance: any of the elements may be met. Which of a map that was not listed is unknown.
    if (value === undefined || map === undefined) return (map?.all() ?? []).flatMap((verdict) => verdictOf(verdict) ?? []);
    const found = map.find(value);
    return found === undefined ? { does: "next" } : verdictOf(found.data);
  };
}

function verdictOf(verdict: unknown): Action | undefined {
  const [word = "", body] = isJson(verdict) ? (Object.entries(verdict)[0] ?? []) : [];
  return actionOf(word, body);
}

function mangleOf({ key, value }: Json, sets: NamedSets): Step {
  const meta = isJson(key) && isJson(key["meta"]) ? key["meta"]["key"] : undefined;
  if (meta === "priority") return priorityOf(value, sets);
  if (meta !== "mark") return { does: "nothing" };
  // What can't be computed here, such as the mark of the connection, is not known afterwards.
  return markOf(value) ?? { does: "mark", keep: 0, flip: 0, unclear: 0xff_ff_ff_ff };
}

/** A class of traffic control as nft prints it: two hexadecimal numbers of 16 bits, or `none`. */
function classNumber(text: string): number | undefined {
  const [, high, low] = /^([0-9a-f]*):([0-9a-f]*)$/.exec(text) ?? [];
  if (high === undefined || low === undefined) return text === "none" ? 0 : undefined;
  return parseInt(high || "0", 16) * 65_536 + parseInt(low || "0", 16);
}

/** Known where all that it is made of is. */
function priorityOf(value: unknown, sets: NamedSets): Step {
  return (packet): Action => {
    const found = constantOf(value) ?? valueOf(value, packet, sets);
    if (found === MISSING) return { does: "next" };
    const priority = typeof found === "string" ? classNumber(found) : found;
    return typeof priority === "number" ? { does: "priority", value: priority } : { does: "nothing" };
  };
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
    const value = valueOf(left, packet, sets);
    if (value === undefined) return undefined;
    // nft asks for the protocol first, whatever is compared.
    if (value === MISSING) return false;
    if (op === "<" || op === ">" || op === "<=" || op === ">=")
      return typeof right === "number" && typeof value === "number" ? isOrdered(op, value, right) : undefined;
    const isNamed = typeof right === "string" && right.startsWith("@");
    const named = isNamed ? setOf(right, sets) : undefined;
    const isMatching = isNamed ? named && named.find(value) !== undefined : isOne(value, right);
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

/** A rule in few words: what it does, and what it looks at. */
function ruleText(expressions: readonly unknown[]): string {
  const words = expressions.map((expression) => JSON.stringify(expression)).join(" ");
  return clipped(words.replace(/["{}]/g, ""));
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
