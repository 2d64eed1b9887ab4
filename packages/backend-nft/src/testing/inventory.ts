import { dataJson, listedStatements } from "@turnout/host/testing/nft";
import type { Chain, NftSet, Ruleset, Table } from "@turnout/host/testing/nft";

/**
 * List tables in lines that two hosts with the same content share: no handles, sets in any order.
 *
 * Edges: chains that lie idle (empty, hooked nowhere, named by nothing) are left out, and so is what packets have taught dynamic sets.
 */
export function linesOf({ tables }: Ruleset, isChosen: (table: Table) => boolean): readonly string[] {
  return [...tables.values()].filter(isChosen).flatMap(tableLines).sort();
}

function tableLines(table: Table): readonly string[] {
  const head = `${table.family} ${table.name}`;
  return [
    `${head}: table ${table.comment ?? ""}`,
    ...[...table.chains.values()].flatMap((chain) => chainLines(chain).map((line) => `${head}: ${line}`)),
    ...[...table.sets.values()].flatMap((set) => setLines(set).map((line) => `${head}: ${line}`)),
  ];
}

/** An empty chain that stays: its name is what it says. */
const LAYOUT = /^layout-/;

function chainLines({ name, base, policy, rules, uses, comment }: Chain): readonly string[] {
  if (rules.length === 0 && uses === 0 && base === undefined && !LAYOUT.test(name)) return [];
  const hook = base === undefined ? "" : `${base.type} ${base.hook} ${base.priority} ${policy}`;
  const lines = rules.map(
    ({ statements, comment: said = "" }, index) => `rule ${name} ${index}: ${JSON.stringify(listedStatements(statements))} "${said}"`,
  );
  return [`chain ${name}: ${hook} ${comment ?? ""}`, ...lines];
}

function setLines(set: NftSet): readonly string[] {
  const { name, types, data, flags, size, timeoutMs } = set;
  const names = (of: NftSet["types"]): string => of.map((type) => type.name).join(" . ");
  const shape = `${names(types)} : ${typeof data === "object" ? names(data) : (data ?? "")} ${flags.join(",")} ${size ?? ""} ${timeoutMs ?? ""}`;
  const elements = flags.includes("dynamic") ? [] : [...set.elements.values()];
  const lines = elements.map(({ key, data: value, comment = "" }) => {
    const to = value === undefined ? "" : ` : ${JSON.stringify(dataJson(set, value))}`;
    return `element ${name} ${key}${to} "${comment}"`;
  });
  return [`set ${name}: ${shape}`, ...lines];
}
