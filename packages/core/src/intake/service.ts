import { canonicalIP, unusableReason } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";
import { isDNSName } from "../model/names.ts";
import { FAMILIES } from "../model/api-objects.ts";
import type { IPFamily, Service, ServiceAddresses, ServicePortSpec } from "../model/api-objects.ts";
import { isPort, listField, objectField, objectsField, protocolOf, textField, timeOf } from "./fields.ts";
import type { Findings, ObjectName, Raw } from "./fields.ts";
import { isAllowed } from "./allowed-addresses.ts";
import type { AllowedAddresses } from "./allowed-addresses.ts";
import { rangesOfFamily, readSourceRanges } from "./source-ranges.ts";

const DEFAULT_AFFINITY_SECONDS = 10_800;
const MAX_AFFINITY_SECONDS = 86_400;
const NONE: readonly string[] = [];
const TYPES = new Set(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]);

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
type ByFamily<T> = Record<IPFamily, T>;

/**
 * Reduce a v1 Service to what a proxy reads.
 *
 * Edges: headless and ExternalName Services come out without addresses; a bad part (port, address, range) is skipped
 * and noted in `findings`, a Service whose type is unknown gives undefined.
 * @source kube-proxy pkg/proxy/serviceport.go newBaseServiceInfo; rules
 */
export function readService(
  raw: Raw,
  { namespace, name }: ObjectName,
  findings: Findings,
  allowed: AllowedAddresses = {},
): Service | undefined {
  const spec = objectField(raw, "spec", findings);
  const type = textField(spec, "type") || "ClusterIP";
  if (!TYPES.has(type)) {
    findings.add("unknown Service type, the Service is skipped", type, "use ClusterIP, NodePort, LoadBalancer or ExternalName");
    return undefined;
  }
  const addresses = type === "ExternalName" ? {} : readAddresses(raw, spec, findings, allowed);
  const hasExternalIPs = listField(spec, "externalIPs").length > 0;
  const isExternal = type === "LoadBalancer" || type === "NodePort" || (type === "ClusterIP" && hasExternalIPs);
  const externalLocal = isExternal && readPolicy(spec, "externalTrafficPolicy", findings);
  const healthPort = spec["healthCheckNodePort"];
  return {
    namespace,
    name,
    createdMs: timeOf(objectField(raw, "metadata")["creationTimestamp"]) ?? 0,
    ports: readPorts(spec, findings),
    addresses,
    affinitySeconds: readAffinity(spec, findings),
    internalLocal: readPolicy(spec, "internalTrafficPolicy", findings),
    externalLocal,
    healthCheckNodePort: type === "LoadBalancer" && externalLocal && isPort(healthPort) ? healthPort : 0,
  };
}

function readPolicy(spec: Raw, field: string, findings: Findings): boolean {
  const value = spec[field];
  if (value === undefined || value === null || value === "" || value === "Cluster") return false;
  if (value === "Local") return true;
  findings.add(`unknown ${field}, read as Cluster`, value, "use Cluster or Local");
  return false;
}

function readAffinity(spec: Raw, findings: Findings): number | undefined {
  const affinity = spec["sessionAffinity"];
  if (affinity === undefined || affinity === null || affinity === "" || affinity === "None") return undefined;
  if (affinity !== "ClientIP") {
    findings.add("unknown sessionAffinity, read as None", affinity, "use None or ClientIP");
    return undefined;
  }
  const seconds = objectField(objectField(spec, "sessionAffinityConfig", findings), "clientIP", findings)["timeoutSeconds"];
  if (seconds === undefined || seconds === null) return DEFAULT_AFFINITY_SECONDS;
  if (typeof seconds === "number" && Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_AFFINITY_SECONDS) return seconds;
  findings.add(`sessionAffinity timeout out of range, ${DEFAULT_AFFINITY_SECONDS} s is used`, seconds, "use 1 to 86400 seconds");
  return DEFAULT_AFFINITY_SECONDS;
}

function readPorts(spec: Raw, findings: Findings): readonly ServicePortSpec[] {
  const raws = objectsField(spec, "ports", findings);
  const [only] = raws;
  if (raws.length === 1 && only !== undefined) {
    const port = readPort(only, findings);
    return port === undefined ? [] : [port];
  }
  const ports: ServicePortSpec[] = [];
  const seen = new Set<string>();
  for (const raw of raws) {
    const port = readPort(raw, findings);
    if (port === undefined) continue;
    const identities = [`name ${port.name}/${port.protocol}`, `port ${port.port}/${port.protocol}`];
    if (identities.some((identity) => seen.has(identity))) {
      findings.add(
        "duplicate port, the first one stays",
        `${port.name} ${port.port}/${port.protocol}`,
        "give each port its own name and number",
      );
      continue;
    }
    for (const identity of identities) seen.add(identity);
    ports.push(port);
  }
  return ports;
}

function readPort(raw: Raw, findings: Findings): ServicePortSpec | undefined {
  const name = raw["name"] ?? "";
  const protocol = protocolOf(raw["protocol"]);
  if (typeof name !== "string" || (name !== "" && !isDNSName(name))) {
    findings.add("bad port name, the port is skipped", name, "use letters, digits and dashes");
    return undefined;
  }
  if (protocol === undefined) {
    findings.add("unknown protocol, the port is skipped", raw["protocol"], "use TCP, UDP or SCTP");
    return undefined;
  }
  if (!isPort(raw["port"])) {
    findings.add("bad port number, the port is skipped", raw["port"], "use 1 to 65535");
    return undefined;
  }
  const nodePort = raw["nodePort"] ?? 0;
  if (nodePort !== 0 && !isPort(nodePort)) findings.add("bad nodePort, it is left out", nodePort, "use 1 to 65535");
  return { name, protocol, port: raw["port"], nodePort: isPort(nodePort) ? nodePort : 0 };
}

function readAddresses(raw: Raw, spec: Raw, findings: Findings, allowed: AllowedAddresses): Service["addresses"] {
  const clusterIPs = readClusterIPs(spec, findings);
  if (clusterIPs === undefined) return {};
  const externalIPs = split(listField(spec, "externalIPs", findings), "externalIP", findings);
  const sources = readSourceRanges(spec, findings, allowed.strictSourceRanges === true);
  const { taken, proxied } = ingressIPs(raw, findings);
  const ingress = split(taken, "load-balancer IP", findings);
  const hasOutside = listField(spec, "externalIPs").length > 0 || taken.length > 0 || proxied.length > 0;
  const addresses: Mutable<Partial<Record<IPFamily, ServiceAddresses>>> = {};
  for (const family of FAMILIES) {
    const clusterIP = clusterIPs[family];
    if (clusterIP === "") continue;
    // Most Services have a cluster IP alone.
    if (!hasOutside) {
      addresses[family] = { clusterIP, externalIPs: NONE, loadBalancerIPs: NONE, sourceRanges: NONE };
      continue;
    }
    const { kept, leftOut } = limited(ingress[family], "load-balancer IP", allowed.loadBalancerIPs, findings);
    const ranges = rangesOfFamily(sources, family, kept, findings);
    const closed = new Set(ranges === "closed" ? ingress[family] : leftOut);
    const external = limited(externalIPs[family], "external IP", allowed.externalIPs, findings).kept;
    const unserved = [
      ...proxied.flatMap((ip) => (ip.family === family ? [{ ip: ip.text, why: "ipMode" as const }] : [])),
      ...(ranges === "closed" ? ingress[family].map((ip) => ({ ip, why: "sourceRanges" as const })) : []),
    ];
    addresses[family] = {
      clusterIP,
      // Not as an external IP either: naming an address twice must not open it.
      externalIPs: closed.size === 0 ? external : external.filter((ip) => !closed.has(ip)),
      loadBalancerIPs: ranges === "closed" ? [] : kept,
      ...(unserved.length === 0 ? {} : { unserved }),
      sourceRanges: ranges === "closed" ? [] : ranges,
    };
  }
  return addresses;
}

/** Take out what the list doesn't allow. */
function limited(
  addresses: readonly string[],
  what: string,
  list: readonly CIDR[] | undefined,
  findings: Findings,
): { readonly kept: readonly string[]; readonly leftOut: readonly string[] } {
  const { kept = [], leftOut = [] } = Object.groupBy(addresses, (ip) => (isAllowed(ip, list) ? "kept" : "leftOut"));
  if (leftOut.length === 0) return { kept: addresses, leftOut };
  const isExternal = what === "external IP";
  const flag = isExternal ? "--allowed-external-ip-cidrs" : "--allowed-load-balancer-ip-cidrs";
  const hint =
    isExternal && list?.length === 0
      ? `none is served: because of ${flag} none, the feature gate AllowServiceExternalIPs=false, or the cluster's version (1.40 or later); AllowServiceExternalIPs=true serves all`
      : `use an address in ${flag}, or have it added there`;
  for (const ip of leftOut) findings.add(`${what} outside the ranges allowed, it is left out`, ip, hint);
  return { kept, leftOut };
}

/** Undefined for a headless Service; "" for a family without a cluster IP. */
function readClusterIPs(spec: Raw, findings: Findings): ByFamily<string> | undefined {
  const first = spec["clusterIP"];
  if (first === undefined || first === null || first === "" || first === "None") return undefined;
  const listed = listField(spec, "clusterIPs", findings);
  const texts = listed.length > 0 ? listed : [first];
  const families = listField(spec, "ipFamilies", findings);
  const found: ByFamily<string> = { IPv4: "", IPv6: "" };
  for (const [index, text] of texts.entries()) {
    const ip = usable(text, "clusterIP", findings);
    if (ip === undefined) continue;
    // With ipFamilies the position decides (upstream GetClusterIPByFamily); an address of another family is nobody's.
    if (families.length > 0 && families[index] !== ip.family) {
      findings.add("clusterIP does not match ipFamilies, it is left out", text, "let the API server allocate it");
    } else if (found[ip.family] === "") {
      found[ip.family] = ip.text;
    }
  }
  return found;
}

/** Entries with an IP: those in VIP mode, which get rules, and those in mode Proxy. */
function ingressIPs(
  raw: Raw,
  findings: Findings,
): { readonly taken: readonly unknown[]; readonly proxied: readonly { text: string; family: IPFamily }[] } {
  const taken: unknown[] = [];
  const proxied: { text: string; family: IPFamily }[] = [];
  const balancer = objectField(objectField(raw, "status", findings), "loadBalancer", findings);
  for (const entry of objectsField(balancer, "ingress", findings)) {
    const { ip } = entry;
    if (ip === undefined || ip === "") continue;
    const mode = entry["ipMode"] ?? "VIP";
    const canonical = typeof ip === "string" ? canonicalIP(ip) : undefined;
    if (mode === "VIP") taken.push(ip);
    else if (mode !== "Proxy") findings.add("unknown ipMode, the load-balancer IP is left out", mode, "use VIP or Proxy");
    else if (canonical !== undefined) proxied.push(canonical);
  }
  return { taken, proxied };
}

function split(texts: readonly unknown[], what: string, findings: Findings): ByFamily<readonly string[]> {
  const found: ByFamily<Set<string>> = { IPv4: new Set(), IPv6: new Set() };
  for (const text of texts) {
    if (text === "") continue;
    const ip = usable(text, what, findings);
    if (ip !== undefined) found[ip.family].add(ip.text);
  }
  return { IPv4: [...found.IPv4], IPv6: [...found.IPv6] };
}

function usable(text: unknown, what: string, findings: Findings): { text: string; family: IPFamily } | undefined {
  const ip = typeof text === "string" ? canonicalIP(text) : undefined;
  if (ip === undefined) {
    findings.add(`bad ${what}, it is left out`, text, "use an IPv4 or IPv6 address");
    return undefined;
  }
  const reason = unusableReason(ip.text);
  if (reason === undefined) return ip;
  findings.add(`${reason} ${what} refused`, ip.text, "use an address that other hosts can reach");
  return undefined;
}
