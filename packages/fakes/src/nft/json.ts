import type { NftElement, NftTable } from "@turnout/host";
import { printHook } from "@turnout/host/nft-statement";
import { dataJson } from "./ruleset.ts";
import type { Element, NftSet, Ruleset, Table } from "./ruleset.ts";
import { valueJson } from "./types.ts";

const METAINFO = { metainfo: { version: "1.0.6", release_name: "Lester Gooch #5", json_schema_version: 1 } };

/** What `nft -j list ruleset` prints; rules as they were given. */
export function rulesetText({ tables }: Ruleset, nowMs: number): string {
  return `${JSON.stringify({ nftables: [METAINFO, ...inOrder(tables).flatMap((table) => tableEntries(table, nowMs))] })}\n`;
}

/** In the order in which they were made. */
function inOrder<T extends { readonly handle: number }>(things: ReadonlyMap<string, T>): readonly T[] {
  return [...things.values()].sort((a, b) => a.handle - b.handle);
}

function tableEntries({ family, name, handle: own, chains, sets }: Table, nowMs: number): readonly unknown[] {
  const inTable = { family, table: name };
  return [
    { table: { family, name, handle: own } },
    ...inOrder(sets).map((set) => setEntry(set, inTable, nowMs)),
    ...inOrder(chains).map(({ name: chain, handle, hook }) => ({
      chain: {
        ...inTable,
        name: chain,
        handle,
        ...(hook === undefined ? {} : { type: hook.type, hook: hook.at, prio: hook.priority, policy: hook.policy }),
      },
    })),
    ...inOrder(chains).flatMap(({ name: chain, rules }) =>
      rules.map(({ handle, comment, expr }) => ({
        rule: { ...inTable, chain, handle, ...(comment === undefined ? {} : { comment }), expr },
      })),
    ),
  ];
}

function liveElements({ elements }: NftSet, nowMs: number): readonly Element[] {
  return [...elements.values()].filter(({ expiresAtMs }) => expiresAtMs === undefined || expiresAtMs > nowMs);
}

function setEntry(set: NftSet, inTable: { readonly family: string; readonly table: string }, nowMs: number): unknown {
  const { name, handle, types, data, flags, size, timeoutMs } = set;
  const elements = liveElements(set, nowMs);
  // `dynamic` isn't printed by nft 1.0.6.
  const printed = flags.filter((flag) => flag !== "dynamic");
  const body = {
    family: inTable.family,
    name,
    table: inTable.table,
    type: types.length === 1 ? types[0] : types,
    handle,
    ...(data === undefined ? {} : { map: data === "verdict" ? data : data.join(" . ") }),
    ...(size === undefined ? {} : { size }),
    ...(printed.length === 0 ? {} : { flags: printed }),
    ...(timeoutMs === undefined ? {} : { timeout: Math.floor(timeoutMs / 1_000) }),
    ...(elements.length === 0 ? {} : { elem: elements.map((element) => elementJson(set, element, nowMs)) }),
  };
  return data === undefined ? { set: body } : { map: body };
}

/** One element as `nft -j` prints it: wrapped when there is more to say than its key, a pair in a map. */
function elementJson(set: NftSet, element: Element, nowMs: number): unknown {
  const { comment, timeoutMs, expiresAtMs } = element;
  const more = {
    ...(timeoutMs === undefined ? {} : { timeout: Math.floor(timeoutMs / 1_000) }),
    ...(expiresAtMs === undefined ? {} : { expires: Math.floor((expiresAtMs - nowMs) / 1_000) }),
    ...(comment === "" ? {} : { comment }),
  };
  const val = valueJson(set.types, element.key);
  const key = Object.keys(more).length === 0 ? val : { elem: { val, ...more } };
  return set.data === undefined ? key : [key, dataJson(set, element)];
}

/** What netlink gives of a table. */
export function netlinkTable({ sets, chains }: Table, nowMs: number): NftTable {
  return {
    sets: new Map(
      [...sets].map(([name, set]): [string, readonly NftElement[]] => [
        name,
        liveElements(set, nowMs).map(({ key, value, comment }) => ({ key, value, comment })),
      ]),
    ),
    chains: new Map(
      [...chains].map(([name, { hook, rules }]) => [
        name,
        {
          hook: hook && printHook({ type: hook.type, hook: hook.at, prio: hook.priority }),
          isDropping: hook?.policy === "drop",
          comments: rules.map(({ comment = "" }) => comment),
        },
      ]),
    ),
  };
}
