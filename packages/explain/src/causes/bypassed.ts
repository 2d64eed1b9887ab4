import type { Cause } from "@turnout/core";
import { KUBE_SERVICES } from "../tables/external-tables.ts";
import { orDelete, ruleText, showCommand } from "./drop-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import type { Passage } from "../ways/passage.ts";
import type { RunResult, ExternalChain, ExternalTable } from "@turnout/host/rules";

/** A chain at a hook, and what it did to the packet. */
export interface ChainRun {
  readonly table: ExternalTable;
  readonly base: ExternalChain;
  readonly ran: RunResult;
}

/**
 * Say that a rule of others accepts the packet, or returns, before the jump to our chain that would translate it. Pure.
 *
 * Edges: with both variants of iptables either may have our chains; one that is asked is enough.
 */
export function bypassedCause(chains: readonly ChainRun[], { at, isAnswer }: Passage, way: HookedWay): Cause | undefined {
  const { hasKubeChains = false, isServedAtInput = false, isTranslated } = way;
  if (!hasKubeChains || isServedAtInput || !isTranslated || isAnswer) return undefined;
  const calling = chains.filter(({ base: { hook, rules } }) => hook?.type === "nat" && rules.some(({ actions }) => actions.some(isCall)));
  if (calling.some(({ ran }) => ran.skipped.has(KUBE_SERVICES))) return undefined;
  for (const { table, base, ran } of calling) {
    const rule = ran.rule ?? ran.returnedBy;
    if (ran.is !== "pass" || ran.isTranslated || rule === undefined) continue;
    const chain = ran.chain ?? base.name;
    return {
      id: "bypassed",
      says: `${table.name}, chain ${chain}, lets the packet leave ${base.name} before ${KUBE_SERVICES} is asked at ${at}, so nobody translates it${ruleText(rule.text)}`,
      show: [showCommand(table, base.name)],
      fix: `put that rule behind the one that calls ${KUBE_SERVICES}, or leave the Service's addresses and ports out of it`,
      ...orDelete(rule),
    };
  }
  return undefined;
}

function isCall(action: ExternalChain["rules"][number]["actions"][number]): boolean {
  return "chain" in action && action.chain === KUBE_SERVICES;
}
