import { ruleText } from "./drop-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import type { RunResult, ExternalChain, ExternalTable } from "@turnout/host/rules";

/** Say that a rule of others rewrites the source of a packet that was to keep its own; undefined: none does. Pure. */
export function hiddenSource(table: ExternalTable, base: ExternalChain, { source }: RunResult, way: HookedWay): string | undefined {
  if (source === undefined || !(way.isTranslated || way.isBySocket === true) || way.endpoint.masquerade || base.hook?.type !== "nat")
    return undefined;
  const by = source.address === "" ? "an address of this node" : source.address;
  return `${table.name}, chain ${source.chain}, rewrites the source${ruleText(source.rule.text)}: ${way.endpoint.ip} sees ${by}, and not ${way.packet.source}`;
}
