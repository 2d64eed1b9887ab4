import { pickOne } from "@turnout/core/testing";
import { elementsOf } from "./kernel-histories-listing.ts";
import type { Listed } from "./kernel-histories-listing.ts";
import { isClientsMap, TABLE } from "../names.ts";

type Tampering = (own: readonly Listed[], random: () => number) => string | undefined;

function anyOf(own: readonly Listed[], random: () => number, isFit: (one: Listed) => boolean): Listed | undefined {
  const fit = own.filter(isFit);
  return fit.length === 0 ? undefined : pickOne(fit, random);
}

const deleteElement: Tampering = (own, random) => {
  const set = anyOf(own, random, ({ name, body }) => !isClientsMap(name) && elementsOf(body).length > 0);
  if (set === undefined) return undefined;
  const element = pickOne(elementsOf(set.body), random);
  return `delete element ${set.family} ${TABLE} ${set.name} { ${keyText(set.kind === "map" ? (element as readonly unknown[])[0] : element)} }`;
};

const deleteRule: Tampering = (own, random) => {
  const rule = anyOf(own, random, ({ kind }) => kind === "rule");
  return rule && `delete rule ${rule.family} ${TABLE} ${rule.name} handle ${String(rule.body["handle"])}`;
};

const flushChain: Tampering = (own, random) => {
  const rule = anyOf(own, random, ({ kind }) => kind === "rule");
  return rule && `flush chain ${rule.family} ${TABLE} ${rule.name}`;
};

const addRule: Tampering = (own, random) => {
  const chain = anyOf(own, random, ({ kind, name }) => kind === "chain" && !name.startsWith("layout-"));
  const verb = pickOne(["add", "insert"], random);
  return chain && `${verb} rule ${chain.family} ${TABLE} ${chain.name} ${pickOne(["drop", "accept", "counter"], random)} comment "by hand"`;
};

const dropByPolicy: Tampering = (own, random) => {
  const chain = anyOf(own, random, ({ kind, body }) => kind === "chain" && body["type"] === "filter");
  return chain && `add chain ${chain.family} ${TABLE} ${chain.name} { policy drop; }`;
};

const replaceRule: Tampering = (own, random) => {
  const rule = anyOf(own, random, ({ kind }) => kind === "rule");
  return rule && `replace rule ${rule.family} ${TABLE} ${rule.name} handle ${String(rule.body["handle"])} accept`;
};

/** A base chain that no rule leads to, made again where the kernel doesn't call in. */
const unhook: Tampering = (own, random) => {
  const chain = anyOf(own, random, ({ body }) => body["hook"] !== undefined);
  return chain && `delete chain ${chain.family} ${TABLE} ${chain.name}\nadd chain ${chain.family} ${TABLE} ${chain.name}`;
};

/** A key as nft reads it; nft prints it bare, as parts, or wrapped with a comment. */
function keyText(key: unknown): string {
  if (typeof key !== "object" || key === null) return String(key);
  const { elem, concat } = key as { readonly elem?: { readonly val: unknown }; readonly concat?: readonly unknown[] };
  return elem === undefined ? (concat ?? []).map(String).join(" . ") : keyText(elem.val);
}

const TAMPERINGS: readonly Tampering[] = [deleteElement, deleteElement, deleteRule, replaceRule, flushChain, addRule, dropByPolicy, unhook];

/**
 * Think of one thing a foreign hand may do to one of our tables, as an nft command that works; undefined when there are none.
 *
 * `random` in [0, 1) chooses.
 */
export function tamperWith(listed: readonly Listed[], random: () => number): string | undefined {
  const table = anyOf(listed, random, (one) => one.kind === "table" && one.table === TABLE);
  const own = listed.filter((one) => one.family === table?.family && one.table === TABLE);
  return pickOne(TAMPERINGS, random)(own, random);
}
