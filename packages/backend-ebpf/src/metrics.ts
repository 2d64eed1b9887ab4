import { objectId } from "@turnout/core/backend";
import type { BackendMetric, CountName, Counts, IPFamily } from "@turnout/core/backend";
import { sumCounter } from "@turnout/host/bpf";
import type { BpfMap } from "@turnout/host/bpf";
import { encodeId, STRUCTS } from "./bytes/layout.ts";
import { loopbackId } from "./names.ts";

/** What programs count of each row, in the contract's words. */
const COUNTED: Readonly<Record<keyof typeof STRUCTS.counters.fields, CountName>> = {
  connections: "connections",
  datagrams: "datagrams",
  rejects: "rejects",
  drops: "dropsWithoutLocal",
  outside: "dropsOutsideRanges",
};

/** Read what programs counted, by the counters' objects; `ids` are rows by their names in the maps. Some microseconds for each row. */
export function rowCounts(counters: Pick<BpfMap, "lookup" | "info">, ids: Iterable<string>): ReadonlyMap<string, Counts> {
  const found = new Map<string, Counts>();
  for (const id of ids) {
    const value = counters.lookup(encodeId(id));
    if (value === undefined) continue;
    const counts = Object.entries(COUNTED).flatMap(([field, name]) => {
      const [offset] = STRUCTS.counters.fields[field as keyof typeof COUNTED];
      const count = Number(sumCounter(value, counters.info.valueSize, offset));
      return count > 0 ? [[name, count] as const] : [];
    });
    if (counts.length > 0) found.set(objectId({ kind: "counter", key: id, value: true }), Object.fromEntries(counts));
  }
  return found;
}

/**
 * Name what was refused on loopback, as kube-proxy does; nothing where node ports are not wanted there. Sockets of SCTP are not seen.
 * @source kube-proxy pkg/proxy/metrics/metrics.go localhostNodePortRejectedPacketsDescription
 */
export function loopbackMetrics(counters: Pick<BpfMap, "lookup" | "info">, family: IPFamily): readonly BackendMetric[] {
  const value = counters.lookup(encodeId(loopbackId(family)));
  if (value === undefined) return [];
  const [offset] = STRUCTS.counters.fields.rejects;
  return [
    {
      name: "kubeproxy_nftables_localhost_nodeport_rejected_packets_total",
      help: "[ALPHA] Number of packets rejected on localhost NodePorts",
      kind: "counter",
      labels: { protocol: "UDP" },
      value: Number(sumCounter(value, counters.info.valueSize, offset)),
    },
  ];
}

/** Tell how much of the kernel's memory the maps take, and how many elements each may have. */
export function mapMetrics(maps: ReadonlyMap<string, Pick<BpfMap, "memoryBytes" | "info">>): readonly BackendMetric[] {
  return [...maps].flatMap(([map, one]): readonly BackendMetric[] => [
    {
      name: "turnout_ebpf_map_memory_bytes",
      help: "Memory of the kernel that a map takes now",
      kind: "gauge",
      labels: { map },
      value: one.memoryBytes(),
    },
    {
      name: "turnout_ebpf_map_max_entries",
      help: "Elements that a map may have",
      kind: "gauge",
      labels: { map },
      value: one.info.maxEntries,
    },
  ]);
}
