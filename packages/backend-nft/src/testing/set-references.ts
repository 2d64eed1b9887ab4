import { dataJson } from "./json.ts";
import { readElements } from "./read-elements.ts";
import type { RuleContext } from "./compile-expression.ts";
import type { DataType } from "./data-types.ts";
import { Refusal } from "./refusal.ts";
import type { NftSet } from "./ruleset.ts";
import type { SetReference } from "./syntax.ts";

/** Find or make the set a rule looks something up in. @throws {Refusal} when there is none of that name. */
export function resolveSet(
  reference: SetReference,
  types: readonly DataType[],
  context: RuleContext,
  data?: NftSet["data"],
): { readonly set: NftSet; readonly json: unknown } {
  if (reference.is === "named") {
    const set = context.table.sets.get(reference.name);
    if (set === undefined) throw new Refusal("No such file or directory", reference);
    context.sets.push(set);
    return { set, json: `@${set.name}` };
  }
  const hasIntervals = reference.elements.some(({ key }) => key.is === "range" || key.is === "prefix");
  const set: NftSet = {
    name: "",
    handle: ++context.table.lastHandle,
    types,
    data,
    protocol: undefined,
    flags: hasIntervals ? ["interval"] : [],
    size: undefined,
    timeoutMs: undefined,
    comment: undefined,
    elements: new Map(),
    targets: new Map(),
    uses: 0,
  };
  const elements = readElements(reference.elements, set, context.table, context.nowMs);
  const json: unknown[] = [];
  for (const element of elements) {
    set.elements.set(element.key, element);
    const { data: value } = element;
    if (typeof value === "object" && value.chain !== undefined) context.chains.push(value.chain);
    json.push(value === undefined ? element.json : [element.json, dataJson(set, value)]);
  }
  return { set, json: { set: json } };
}
