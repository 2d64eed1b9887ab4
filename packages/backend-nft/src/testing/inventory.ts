import type { Chain, NftSet, Ruleset, Table } from "@turnout/fakes/nft";
import { listKey } from "../objects.ts";

/**
 * List tables in lines that two hosts with the same content share: no handles, sets in any order, and endpoints at any places of their pools.
 *
 * Edges: chains that lie idle (empty, hooked nowhere, named by nothing) are left out, and so is what packets have taught dynamic sets.
 */
export function linesOf({ tables }: Ruleset, isChosen: (table: Table) => boolean): readonly string[] {
  return [...tables.values()].filter(isChosen).flatMap(tableLines).sort();
}

function tableLines({ place, chains, sets }: Table): readonly string[] {
  const lines = [...[...chains.values()].flatMap(chainLines), ...[...sets.values()].flatMap(setLines)];
  return [`${place}: table`, ...lines.map((line) => `${place}: ${line}`)];
}

/** An empty chain that stays: its name is what it says. */
const LAYOUT = /^layout-/;

function chainLines({ name, hook, rules, uses }: Chain): readonly string[] {
  if (rules.length === 0 && uses === 0 && hook === undefined && !LAYOUT.test(name)) return [];
  const at = hook === undefined ? "" : `${hook.type} ${hook.at} ${hook.priority} ${hook.policy}`;
  return [`chain ${name}: ${at}`, ...rules.map(({ text, comment = "" }, index) => `rule ${name} ${index}: ${text} "${comment}"`)];
}

function setLines({ name, types, data, flags, size, timeoutMs, elements }: NftSet): readonly string[] {
  const shape = `${types.join(" . ")} : ${typeof data === "object" ? data.join(" . ") : (data ?? "")} ${flags.join(",")} ${size ?? ""} ${timeoutMs ?? ""}`;
  const listed = flags.includes("dynamic") ? [] : [...elements.values()];
  return [
    `set ${name}: ${shape}`,
    ...listed.flatMap(({ key, value, comment }) => {
      const list = listKey(name, key);
      const head = `element ${name}`;
      if (list !== undefined) return [`${head} ${key}`, `${head} ${list} . any : ${value}`];
      return [`${head} ${key}${value === "" ? "" : ` : ${value}`} "${comment}"`];
    }),
  ];
}
