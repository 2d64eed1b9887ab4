import { dataJson } from "./json.ts";
import { mergeIntervals } from "./merge-intervals.ts";
import { readElements } from "./read-elements.ts";
import type { RuleContext } from "./rule-context.ts";
import type { DataType } from "./data-types.ts";
import { kernelRefusal, Refusal } from "./refusal.ts";
import { isSameData, overlaps } from "./ruleset.ts";
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
    dataProtocol: undefined,
    flags: hasIntervals ? ["interval"] : [],
    size: undefined,
    timeoutMs: undefined,
    comment: undefined,
    elements: new Map(),
    targets: new Map(),
    uses: 0,
  };
  const written = readElements(reference.elements, set, context.table, context.nowMs);
  const [type] = types;
  const elements = hasIntervals && data === undefined && type !== undefined ? mergeIntervals(written, type) : written;
  const json: unknown[] = [];
  for (const [index, element] of elements.entries()) {
    const { data: value } = element;
    const twin = set.elements.get(element.key);
    if (twin !== undefined && !isSameData(twin.data, value)) throw kernelRefusal("EEXIST", reference.elements[index] ?? reference);
    if (twin !== undefined) continue;
    if (overlaps(set, element)) throw new Refusal("conflicting intervals specified", reference.elements[index] ?? reference);
    set.elements.set(element.key, element);
    if (typeof value === "object" && value.chain !== undefined) context.chains.push(value.chain);
    json.push(value === undefined ? element.json : [element.json, dataJson(set, value)]);
  }
  return { set, json: { set: json } };
}
