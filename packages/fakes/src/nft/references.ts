import { meta } from "@turnout/host/nft-statement";
import type { NftExpression, NftRuleStatement } from "@turnout/host/nft-statement";
import { kernelRefusal, Refusal } from "./refusal.ts";
import type { Chain, NftSet, Table } from "./ruleset.ts";
import { typesOfExpression } from "./types.ts";

/** What a rule refers to in its table. */
export interface References {
  readonly chains: readonly Chain[];
  readonly sets: readonly NftSet[];
}

/** What is found while a rule is read from left to right. */
interface Found extends References {
  readonly chains: Chain[];
  readonly sets: NftSet[];
  /** Transport protocols that the rule has said it is about. */
  protocols: readonly string[];
}

/** Find the chains and sets that a rule refers to. @throws {Refusal} when one isn't there, or doesn't fit. */
export function referencesOf(expr: readonly NftRuleStatement[], table: Table): References {
  const found: Found = { chains: [], sets: [], protocols: [] };
  for (const statement of expr) {
    visit(statement, table, found);
    const nat = "dnat" in statement ? statement.dnat : "snat" in statement ? statement.snat : undefined;
    const map = typeof nat?.addr === "object" && "map" in nat.addr ? nat.addr.map.data : "";
    const { data, protocol } = (typeof map === "string" ? table.sets.get(map.slice(1)) : undefined) ?? {};
    if (protocol !== undefined) beAbout(protocol, found);
    if ((nat?.port !== undefined || data?.includes("inet_service") === true) && found.protocols.length === 0)
      throw new Refusal("transport protocol mapping is only valid after transport protocol match");
  }
  return { chains: found.chains, sets: found.sets };
}

/** nft takes no rule about several transport protocols. */
function beAbout(protocol: string, found: Found): void {
  const other = found.protocols.find((one) => one !== protocol);
  if (other !== undefined) throw new Refusal(`conflicting protocols specified: ${other} vs. ${protocol}`);
  found.protocols = [protocol];
}

function visit(value: unknown, table: Table, found: Found): void {
  if (typeof value === "string" && value.startsWith("@")) found.sets.push(setNamed(table, value.slice(1)));
  if (typeof value !== "object" || value === null) return;
  for (const [word, inner] of Object.entries(value) as readonly (readonly [string, Body])[]) {
    if (word === "jump" || word === "goto") found.chains.push(targetNamed(table, inner.target));
    if (word === "payload" && inner.protocol !== table.family && /^ip6?$/.test(inner.protocol))
      throw new Refusal(`conflicting protocols specified: ${table.family} vs. ${inner.protocol}`);
    if (word === "payload" && TRANSPORTS.has(inner.protocol)) beAbout(inner.protocol, found);
    if (word === "match" && inner.op === "==" && JSON.stringify(inner.left) === L4PROTO) found.protocols = textsIn(inner.right);
    if (word === "vmap" || word === "map") checkTypes(inner.key, inner.data, table, word === "vmap" ? "verdict" : "data");
    if (word === "match") checkTypes(inner.left, inner.right, table, "none");
    if (word === "set") checkTypes(inner.elem, inner.set, table, "none");
    // A set that is written out is one of the table's, without a name.
    if (word === "set" && Array.isArray(inner) && inner.length > 1) table.lastHandle++;
    visit(inner, table, found);
  }
}

/** Of whatever a word in the tree has behind it, the members that are looked at. */
interface Body {
  readonly target: string;
  readonly protocol: string;
  readonly key: NftExpression;
  readonly data: NftExpression;
  readonly op: string;
  readonly left: NftExpression;
  readonly right: NftExpression;
  readonly elem: NftExpression;
  readonly set: NftExpression;
}

const TRANSPORTS: ReadonlySet<string> = new Set(["tcp", "udp", "sctp"]);
const L4PROTO = JSON.stringify(meta("l4proto"));

/** A protocol, or those of a set that is written out. */
function textsIn(expression: NftExpression): readonly string[] {
  const all = typeof expression === "object" && "set" in expression ? expression.set : [expression];
  return all.filter((one): one is string => typeof one === "string");
}

/** What is looked up has to be of the set's type. */
function checkTypes(key: NftExpression, reference: NftExpression, table: Table, wants: "verdict" | "data" | "none"): void {
  if (typeof reference !== "string" || !reference.startsWith("@")) return;
  const { types, data } = setNamed(table, reference.slice(1));
  const asked = typesOfExpression(key);
  if (asked !== undefined && asked.join() !== types.join())
    throw new Refusal(`datatype mismatch, expected ${types.join(" . ")}, expression has type ${asked.join(" . ")}`);
  if (wants !== "none" && (wants === "verdict") !== (data === "verdict")) throw new Refusal("Expression is not a map with such data");
}

function setNamed({ sets }: Table, name: string): NftSet {
  const set = sets.get(name);
  if (set === undefined) throw new Refusal("No such file or directory");
  return set;
}

/** Find the chain that a verdict leads to. @throws {Refusal} when there is none, or the kernel calls it in. */
export function targetNamed({ chains }: Table, name: string): Chain {
  const chain = chains.get(name);
  if (chain === undefined) throw kernelRefusal("ENOENT");
  if (chain.hook !== undefined) throw kernelRefusal("EOPNOTSUPP");
  return chain;
}
