import { MISPLACED, rulesOf } from "./objects.ts";
import type { ChainObject, SharedObject } from "./objects.ts";

type RulesInChain = Pick<ChainObject | SharedObject, "kind" | "value">;

/** Say how the rules that the kernel holds in a chain differ from those that should be there, each in full. Pure; `where` names the chain. */
export function rulesDiffer(where: string, wanted: RulesInChain, held: RulesInChain): string {
  const [should, is] = [rulesOf(wanted.value), rulesOf(held.value)];
  if (wanted.kind === "chain" && is.length === 0) return `${where} is empty; it should have ${countText(should)}`;
  if (is[0] === MISPLACED) return `${where} has rules behind those that should be its last`;
  const missing = should.filter((rule) => !is.includes(rule));
  const external = is.filter((rule) => !should.includes(rule));
  const parts = [
    ...(missing.length === 0 ? [] : [`lacks ${countText(missing)}`]),
    ...(external.length === 0 ? [] : [`has ${countText(external)}, which nobody wants there`]),
  ];
  return `${where} ${parts.length === 0 ? "has its rules in another order, or more than once" : parts.join(", and ")}`;
}

/** `the rule -j DROP`, or `3 rules, the first: -j DROP`. */
function countText([first = "", ...others]: readonly string[]): string {
  return others.length === 0 ? `the rule ${first}` : `${others.length + 1} rules, the first: ${first}`;
}
