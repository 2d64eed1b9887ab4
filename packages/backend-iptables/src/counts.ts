import { objectId } from "@turnout/core/backend";
import type { CountName, Counts, IPFamily } from "@turnout/core/backend";
import { readCounted } from "@turnout/host/iptables/text";

/** Chains of the filter table that refuse and drop by a destination, and what a drop there means. */
const REFUSING: Readonly<Record<string, CountName>> = {
  "KUBE-SERVICES": "dropsWithoutLocal",
  "KUBE-EXTERNAL-SERVICES": "dropsWithoutLocal",
  "KUBE-PROXY-FIREWALL": "dropsOutsideRanges",
};
const TO_ENDPOINT = /-j KUBE-SEP-/;

/**
 * Read what the kernel counted for each row's chains and rules out of what `iptables-save -c` printed.
 *
 * Edges: a chain or rule that is written again begins anew. A rule's packets are those of connections: the nat table sees the first of each.
 */
export function parseCounts(nat: string, filter: string, family: IPFamily): ReadonlyMap<string, Counts> {
  const found = new Map<string, Counts>();
  for (const [chain, rules] of readCounted(nat, family, (name) => /^KUBE-SV[CL]-/.test(name))) {
    const connections = rules.reduce((sum, { rule, packets }) => sum + (TO_ENDPOINT.test(rule) ? packets : 0), 0);
    if (connections > 0) found.set(objectId({ kind: "chain", key: `nat ${chain}`, value: "" }), { connections });
  }
  for (const [chain, rules] of readCounted(filter, family, (name) => REFUSING[name] !== undefined)) {
    for (const { rule, packets } of rules) {
      const count = rule.includes("-j REJECT") ? "rejects" : rule.endsWith("-j DROP") ? REFUSING[chain] : undefined;
      if (count !== undefined && packets > 0)
        found.set(objectId({ kind: "rule", key: `filter ${chain} ${rule}`, value: 1 }), { [count]: packets });
    }
  }
  return found;
}
