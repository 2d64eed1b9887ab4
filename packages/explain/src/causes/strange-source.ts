import type { Cause, UnjudgedRule } from "@turnout/core";
import { orDelete, ruleText, showCommand } from "./drop-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import type { RunResult, ExternalRule, ExternalTable } from "@turnout/host/rules";

/** A rule that can't be judged, as it was read and as it is told. */
export interface Strange {
  readonly by: ExternalRule;
  readonly rule: UnjudgedRule;
}

/** What the kernel says where no route fits, as against one that refuses. @source errno(3) ENETUNREACH */
const NO_ROUTE = "Network is unreachable";

/**
 * Say that others rewrite the source to an address that this host does not have. Pure.
 *
 * Shape: a cause where answers don't come back for that; a rule that can't be judged where nobody can tell; undefined: it does no harm.
 * Edges: what an endpoint on this node answers comes by this host, whatever it is addressed to. Where we ask for masquerade in iptables' chains, our
 * rule may come first.
 * A route that refuses the address may be there because others send it here (a pool of addresses), and what is no Service's may leave with an address
 * that a router sends here.
 */
export function strangeSource(table: ExternalTable, { source }: RunResult, way: HookedWay): Cause | Strange | undefined {
  if (source === undefined || source.address === "" || way.isLocal(source.address) || way.endpoint.isLocal) return undefined;
  const { address, chain, rule } = source;
  const route = way.routeOf?.(address);
  if (route?.is === "way" && route.isLocal) return undefined;
  const rewrites = `${table.name}, chain ${chain}, rewrites the source to ${address}, which this host does not have`;
  const isRefused = route?.is === "none" && route.says !== NO_ROUTE;
  const isForOthers = route?.is === "way" && route.isDefault === true && !way.isTranslated && way.isBySocket !== true;
  if (route === undefined || (way.endpoint.masquerade && way.hasKubeChains === true) || isRefused || isForOthers)
    return { by: rule, rule: { says: `${rewrites}: answers may go elsewhere`, rule: rule.text, show: showCommand(table, chain) } };
  const elsewhere =
    route.is === "none"
      ? "nor a route to it"
      : `and its own ${route.isDefault === true ? "default route takes it" : "route for it leads"} to ${route.device}`;
  return {
    id: "no_way_back",
    says: `${rewrites}, ${elsewhere}: answers of ${way.endpoint.ip} go there, and not back by this host${ruleText(rule.text)}`,
    show: [showCommand(table, chain), `ip route get ${address}`],
    fix: "have that rule use an address of this host (MASQUERADE), or leave the pods' addresses out of it",
    ...orDelete(rule),
    // A router may send the address here all the same.
    ...(route.is === "way" && route.isDefault === true ? ({ isSure: false } as const) : {}),
  };
}
