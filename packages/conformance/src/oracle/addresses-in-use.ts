import type { CIDR, IPFamily, Protocol } from "@turnout/core";
import { API_SERVERS, endpointPlaces } from "./read-endpoints.ts";
import { isIn, readNodeAddresses, readPodRanges } from "./read-node.ts";
import type { OracleNode } from "./read-node.ts";
import type { OracleRow } from "./read-services.ts";
import type { OracleWorld } from "./oracle-world.ts";

/** Tells whether a row may have an external IP, as far as no other Service's claims are concerned. */
export type ExternalTest = (row: OracleRow, address: string) => boolean;

/** Rules: which external IPs are free of what the cluster itself uses. */
export function externalTest(world: OracleWorld, family: IPFamily, node: OracleNode): ExternalTest {
  const isStrict = world.allowedAddresses?.strictExternalIPs === true;
  const places = endpointPlaces(world.objects, family);
  const nodeAddresses = readNodeAddresses(world, family);
  const allPods: readonly CIDR[] = readPodRanges(world, family);
  const sources = new Set(world.sourceAddresses ?? []);
  const endpointsAt = (address: string, { port, protocol }: { readonly port: number; readonly protocol: Protocol }) =>
    places.get(`${address} ${port} ${protocol}`) ?? [];
  return (row, address) => {
    if (isIn(address, node.serviceRanges) || isIn(address, node.podCIDRs)) return false;
    const endpoints = endpointsAt(address, row);
    const isSource = sources.has(`${address} ${row.port}`) || endpoints.some(({ service }) => service === API_SERVERS);
    if (row.protocol === "TCP" && isSource) return false;
    const others = endpoints.filter(({ namespace }) => namespace !== row.namespace);
    if (isStrict) return others.length === 0 && !isIn(address, allPods) && !nodeAddresses.has(address);
    return others.every(({ createdMs }) => createdMs >= row.createdMs);
  };
}
