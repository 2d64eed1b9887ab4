import type { DestinationKind, IPFamily, ServicePort } from "@turnout/core";
import type { PortShape, ServiceShape } from "./service-message.ts";

/** Bring the rows of a Service, of both families, into one order. */
export function sortedRows(rows: readonly ServicePort[]): readonly ServicePort[] {
  return rows.toSorted((a, b) => (a.key === b.key ? (a.family < b.family ? -1 : 1) : a.key < b.key ? -1 : 1));
}

function addressesOf(rows: readonly ServicePort[], kind: DestinationKind): readonly string[] {
  return rows.flatMap(({ destinations }) => destinations.filter((one) => one.kind === kind).map(({ address }) => address));
}

/**
 * Say of a Service what its rows of both families say, in {@link sortedRows}' order.
 *
 * Edges: undefined when nothing is left that kpng could say. Addresses and node ports that another Service has are not in rows; one
 * that is another's on some of the ports alone is here, because kpng has one list of addresses for all.
 */
export function serviceShape(rows: readonly ServicePort[]): ServiceShape | undefined {
  const [first] = rows;
  const ports = portsOf(rows);
  if (first === undefined || ports.length === 0) return undefined;
  const { affinitySeconds, internalLocal, externalLocal, healthCheck } = first;
  return {
    namespace: first.name.namespace,
    name: first.name.name,
    clusterIPs: addressesOf(rows, "clusterIP"),
    externalIPs: addressesOf(rows, "externalIP"),
    loadBalancerIPs: addressesOf(rows, "loadBalancerIP"),
    sourceRanges: { IPv4: rangesOf(rows, "IPv4"), IPv6: rangesOf(rows, "IPv6") },
    ports,
    affinitySeconds,
    internalLocal,
    externalLocal,
    healthCheckPort: healthCheck?.port ?? 0,
  };
}

/** The ranges are the Service's, so those of any port are those of all. */
function rangesOf(rows: readonly ServicePort[], family: IPFamily): readonly string[] {
  const destinations = rows.filter((row) => row.family === family).flatMap((row) => row.destinations);
  return destinations.find(({ sourceRanges }) => sourceRanges !== undefined)?.sourceRanges ?? [];
}

/** One for each port of the Service; a port that has lost every address but its node port has no number to say. */
function portsOf(rows: readonly ServicePort[]): readonly PortShape[] {
  const byKey = new Map<string, { shape: PortShape; targets: Set<number> }>();
  for (const { key, name, destinations, endpoints } of rows) {
    const port = destinations.find(({ kind }) => kind !== "nodePort")?.port;
    const known = byKey.get(key);
    if (port === undefined && known === undefined) continue;
    const targets = known?.targets ?? new Set<number>();
    for (const endpoint of endpoints) targets.add(endpoint.port);
    const nodePort = destinations.find(({ kind }) => kind === "nodePort")?.port ?? known?.shape.nodePort ?? 0;
    byKey.set(key, {
      shape: { name: name.port, protocol: name.protocol, port: known?.shape.port ?? port ?? 0, nodePort, targets },
      targets,
    });
  }
  return [...byKey.values()].map(({ shape }) => shape);
}
