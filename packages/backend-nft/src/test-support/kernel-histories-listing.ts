import { isClientsMap } from "../names.ts";
import { listKey } from "../objects.ts";
import { keyText } from "./listed-table.ts";

/** A JSON object of `nft -j`. */
type Json = Readonly<Record<string, unknown>>;

/** One thing of `nft -j list ruleset`: a table, chain, set, map or rule. */
export interface Listed {
  readonly kind: string;
  readonly body: Json;
  readonly family: string;
  readonly table: string;
  /** A rule's is its chain's. */
  readonly name: string;
}

/** Read what `nft -j list ruleset` printed. @throws {SyntaxError} when the text isn't JSON. */
export function parseListed(text: string): readonly Listed[] {
  const { nftables } = JSON.parse(text) as { readonly nftables: readonly Json[] };
  return nftables.flatMap((entry) =>
    Object.entries(entry).flatMap(([kind, value]) => {
      const body = value as Json;
      const table = String(body[kind === "table" ? "name" : "table"]);
      const name = String(body[kind === "rule" ? "chain" : "name"]);
      return kind === "metainfo" ? [] : [{ kind, body, table, name, family: String(body["family"]) }];
    }),
  );
}

/** Elements of a set or map; none for anything else. */
export function elementsOf(body: Json): readonly unknown[] {
  return (body["elem"] ?? []) as readonly unknown[];
}

/**
 * What is listed, in lines that don't depend on how it came there: no handles, sets in any order, endpoints at any places of their pools, no idle chains
 * and no clients.
 */
export function linesOf(listed: readonly Listed[]): readonly string[] {
  const named = new Set(listed.flatMap((one) => [...targets(one)]));
  const filled = new Set(listed.filter(({ kind }) => kind === "rule").map(chainId));
  const counts = new Map<string, number>();
  return listed
    .flatMap((one) => {
      const { kind, body, family, table, name } = one;
      const id = chainId(one);
      const isIdle = body["hook"] === undefined && !name.startsWith("layout-") && !filled.has(id) && !named.has(id);
      if (kind === "chain" && isIdle) return [];
      const { elem: _elements, handle: _handle, ...rest } = body;
      const place = `${kind} ${family} ${table} ${name}`;
      const count = counts.get(place) ?? 0;
      counts.set(place, count + 1);
      const elements = isClientsMap(name) ? [] : elementsOf(body);
      const lines = elements.flatMap((element) => elementLines(name, element));
      return [`${place} ${count}: ${JSON.stringify(rest)}`, ...lines.map((line) => `${place} has ${line}`)];
    })
    .toSorted();
}

/** An element; one of a list as its place, and what is in the list. */
function elementLines(map: string, element: unknown): readonly string[] {
  const [key, value] = Array.isArray(element) ? (element as readonly unknown[]) : [];
  const list = key === undefined ? undefined : listKey(map, keyText(key));
  return list === undefined ? [JSON.stringify(element)] : [JSON.stringify(key), JSON.stringify([list, value])];
}

function chainId({ family, table, name }: Listed): string {
  return `${family} ${table} ${name}`;
}

/** Chains that a rule or an element sends packets to. */
function* targets({ body, family, table }: Listed): Generator<string> {
  for (const [, name = ""] of JSON.stringify(body).matchAll(/"target":"([^"]+)"/g)) yield `${family} ${table} ${name}`;
}
