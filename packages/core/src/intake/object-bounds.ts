import { canonicalIP } from "../model/addresses.ts";
import { FAMILIES } from "../model/api-objects.ts";
import type { IPFamily, Service, ServiceAddresses } from "../model/api-objects.ts";
import { isObject, listField, objectField, protocolOf, textField } from "./fields.ts";
import type { Findings, ObjectName, Raw } from "./fields.ts";
import type { AllowedAddresses } from "./allowed-addresses.ts";
import { readService } from "./service.ts";

/** Ports times addresses of one Service, and ports times load-balancer IPs times source ranges. */
const PRODUCT_MAX = 20_000;
const SOURCE_RANGES_MAX = 10_000;
const NO_NAMES: ReadonlySet<string> = new Set();

/**
 * Read a Service, unless it asks for more than one object may: then what is left of it as it was `before`.
 *
 * @source rule R-67
 */
export function readBoundedService(
  raw: Raw,
  name: ObjectName,
  findings: Findings,
  allowed: AllowedAddresses | undefined,
  before: Service | undefined,
): Service | undefined {
  return isBeyondBounds(raw, findings) ? keptOf(before, raw) : readService(raw, name, findings, allowed);
}

/**
 * Tell whether a Service asks for more than one object may; reports it. Counts list items and parses none of them.
 *
 * Edges: a list without items counts as one item.
 */
function isBeyondBounds(raw: Raw, findings: Findings): boolean {
  const { spec, ingress } = partsOf(raw);
  const count = (field: string): number => listField(spec, field).length;
  const ports = Math.max(1, count("ports"));
  const addresses = Math.max(1, count("clusterIPs")) + count("externalIPs") + ingress.length;
  const ranges = count("loadBalancerSourceRanges");
  const sources = ranges * Math.max(1, ingress.length);
  const report = (what: string, text: string): void =>
    findings.add(
      `too many ${what}, the Service stays as it was with the addresses and node ports that it still names`,
      // With its address, by which `turnout why` finds the report.
      `${textField(spec, "clusterIP") ?? "no cluster IP"}: ${ports} x ${text}`,
      `split the Service: at most ${PRODUCT_MAX} are allowed, with ${SOURCE_RANGES_MAX} source ranges`,
    );
  if (ports * addresses > PRODUCT_MAX) report("ports times addresses", `${addresses}`);
  else if (ranges > SOURCE_RANGES_MAX || ports * sources > PRODUCT_MAX)
    report("ports times source ranges of load-balancer IPs", `${sources}`);
  else return false;
  return true;
}

/**
 * Keep of a Service what its new version, which is beyond the bounds, still names in the same field; undefined: nothing.
 *
 * Edges: addresses and node ports that it no longer names may be another Service's by now, also if it names them in a field that anyone may write.
 * A headless or ExternalName Service keeps none.
 */
function keptOf(before: Service | undefined, raw: Raw): Service | undefined {
  if (before === undefined) return undefined;
  const { spec, ingress } = partsOf(raw);
  const isExternalName = spec["type"] === "ExternalName";
  const clusterIPs = isExternalName ? NO_NAMES : namesIn([spec["clusterIP"], ...listField(spec, "clusterIPs")]);
  const [externalIPs, loadBalancerIPs] = [namesIn(listField(spec, "externalIPs")), namesIn(ingress.map(ipOf))];
  const nodePorts = new Set(listField(spec, "ports").map(nodePortOf));
  const addresses: Partial<Record<IPFamily, ServiceAddresses>> = {};
  for (const family of FAMILIES) {
    const own = before.addresses[family];
    if (own === undefined || !clusterIPs.has(own.clusterIP)) continue;
    addresses[family] = {
      ...own,
      externalIPs: own.externalIPs.filter((ip) => externalIPs.has(ip)),
      loadBalancerIPs: own.loadBalancerIPs.filter((ip) => loadBalancerIPs.has(ip)),
    };
  }
  const isHealthPortNamed = !isExternalName && spec["healthCheckNodePort"] === before.healthCheckNodePort;
  return {
    ...before,
    addresses,
    ports: before.ports.map((port) => (!isExternalName && nodePorts.has(nodePortOf(port)) ? port : { ...port, nodePort: 0 })),
    healthCheckNodePort: isHealthPortNamed ? before.healthCheckNodePort : 0,
  };
}

/** The canonical addresses in a list. */
function namesIn(items: readonly unknown[]): ReadonlySet<string> {
  return new Set(items.flatMap((text) => (typeof text === "string" ? (canonicalIP(text)?.text ?? []) : [])));
}

/** A port's node port with its protocol: another Service may have the same number in another one. */
function nodePortOf(port: unknown): string {
  if (!isObject(port)) return "";
  const { nodePort, protocol } = port;
  return `${String(nodePort)} ${protocolOf(protocol) ?? ""}`;
}

function partsOf(raw: Raw): { readonly spec: Raw; readonly ingress: readonly unknown[] } {
  const balancer = objectField(objectField(raw, "status"), "loadBalancer");
  return { spec: objectField(raw, "spec"), ingress: listField(balancer, "ingress") };
}

function ipOf(entry: unknown): unknown {
  return isObject(entry) ? entry["ip"] : undefined;
}
