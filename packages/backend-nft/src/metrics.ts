import type { BackendMetric } from "@turnout/core/backend";
import type { NftPartsQuestion, NftTable } from "@turnout/host";
import { LOOPBACK_CHAIN, LOOPBACK_SET } from "./names.ts";

/** What is refused on loopback: the process answers TCP. */
const REFUSED = ["udp", "sctp"] as const;

/** Asks the kernel for what it has refused on loopback. */
export const LOOPBACK_QUESTION: NftPartsQuestion = {
  chains: [LOOPBACK_CHAIN],
  elements: REFUSED.map((protocol) => ({ set: LOOPBACK_SET, key: [{ is: "protocol", text: protocol }] })),
};

/**
 * Name what the kernel has refused on loopback, as kube-proxy does; nothing where node ports are not wanted there. Pure.
 * @source kube-proxy pkg/proxy/metrics/metrics.go localhostNodePortRejectedPacketsDescription
 */
export function loopbackMetrics(parts: NftTable | undefined): readonly BackendMetric[] {
  if (parts?.chains.has(LOOPBACK_CHAIN) !== true) return [];
  const counted = new Map(parts.sets.get(LOOPBACK_SET)?.map(({ key, counter }) => [key, counter?.packets ?? 0]));
  return REFUSED.map((protocol) => ({
    name: "kubeproxy_nftables_localhost_nodeport_rejected_packets_total",
    help: "[ALPHA] Number of packets rejected on localhost NodePorts",
    kind: "counter",
    labels: { protocol: protocol.toUpperCase() },
    value: counted.get(protocol) ?? 0,
  }));
}

/**
 * Name the numbers of a backend: kube-proxy's names.
 * @param failures plans of which a transaction failed
 * @param cleanupFailures idle chains times tries that could not delete them
 * @source kube-proxy pkg/proxy/metrics/metrics.go
 */
export function nftMetrics(failures: number, cleanupFailures: number): readonly BackendMetric[] {
  const counter = (what: string, value: number): BackendMetric => ({
    name: `kubeproxy_sync_proxy_rules_nftables_${what}_failures_total`,
    help: `[ALPHA] Cumulative proxy nftables ${what} failures`,
    kind: "counter",
    value,
  });
  return [counter("sync", failures), counter("cleanup", cleanupFailures)];
}
