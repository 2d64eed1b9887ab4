import type { BackendMetric, ServicePort } from "@turnout/core/backend";
import { sumCounter } from "@turnout/host/bpf";
import type { BpfMap } from "@turnout/host/bpf";
import { encodeId, STRUCTS } from "./layout.ts";
import { rowId } from "./names.ts";

interface Counted {
  readonly name: string;
  readonly help: string;
  /** Why it came to this, where that can differ. */
  readonly reason?: string;
}

const REJECTED = { name: "turnout_ebpf_rejected_total", help: "Connections, datagrams and packets to a Service port that were refused" };
const DROPPED = { name: "turnout_ebpf_dropped_total", help: "Connections, datagrams and packets to a Service port that were dropped" };

/** What programs count of each row, as metrics. */
const COUNTED: Readonly<Record<keyof typeof STRUCTS.counters.fields, Counted>> = {
  connections: {
    name: "turnout_ebpf_connections_total",
    help: "Connections to a Service port, by sockets of this node and by packets from elsewhere; flows of UDP packets are among them",
  },
  datagrams: {
    name: "turnout_ebpf_datagrams_total",
    help: "Datagrams that sockets of this node sent to a Service port without connecting",
  },
  rejects: { ...REJECTED, reason: "no-endpoints" },
  drops: { ...DROPPED, reason: "no-local-endpoints" },
  outside: { ...DROPPED, reason: "source-ranges" },
};

/** Which row each name in the maps is: only digests are there. */
export class RowNames {
  readonly #rows = new Map<string, ServicePort["name"]>();

  /** A row is rendered. */
  learn({ key, family, name }: ServicePort): void {
    this.#rows.set(rowId(key, family), name);
  }

  /** Of which there are no counters any more. */
  forget(id: string): void {
    this.#rows.delete(id);
  }

  /** All that are known, by their names in the maps. */
  entries(): Iterable<readonly [string, ServicePort["name"]]> {
    return this.#rows;
  }
}

/** Tell what programs counted of each row, but for what never happened. Some microseconds for each row. */
export function rowMetrics(counters: Pick<BpfMap, "lookup" | "info">, names: RowNames): readonly BackendMetric[] {
  const metrics: BackendMetric[] = [];
  for (const [id, { namespace, name: service, port, protocol }] of names.entries()) {
    const value = counters.lookup(encodeId(id));
    if (value === undefined) continue;
    for (const [field, { name, help, reason }] of Object.entries(COUNTED)) {
      const [offset] = STRUCTS.counters.fields[field as keyof typeof COUNTED];
      const count = Number(sumCounter(value, counters.info.valueSize, offset));
      const labels = { namespace, service, port, protocol, ...(reason === undefined ? {} : { reason }) };
      if (count > 0) metrics.push({ name, help, kind: "counter", labels, value: count });
    }
  }
  return metrics;
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
