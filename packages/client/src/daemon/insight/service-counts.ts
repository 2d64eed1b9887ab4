import type { BackendMetric, CountName, Counts, ServicePort, ServicePortName } from "@turnout/core";

/** What a dataplane counted for one row since this process first looked. */
export interface RowCounts {
  readonly row: string;
  readonly name: ServicePortName;
  readonly counts: Counts;
}

/** The busiest rows, and how many there are besides. */
export interface CountedRows {
  readonly busiest: readonly RowCounts[];
  readonly leftOut: number;
  /** When the dataplane was read last, ms since the epoch; undefined: it is being read for the first time. */
  readonly readMs: number | undefined;
}

/** What was last read of one object. */
interface Reading {
  readonly row: string;
  readonly counts: Counts;
}

/** How a count is told in metrics. */
const METRICS: Readonly<
  Record<CountName, { readonly name: string; readonly help: string; readonly label?: Readonly<Record<string, string>> }>
> = {
  connections: { name: "connections_total", help: "New connections, and flows of UDP, that were sent to an endpoint of a Service port" },
  datagrams: { name: "datagrams_total", help: "Datagrams that were sent to an endpoint of a Service port one by one" },
  bytesIn: { name: "bytes_total", help: "Bytes of packets between clients and endpoints of a Service port", label: { direction: "in" } },
  bytesOut: { name: "bytes_total", help: "Bytes of packets between clients and endpoints of a Service port", label: { direction: "out" } },
  rejects: {
    name: "rejected_total",
    help: "Connections and packets to a Service port that were refused",
    label: { reason: "no-endpoints" },
  },
  dropsWithoutLocal: {
    name: "dropped_total",
    help: "Connections and packets to a Service port that were dropped",
    label: { reason: "no-local-endpoints" },
  },
  dropsOutsideRanges: {
    name: "dropped_total",
    help: "Connections and packets to a Service port that were dropped",
    label: { reason: "source-ranges" },
  },
};
const NAMES = Object.keys(METRICS) as readonly CountName[];

/**
 * Adds up what a dataplane counts for each row of one family. It counts for objects, which may begin anew: a row's addresses come and go, and
 * an object may be written again.
 */
export class ServiceCounts {
  #readMs: number | undefined;
  readonly #readings = new Map<string, Reading>();
  readonly #sums = new Map<string, Counts>();

  /** Take what was read now. `ownerOf` says which row owns an object; what nobody owns, or several, counts for nobody. */
  take(
    read: ReadonlyMap<string, Counts>,
    rows: ReadonlyMap<string, ServicePort>,
    ownerOf: (object: string) => string | undefined,
    nowMs: number,
  ): void {
    this.#readMs = nowMs;
    for (const [object, counts] of read) {
      const row = ownerOf(object);
      if (row === undefined) continue;
      const before = this.#readings.get(object);
      this.#readings.set(object, { row, counts });
      this.#sums.set(row, sumOf(this.#sums.get(row) ?? {}, grown(before?.row === row ? before.counts : {}, counts)));
    }
    for (const [object, { row }] of this.#readings) if (!read.has(object) || !rows.has(row)) this.#readings.delete(object);
    for (const row of this.#sums.keys()) if (!rows.has(row)) this.#sums.delete(row);
  }

  /** The `max` rows that most was counted for; those without any count are none. */
  busiest(rows: ReadonlyMap<string, ServicePort>, max: number): CountedRows {
    const counted = [...this.#sums].map(([row, counts]) => ({ row, counts, weight: weightOf(counts) })).filter(({ weight }) => weight > 0);
    counted.sort((a, b) => b.weight - a.weight || (a.row < b.row ? -1 : 1));
    const busiest = counted.slice(0, max).flatMap(({ row, counts }): readonly RowCounts[] => {
      const name = rows.get(row)?.name;
      return name === undefined ? [] : [{ row, name, counts }];
    });
    return { busiest, leftOut: Math.max(0, counted.length - max), readMs: this.#readMs };
  }
}

/** Tell counted rows as metrics. Pure. */
export function countMetrics({ busiest, leftOut }: Pick<CountedRows, "busiest" | "leftOut">): readonly BackendMetric[] {
  const reported = busiest.flatMap(({ name: { namespace, name: service, port, protocol }, counts }) =>
    NAMES.flatMap((count): readonly BackendMetric[] => {
      const value = counts[count] ?? 0;
      const { name, help, label } = METRICS[count];
      const labels = { namespace, service, port, protocol, ...label };
      return value === 0 ? [] : [{ name: `turnout_service_${name}`, help, kind: "counter", labels, value }];
    }),
  );
  const help = "Service ports that something was counted for, and that are less busy than those that are told";
  return [...reported, { name: "turnout_service_ports_left_out", help, kind: "gauge", value: leftOut }];
}

/** What was counted since; a smaller number has begun anew. */
function grown(before: Counts, now: Counts): Counts {
  return mapped(now, (count, value) => (value >= (before[count] ?? 0) ? value - (before[count] ?? 0) : value));
}

function sumOf(sum: Counts, more: Counts): Counts {
  return { ...sum, ...mapped(more, (count, value) => (sum[count] ?? 0) + value) };
}

function mapped(counts: Counts, map: (count: CountName, value: number) => number): Counts {
  return Object.fromEntries(NAMES.flatMap((count) => (counts[count] === undefined ? [] : [[count, map(count, counts[count])]])));
}

/** Bytes aside: they would hide what is refused. */
function weightOf({ connections = 0, datagrams = 0, rejects = 0, dropsWithoutLocal = 0, dropsOutsideRanges = 0 }: Counts): number {
  return connections + datagrams + rejects + dropsWithoutLocal + dropsOutsideRanges;
}
