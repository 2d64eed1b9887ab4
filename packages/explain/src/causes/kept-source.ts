import type { Cause } from "@turnout/core";
import { KUBE_POSTROUTING } from "../tables/external-tables.ts";
import { orDelete, ruleText, showCommand } from "./drop-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import type { RunResult, ExternalChain, ExternalTable } from "@turnout/host/rules";

/**
 * Say that a rule of others takes the packet before our chain that would rewrite its source. Pure.
 *
 * Shape: a cause where the answer does not come back for that; else what is to be known; undefined: nothing.
 */
export function keptSource(table: ExternalTable, base: ExternalChain, ran: RunResult, way: HookedWay): Cause | string | undefined {
  const { endpoint, packet, outDevice, isTranslated, hasKubeChains = false, isAnsweredHere = false } = way;
  const callsOurs = base.rules.some(({ actions }) => actions.some((one) => "chain" in one && one.chain === KUBE_POSTROUTING));
  // What stays on this host has a source that is its own.
  if (outDevice === "" || !hasKubeChains || !isTranslated || !endpoint.masquerade || base.hook?.type !== "nat" || !callsOurs)
    return undefined;
  const rule = ran.rule ?? ran.returnedBy;
  if (ran.is !== "pass" || rule === undefined || ran.source !== undefined || ran.skipped.has(KUBE_POSTROUTING)) return undefined;
  const { chain = base.name } = ran;
  const says = `${table.name}, chain ${chain}, lets the packet leave before ${KUBE_POSTROUTING} rewrites its source${ruleText(rule.text)}: ${endpoint.ip} sees ${packet.source}`;
  const isOwn = endpoint.ip === packet.source;
  if (!isOwn && isAnsweredHere) return `${says}, not an address of this node`;
  return {
    id: "no_masquerade",
    says: `${says}, and ${isOwn ? "drops it, as it is its own address" : "answers it past this node, untranslated: the client does not know that answer"}`,
    show: [showCommand(table, base.name)],
    fix: `put that rule behind the one that calls ${KUBE_POSTROUTING}, or leave the endpoints' addresses out of it`,
    ...orDelete(rule),
  };
}
