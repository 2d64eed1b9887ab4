import { placeOf, rulesOf } from "./objects.ts";
import type { TableName } from "./objects.ts";

/** How a backend tells its own rules from those of another mode of kube-proxy, which has chains of the same names. */
export interface ModeWords {
  /** Its nat KUBE-SERVICES looks into sets. */
  readonly looksIntoSets: boolean;
  /** Tell a jump that no other mode has. */
  readonly isOwnJump: (table: TableName, rule: string) => boolean;
}

/**
 * An empty chain that says that Turnout wrote the rules last. Other chains are adopted in both directions and don't tell.
 *
 * Edges: it has a name by which the first sync of a kube-proxy in iptables mode takes it for a Service's stale chain, and removes it. In ipvs mode
 * kube-proxy leaves it: see {@link isMarked}.
 */
export const MARKER_CHAIN = "KUBE-SVC-TURNOUT";

/** How the names of the chains begin that Turnout alone has. */
const OWN_CHAINS = "TURNOUT-";

/** Tell whether Turnout, and no kube-proxy, wrote last what `iptables-save` printed of the nat table. Pure. */
export function isMarked(nat: string): boolean {
  return nat.includes(`\n:${MARKER_CHAIN} `) && !isOfKubeProxyInIpvsMode(nat);
}

/** Only with ipvs KUBE-SERVICES looks into sets. Every proxy writes it anew, and Turnout's backend jumps from it to chains that kube-proxy doesn't have. */
function isOfKubeProxyInIpvsMode(nat: string): boolean {
  const rules = nat.split("\n").filter((line) => line.startsWith("-A KUBE-SERVICES "));
  return rules.some((rule) => rule.includes("--match-set ")) && !rules.some((rule) => rule.includes(`-j ${OWN_CHAINS}`));
}

/** Chains that more than one mode has. */
const OF_SEVERAL_MODES: ReadonlySet<string> = new Set([
  "nat KUBE-SERVICES",
  "nat KUBE-POSTROUTING",
  "nat KUBE-MARK-MASQ",
  `nat ${MARKER_CHAIN}`,
  "filter KUBE-FORWARD",
  "filter KUBE-PROXY-FIREWALL",
  ...["filter", "nat", "mangle"].map((table) => `${table} KUBE-PROXY-CANARY`),
]);

const SERVICES = "nat KUBE-SERVICES";

/**
 * Leave out what belongs to another mode now: who removes what a mode left must not take what another one uses.
 *
 * Shape: objects of any kind; those that aren't rules stay. Whose the chains of several modes are is told by nat KUBE-SERVICES; where it has no
 * rules they are whoever's asks.
 * @source kube-proxy pkg/proxy/iptables/proxier.go CleanupLeftovers, pkg/proxy/ipvs/proxier.go cleanupIptablesLeftovers
 */
export function withoutOtherModes<K extends { readonly kind: string; readonly key: string; readonly value: unknown }>(
  objects: readonly K[],
  { looksIntoSets, isOwnJump }: ModeWords,
): readonly K[] {
  const dispatch = objects
    .filter(({ key }) => key === SERVICES || key.startsWith(`${SERVICES} `))
    .map(({ key, value }) => `${key} ${String(value)}`);
  const hasRules = dispatch.some((text) => text.includes("-j "));
  if (!hasRules || dispatch.some((text) => text.includes("--match-set ")) === looksIntoSets) return objects;
  return objects.flatMap((object): readonly K[] => {
    const { table, chain } = placeOf(object);
    if (object.kind === "chain" || object.kind === "shared" || object.kind === "rule") {
      // A chain that the other mode didn't write again: it would keep our sets from going.
      const isStale = looksIntoSets && String(object.value).includes("--match-set ");
      return OF_SEVERAL_MODES.has(`${table} ${chain}`) && !isStale ? [] : [object];
    }
    if (object.kind !== "jumps" || typeof object.value !== "string") return [object];
    const own = rulesOf(object.value).filter((rule) => isOwnJump(table, rule));
    return own.length === 0 ? [] : [{ ...object, value: own.join("\n") }];
  });
}
