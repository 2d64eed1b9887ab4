import { canonicalIP, compareAddresses, unusableReason } from "../model/addresses.ts";
import { withEqual } from "../model/equal.ts";
import { isDNSName } from "../model/names.ts";
import type { EndpointSlice, IPFamily, SliceEndpoint, SlicePort } from "../model/api-objects.ts";
import { firstItems, isObject, isPort, listField, objectField, objectsField, protocolOf, textField, timeOf } from "./fields.ts";
import type { Findings, ObjectName, Raw } from "./fields.ts";

const SERVICE_NAME_LABEL = "kubernetes.io/service-name";
const MANAGED_BY_LABEL = "endpointslice.kubernetes.io/managed-by";
const MULTICLUSTER_LABEL = "multicluster.kubernetes.io/service-name";
const TRIGGER_ANNOTATION = "endpoints.kubernetes.io/last-change-trigger-time";
const NO_HINTS: readonly string[] = [];
/** Hints of one endpoint and level. @source kubernetes pkg/apis/discovery/validation maxZoneHints */
const HINTS_MAX = 8;

/** Gives back one shared copy of equal strings: node and zone names recur a hundred thousand times. */
export type Intern = (text: string) => string;

/** How slices are read. */
export interface SliceReading {
  readonly intern: Intern;
  /** Keep the names of the Pods behind endpoints: they are different for every endpoint, and nothing but kpng's protocols asks for them. */
  readonly keepsPodNames: boolean;
}

/**
 * Reduce a discovery.k8s.io/v1 EndpointSlice to what a proxy reads.
 *
 * Edges: FQDN slices, and slices without the service-name label that another system keeps for itself, give undefined without a finding; other slices
 * without the label with one; ports without a
 * name or number and endpoints without a usable address are skipped; only an endpoint's first address is read. What is equal in `before`, the
 * slice as it was, stays the same object, and `before` itself where all is.
 * @source kube-proxy pkg/proxy/endpointslicecache.go; rules
 */
export function readEndpointSlice(
  raw: Raw,
  { namespace, name }: ObjectName,
  findings: Findings,
  reading: SliceReading,
  before?: EndpointSlice,
): EndpointSlice | undefined {
  const addressType = raw["addressType"];
  if (addressType === "FQDN") return undefined;
  if (addressType !== "IPv4" && addressType !== "IPv6") {
    findings.add("unknown addressType, the slice is skipped", addressType, "use IPv4 or IPv6");
    return undefined;
  }
  const metadata = objectField(raw, "metadata");
  const labels = objectField(metadata, "labels");
  const service = textField(labels, SERVICE_NAME_LABEL) ?? "";
  if (!isDNSName(service)) {
    if (service === "" && isOfAnotherSystem(labels)) return undefined;
    findings.add("no usable service label, the slice is skipped", service, `set the label ${SERVICE_NAME_LABEL}`);
    return undefined;
  }
  const known = before?.family === addressType ? before : undefined;
  const slice: EndpointSlice = {
    namespace,
    name,
    service,
    family: addressType,
    createdMs: timeOf(metadata["creationTimestamp"]) ?? 0,
    ports: objectsField(raw, "ports", findings).flatMap((port) => readPort(port, findings, reading.intern)),
    endpoints: readEndpoints(raw, { family: addressType, namespace, findings, reading, known: known?.endpoints ?? [] }),
    triggeredMs: timeOf(objectField(metadata, "annotations")[TRIGGER_ANNOTATION]),
  };
  return withEqual(known, slice);
}

/** The Service that a slice's label names, `namespace/name`; undefined: none that there may be. */
export function serviceOfSlice(raw: Raw, namespace: string): string | undefined {
  const service = textField(objectField(objectField(raw, "metadata"), "labels"), SERVICE_NAME_LABEL);
  return service !== undefined && isDNSName(service) ? `${namespace}/${service}` : undefined;
}

/** Multi-Cluster Services and gateways keep slices of their own, which no service proxy is meant to use. */
function isOfAnotherSystem(labels: Raw): boolean {
  const manager = textField(labels, MANAGED_BY_LABEL) ?? "";
  return labels[MULTICLUSTER_LABEL] !== undefined || (manager !== "" && !manager.endsWith("controller.k8s.io"));
}

function readPort(raw: Raw, findings: Findings, intern: Intern): readonly SlicePort[] {
  const { name, port } = raw;
  // A nil name or number contributes nothing; nil does not mean "all ports".
  if (typeof name !== "string" || port === undefined || port === null || port === 0) return [];
  const protocol = protocolOf(raw["protocol"]);
  if (protocol === undefined || !isPort(port) || (name !== "" && !isDNSName(name))) {
    findings.add("bad slice port, it is skipped", raw, "use a name, TCP, UDP or SCTP, and 1 to 65535");
    return [];
  }
  return [{ name: intern(name), protocol, port }];
}

/** What endpoints are read with. */
interface EndpointsReading {
  readonly family: IPFamily;
  readonly namespace: string;
  readonly findings: Findings;
  readonly reading: SliceReading;
  /** Those of the slice as it was. */
  readonly known: readonly SliceEndpoint[];
}

function readEndpoints(raw: Raw, how: EndpointsReading): readonly SliceEndpoint[] {
  const { namespace, findings, reading, known } = how;
  const endpoints: SliceEndpoint[] = [];
  const knownAt = finderOf(known);
  for (const endpoint of objectsField(raw, "endpoints", findings)) {
    const before = knownAt(listField(endpoint, "addresses", findings)[0]);
    if (before !== undefined && isAsBefore(endpoint, before, reading)) {
      noteForeigner(endpoint, namespace, findings);
      endpoints.push(before);
      continue;
    }
    const made = readEndpoint(endpoint, how);
    if (made !== undefined) endpoints.push(withEqual(before, made));
  }
  const sorted = sortedByAddress(endpoints);
  if (sorted.length === known.length && sorted.every((one, index) => one === known[index])) return known;
  // It stays for long, and a list that has grown has room for more.
  return sorted.slice();
}

/** Finds what is known of an address: the next one where slices come sorted, any other by a map that is made when it is needed. */
function finderOf(known: readonly SliceEndpoint[]): (address: unknown) => SliceEndpoint | undefined {
  let at = 0;
  let byAddress: Map<unknown, SliceEndpoint> | undefined;
  return (address) => {
    if (known[at]?.ip === address) return known[at++];
    if (known.length === 0) return undefined;
    byAddress ??= new Map(known.map((one) => [one.ip, one]));
    return byAddress.get(address);
  };
}

/** Most endpoints of a slice are as they were, with conditions and without hints: their address and names were looked at then. */
function isAsBefore(raw: Raw, before: SliceEndpoint, { keepsPodNames }: SliceReading): boolean {
  const { nodeName, conditions, hints } = raw;
  if (nodeName !== before.nodeName || !isObject(conditions)) return false;
  if (conditions["ready"] !== before.ready || conditions["serving"] !== before.serving) return false;
  if (conditions["terminating"] !== before.terminating) return false;
  if (keepsPodNames && (before.podName === undefined || podNameOf(raw) !== before.podName)) return false;
  return hints === undefined && before.zoneHints.length === 0 && before.nodeHints.length === 0;
}

function readEndpoint(endpoint: Raw, { family, namespace, findings, reading }: EndpointsReading): SliceEndpoint | undefined {
  const { intern, keepsPodNames } = reading;
  const ip = readAddress(endpoint, family, findings);
  if (ip === undefined) return undefined;
  noteForeigner(endpoint, namespace, findings);
  const conditions = objectField(endpoint, "conditions", findings);
  const hints = objectField(endpoint, "hints", findings);
  return {
    ip,
    nodeName: readNodeName(endpoint, findings, intern),
    ready: readCondition(conditions, "ready", true, findings),
    serving: readCondition(conditions, "serving", true, findings),
    terminating: readCondition(conditions, "terminating", false, findings),
    zoneHints: readHints(hints, "forZones", findings, intern),
    nodeHints: readHints(hints, "forNodes", findings, intern),
    podName: keepsPodNames ? readPodName(endpoint) : undefined,
  };
}

/** In the order of rows, so that whoever merges slices finds them sorted; entries with one address keep theirs. */
function sortedByAddress(endpoints: SliceEndpoint[]): readonly SliceEndpoint[] {
  for (let index = 1; index < endpoints.length; index++) {
    const [before, after] = [endpoints[index - 1], endpoints[index]];
    if (before !== undefined && after !== undefined && compareAddresses(before.ip, after.ip) > 0) {
      return endpoints.sort((a, b) => compareAddresses(a.ip, b.ip));
    }
  }
  return endpoints;
}

/** Absent means what Kubernetes takes for granted. */
function readCondition(conditions: Raw, field: string, otherwise: boolean, findings: Findings): boolean {
  const value = conditions[field];
  if (typeof value === "boolean") return value;
  if (value !== undefined && value !== null)
    findings.add(`${field} is neither true nor false, read as ${otherwise}`, value, "use a boolean");
  return otherwise;
}

function readNodeName(endpoint: Raw, findings: Findings, intern: Intern): string | undefined {
  const name = endpoint["nodeName"];
  if (name === undefined || name === null || name === "") return undefined;
  if (typeof name === "string" && isDNSName(name)) return intern(name);
  findings.add("bad nodeName, the endpoint counts as being elsewhere", name, "use the name of a Node");
  return undefined;
}

/**
 * Say so when an endpoint is another namespace's. It counts all the same: whoever means harm leaves out the reference, so refusing it would
 * stop nobody but those who mean it well.
 * @source CVE-2021-25740
 */
function noteForeigner(endpoint: Raw, namespace: string, findings: Findings): void {
  const target = endpoint["targetRef"];
  const other = isObject(target) ? target["namespace"] : undefined;
  if (other === undefined || other === null || other === "" || other === namespace) return;
  findings.add(
    "an endpoint of another namespace, it is used all the same",
    other,
    "if nobody means that, delete the slice, and see who may write EndpointSlices",
  );
}

/** Undefined too for a reference that could name no Pod: nothing but the shape of kpng's messages hangs on it. */
function readPodName(endpoint: Raw): string | undefined {
  const name = podNameOf(endpoint);
  return name !== undefined && isDNSName(name) ? name : undefined;
}

function podNameOf(endpoint: Raw): string | undefined {
  const target = objectField(endpoint, "targetRef");
  return target["kind"] === "Pod" ? textField(target, "name") : undefined;
}

function readHints(hints: Raw, field: string, findings: Findings, intern: Intern): readonly string[] {
  const list = firstItems(listField(hints, field), HINTS_MAX, field, findings);
  if (list.length === 0) return NO_HINTS;
  return list.flatMap((hint) => (isObject(hint) && typeof hint["name"] === "string" ? [intern(hint["name"])] : []));
}

function readAddress(endpoint: Raw, family: IPFamily, findings: Findings): string | undefined {
  const text = listField(endpoint, "addresses")[0];
  if (text === undefined) return undefined;
  const ip = typeof text === "string" ? canonicalIP(text) : undefined;
  if (ip === undefined || ip.family !== family) {
    findings.add(`endpoint without a usable ${family} address skipped`, text, `use ${family} addresses in this slice`);
    return undefined;
  }
  const reason = unusableReason(ip.text);
  if (reason === undefined) return ip.text;
  findings.add(`${reason} endpoint refused`, ip.text, "endpoints must be addresses of pods or hosts");
  return undefined;
}
