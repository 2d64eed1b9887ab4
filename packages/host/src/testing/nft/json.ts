import { jsonOfKey } from "./data-types.ts";
import type { Element, NftSet, Rule, Ruleset, Table, VerdictValue } from "./ruleset.ts";

const METAINFO = { metainfo: { version: "1.0.6", release_name: "Lester Gooch #5", json_schema_version: 1 } };

/** What `nft -j list table` prints. */
export function tableText(table: Table, nowMs: number): string {
  return print(tableEntries(table, nowMs));
}

/** What `nft -j list set` prints. */
export function setText({ family, name }: Table, set: NftSet, nowMs: number): string {
  return print([setEntry(set, { family, table: name }, nowMs)]);
}

/** In the order in which they were made. */
function inOrder<T extends { readonly handle: number }>(things: ReadonlyMap<string, T>): readonly T[] {
  return [...things.values()].sort((a, b) => a.handle - b.handle);
}

/** What `nft -j list ruleset` prints. */
export function rulesetText({ tables }: Ruleset, family: "ip" | "ip6" | undefined, nowMs: number): string {
  const chosen = inOrder(tables).filter((table) => family === undefined || table.family === family);
  return print(chosen.flatMap((table) => tableEntries(table, nowMs)));
}

/** What `nft -j list tables` prints. */
export function tablesText({ tables }: Ruleset, family: "ip" | "ip6" | undefined): string {
  const chosen = inOrder(tables).filter((table) => family === undefined || table.family === family);
  return print(chosen.map(tableEntry));
}

function print(entries: readonly unknown[]): string {
  return `${JSON.stringify({ nftables: [METAINFO, ...entries] })}\n`;
}

function tableEntry({ family, name, handle, comment }: Table): unknown {
  return { table: { family, name, handle, ...(comment === undefined ? {} : { comment }) } };
}

function tableEntries(table: Table, nowMs: number): readonly unknown[] {
  const { family, name, chains, sets } = table;
  const inTable = { family, table: name };
  return [
    tableEntry(table),
    ...inOrder(sets).map((set) => setEntry(set, inTable, nowMs)),
    ...inOrder(chains).map(({ name: chain, handle, comment, base, policy }) => ({
      chain: {
        ...inTable,
        name: chain,
        handle,
        ...(comment === undefined ? {} : { comment }),
        ...(base === undefined ? {} : { type: base.type, hook: base.hook, prio: base.priority, policy }),
      },
    })),
    ...inOrder(chains).flatMap(({ name: chain, rules }) => rules.map((rule) => ruleEntry(rule, { ...inTable, chain }))),
  ];
}

function ruleEntry({ handle, comment, statements }: Rule, place: object): unknown {
  return { rule: { ...place, handle, ...(comment === undefined ? {} : { comment }), expr: listedStatements(statements) } };
}

/** The statements of a rule that nft lists: not those that others imply. */
export function listedStatements(statements: Rule["statements"]): readonly unknown[] {
  return statements.filter(({ listing }) => listing?.isHidden !== true).map(({ json }) => json);
}

function setEntry(set: NftSet, inTable: { readonly family: string; readonly table: string }, nowMs: number): unknown {
  const { name, handle, types, data, flags, size, timeoutMs, comment } = set;
  const elements = [...set.elements.values()].filter(({ expiresAtMs }) => expiresAtMs === undefined || expiresAtMs > nowMs);
  // `dynamic` isn't printed by nft 1.0.6.
  const printed = flags.filter((flag) => flag !== "dynamic");
  const names = types.map((type) => type.name);
  const body = {
    family: inTable.family,
    name,
    table: inTable.table,
    type: names.length === 1 ? names[0] : names,
    handle,
    ...(comment === undefined ? {} : { comment }),
    ...(data === undefined ? {} : { map: data === "verdict" ? data : data.map((type) => type.name).join(" . ") }),
    ...(size === undefined ? {} : { size }),
    ...(printed.length === 0 ? {} : { flags: printed }),
    ...(timeoutMs === undefined ? {} : { timeout: Math.floor(timeoutMs / 1_000) }),
    ...(elements.length === 0 ? {} : { elem: elements.map((element) => elementJson(set, element, nowMs)) }),
  };
  return data === undefined ? { set: body } : { map: body };
}

/** One element as `nft -j` prints it: wrapped when there is more to say than its key, a pair in a map. */
function elementJson(set: NftSet, element: Element, nowMs: number): unknown {
  const { comment, timeoutMs, expiresAtMs, data } = element;
  const more = {
    ...(timeoutMs === undefined ? {} : { timeout: Math.floor(timeoutMs / 1_000) }),
    ...(expiresAtMs === undefined ? {} : { expires: Math.floor((expiresAtMs - nowMs) / 1_000) }),
    ...(comment === undefined ? {} : { comment }),
  };
  const key = Object.keys(more).length === 0 ? element.json : { elem: { val: element.json, ...more } };
  return data === undefined ? key : [key, dataJson(set, data)];
}

/** What an element leads to, as `nft -j` prints it. */
export function dataJson({ data: types }: NftSet, data: NonNullable<Element["data"]>): unknown {
  if (typeof data === "object") return verdictJson(data);
  return types === undefined || types === "verdict" ? data : jsonOfKey(types, data);
}

/** A verdict as `nft -j` prints it. */
export function verdictJson({ verdict, chain }: VerdictValue): unknown {
  return { [verdict]: chain === undefined ? null : { target: chain.name } };
}
