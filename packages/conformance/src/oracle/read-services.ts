import { parseCIDR } from "@turnout/core";
import type { CIDR, IPFamily, Protocol } from "@turnout/core";
import { addressOf, at, isName, listAt, nameOf, objectsOf, portAt, protocolAt, textAt } from "./raw-fields.ts";
import { remember } from "./remember.ts";
import type { OracleObject } from "./oracle-world.ts";

/** Affinity holds this long unless said otherwise (rule R-08). */
const DEFAULT_AFFINITY_SECONDS = 10_800;
const MAX_AFFINITY_SECONDS = 86_400;
const TYPES = ["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"];

/** One port of a Service in one family, with the addresses it wants. */
export interface OracleRow {
  readonly key: string;
  readonly namespace: string;
  readonly service: string;
  readonly portName: string;
  readonly protocol: Protocol;
  readonly port: number;
  /** 0 means none. */
  readonly nodePort: number;
  readonly createdMs: number;
  readonly clusterIP: string;
  readonly externalIPs: readonly string[];
  readonly loadBalancerIPs: readonly string[];
  /** Undefined: everybody may use the load-balancer IPs. */
  readonly sourceRanges: readonly CIDR[] | undefined;
  readonly internalLocal: boolean;
  readonly externalLocal: boolean;
  readonly affinitySeconds: number | undefined;
}

/** Read the rows of all Services in one family (rules ); `isStrict` is the setting of rule R-72. */
export function readServices(objects: readonly OracleObject[], family: IPFamily, isStrict: boolean): readonly OracleRow[] {
  const rowsOfService = isStrict ? strictRowsOfService : usualRowsOfService;
  return objectsOf(objects, "Service").flatMap((service) => rowsOfService(service, family));
}

const usualRowsOfService = remember((service: OracleObject, family: IPFamily) => readService(service, family, false));
const strictRowsOfService = remember((service: OracleObject, family: IPFamily) => readService(service, family, true));

function readService(service: OracleObject, family: IPFamily, isStrict: boolean): readonly OracleRow[] {
  const owner = nameOf(service);
  const clusterIP = clusterIPOf(service, family);
  if (owner === undefined || clusterIP === undefined || !TYPES.includes(typeOf(service))) return [];
  const { namespace, name } = owner;
  const ranges = sourceRangesOf(service, family, isStrict);
  const restricted = addressesIn(loadBalancerAddresses(service), family);
  const shared = {
    namespace,
    service: name,
    createdMs: Date.parse(textAt(service, "metadata", "creationTimestamp")) || 0,
    clusterIP,
    // What is closed to all is so also where the address is an external IP as well (rules ).
    externalIPs: addressesIn(listAt(service, "spec", "externalIPs"), family).filter(
      (address) => ranges !== "closed" || !restricted.includes(address),
    ),
    loadBalancerIPs: ranges === "closed" ? [] : restricted,
    sourceRanges: ranges === "closed" || ranges === "open" ? undefined : ranges,
    internalLocal: textAt(service, "spec", "internalTrafficPolicy") === "Local",
    externalLocal: isReachableFromOutside(service) && textAt(service, "spec", "externalTrafficPolicy") === "Local",
    affinitySeconds: affinitySecondsOf(service),
  };
  return portsOf(service).map((port) => ({
    ...shared,
    ...port,
    key: `${namespace}/${name}:${port.portName}/${port.protocol}`,
  }));
}

/** Rules. */
function clusterIPOf(service: OracleObject, family: IPFamily): string | undefined {
  const first = at(service, "spec", "clusterIP") ?? "";
  if (first === "" || first === "None" || typeOf(service) === "ExternalName") return undefined;
  const given = listAt(service, "spec", "clusterIPs");
  const all = given.length === 0 ? [first] : given;
  const families = listAt(service, "spec", "ipFamilies");
  if (families.length > 0) return addressOf(all[families.indexOf(family)], family);
  return all.map((address) => addressOf(address, family)).find((address) => address !== undefined);
}

type RowPort = Pick<OracleRow, "portName" | "protocol" | "port" | "nodePort">;

/** Rule R-04. */
function portsOf(service: OracleObject): readonly RowPort[] {
  const ports: RowPort[] = [];
  for (const raw of listAt(service, "spec", "ports")) {
    const protocol = protocolAt(raw);
    const port = portAt(raw, "port");
    const portName = at(raw, "name") ?? "";
    if (protocol === undefined || port === 0 || typeof portName !== "string" || !(portName === "" || isName(portName))) continue;
    const isTaken = ports.some((other) => other.protocol === protocol && (other.portName === portName || other.port === port));
    if (!isTaken) ports.push({ portName, protocol, port, nodePort: portAt(raw, "nodePort") });
  }
  return ports;
}

/** Rules. */
function addressesIn(list: readonly unknown[], family: IPFamily): readonly string[] {
  return [...new Set(list.flatMap((text) => addressOf(text, family) ?? []))];
}

/** Rule R-06. */
function loadBalancerAddresses(service: OracleObject): readonly unknown[] {
  return listAt(service, "status", "loadBalancer", "ingress")
    .filter((entry) => (at(entry, "ipMode") ?? "VIP") === "VIP")
    .map((entry) => at(entry, "ip"));
}

/** Rules: who may use the load-balancer IPs of a family. */
function sourceRangesOf(service: OracleObject, family: IPFamily, isStrict: boolean): readonly CIDR[] | "open" | "closed" {
  const given = at(service, "spec", "loadBalancerSourceRanges");
  if (given === undefined || (Array.isArray(given) && given.length === 0)) return "open";
  if (!Array.isArray(given)) return "closed";
  const texts: readonly unknown[] = given;
  const ranges = texts.map((text) => (typeof text === "string" ? parseCIDR(text) : undefined));
  const readable = ranges.filter((range) => range !== undefined);
  const own = readable.filter((range) => range.family === family);
  const isForAll = (range: CIDR): boolean => /\/0+$/.test(range.text);
  if (own.length > 0) return own.some(isForAll) ? "open" : own;
  if (readable.length < ranges.length) return "closed";
  return isStrict && !readable.some(isForAll) ? "closed" : "open";
}

/** Rule R-08. */
function affinitySecondsOf(service: OracleObject): number | undefined {
  if (textAt(service, "spec", "sessionAffinity") !== "ClientIP") return undefined;
  const seconds = at(service, "spec", "sessionAffinityConfig", "clientIP", "timeoutSeconds");
  return typeof seconds === "number" && Number.isInteger(seconds) && seconds >= 1 && seconds <= MAX_AFFINITY_SECONDS
    ? seconds
    : DEFAULT_AFFINITY_SECONDS;
}

/** Rule R-10. */
function isReachableFromOutside(service: OracleObject): boolean {
  const type = typeOf(service);
  return type === "LoadBalancer" || type === "NodePort" || (type === "ClusterIP" && listAt(service, "spec", "externalIPs").length > 0);
}

function typeOf(service: OracleObject): string {
  return textAt(service, "spec", "type") || "ClusterIP";
}

/** The rule that leaves a load-balancer address without rules, if one does. */
export function ruleAgainst(address: string, objects: readonly OracleObject[], family: IPFamily, isStrict: boolean): string | undefined {
  for (const service of objectsOf(objects, "Service")) {
    const entries = listAt(service, "status", "loadBalancer", "ingress").filter((entry) => addressOf(at(entry, "ip"), family) === address);
    if (entries.length === 0) continue;
    if (entries.some((entry) => at(entry, "ipMode") === "Proxy")) return "R-06";
    if (sourceRangesOf(service, family, isStrict) !== "closed") continue;
    const isOtherReadable = sourceRangesOf(service, family === "IPv4" ? "IPv6" : "IPv4", isStrict) !== "closed";
    return isOtherReadable ? "R-72" : "R-07";
  }
  return undefined;
}
