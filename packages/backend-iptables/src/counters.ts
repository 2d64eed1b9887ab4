import { ProxyError } from "@turnout/core/backend";
import type { BackendMetric } from "@turnout/core/backend";

/** The part of `Netlink` that reads counters; this file is rendered with, and knows no sockets. */
export interface CounterReader {
  counterPackets(name: string): Promise<number | undefined>;
}

/** kube-proxy's counters of packets, by what they count. @source kube-proxy pkg/proxy/metrics/metrics.go */
export const COUNTERS = { invalid: "ct_state_invalid_dropped_pkts", loopback: "localhost_nps_accepted_pkts" } as const;

/** The metric of each counter. */
const METRICS: Readonly<Record<keyof typeof COUNTERS, readonly [name: string, help: string]>> = {
  invalid: ["kubeproxy_iptables_ct_state_invalid_dropped_packets_total", "packets dropped by iptables to work around conntrack problems"],
  loopback: [
    "kubeproxy_iptables_localhost_nodeports_accepted_packets_total",
    "Number of packets accepted on nodeports of loopback interface",
  ],
};

/** The match that has a rule counted, as `iptables-save` prints it (two spaces, iptables 1.8.9). */
export function counted(counter: keyof typeof COUNTERS): string {
  return `-m nfacct --nfacct-name  ${COUNTERS[counter]}`;
}

/** Tell whether the kernel knows counters; asking makes none. @throws {ProxyError} what the socket fails with. */
export async function canCount({ counterPackets }: CounterReader): Promise<boolean> {
  try {
    await counterPackets(COUNTERS.invalid);
    return true;
  } catch (error) {
    // Without the right to ask, `apply` says so; a dry run goes on.
    if (ProxyError.is(error, "host_unsupported") || ProxyError.is(error, "permission_denied")) return false;
    throw error;
  }
}

/** Read the counters that are there as metrics of the whole host: both families' rules count in the same ones. */
export async function counterMetrics(netlink: CounterReader): Promise<readonly BackendMetric[]> {
  if (!(await canCount(netlink))) return [];
  const reported: BackendMetric[] = [];
  for (const counter of ["invalid", "loopback"] as const) {
    const value = await netlink.counterPackets(COUNTERS[counter]);
    const [name, help] = METRICS[counter];
    if (value !== undefined) reported.push({ name, help: `[ALPHA] ${help}`, kind: "counter", isOfHost: true, value });
  }
  return reported;
}
