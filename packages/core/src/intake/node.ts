import { canonicalIP, parseCIDR } from "../model/addresses.ts";
import { isLabelValue } from "../model/names.ts";
import type { Node, ServiceCIDR } from "../model/api-objects.ts";
import { firstItems, isObject, listField, objectField, objectsField, textField } from "./fields.ts";
import type { Findings, Raw } from "./fields.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";
const LEAVING_TAINT = "ToBeDeletedByClusterAutoscaler";
/** Addresses, and ranges of pods, of one Node. */
const ITEMS_MAX = 256;

/**
 * Reduce a v1 Node to what a proxy reads.
 *
 * Shape: addresses are InternalIPs, then ExternalIPs, in the order listed.
 * @source rules
 */
export function readNode(raw: Raw, name: string, findings: Findings): Node {
  const spec = objectField(raw, "spec", findings);
  const metadata = objectField(raw, "metadata");
  const addresses = objectsField(objectField(raw, "status", findings), "addresses", findings);
  const entries = firstItems(addresses, ITEMS_MAX, "addresses", findings);
  return {
    name,
    addresses: [...statusAddresses(entries, "InternalIP", findings), ...statusAddresses(entries, "ExternalIP", findings)],
    podCIDRs: readCIDRs(podCIDRTexts(spec, findings), "podCIDR", findings),
    zone: readZone(metadata, findings),
    isDeleting: typeof metadata["deletionTimestamp"] === "string",
    isLeaving: listField(spec, "taints").some((taint) => isObject(taint) && taint["key"] === LEAVING_TAINT),
  };
}

/** Reduce a networking.k8s.io/v1 ServiceCIDR to its ranges. */
export function readServiceCIDR(raw: Raw, name: string, findings: Findings): ServiceCIDR {
  return { name, cidrs: readCIDRs(listField(objectField(raw, "spec", findings), "cidrs", findings), "service CIDR", findings) };
}

function readZone(metadata: Raw, findings: Findings): string {
  const zone = textField(objectField(metadata, "labels", findings), ZONE_LABEL) ?? "";
  if (zone === "" || isLabelValue(zone)) return zone;
  findings.add("bad zone label, the node counts as being in no zone", zone, `correct the label ${ZONE_LABEL}`);
  return "";
}

function podCIDRTexts(spec: Raw, findings: Findings): readonly unknown[] {
  const list = firstItems(listField(spec, "podCIDRs", findings), ITEMS_MAX, "podCIDRs", findings);
  if (list.length > 0) return list;
  return typeof spec["podCIDR"] === "string" && spec["podCIDR"] !== "" ? [spec["podCIDR"]] : [];
}

function readCIDRs(texts: readonly unknown[], what: string, findings: Findings): readonly string[] {
  return texts.flatMap((text) => {
    const cidr = typeof text === "string" ? parseCIDR(text) : undefined;
    if (cidr !== undefined) return [cidr.text];
    findings.add(`bad ${what}, it is left out`, text, "use a CIDR such as 10.1.0.0/24");
    return [];
  });
}

function statusAddresses(entries: readonly Raw[], type: string, findings: Findings): readonly string[] {
  return entries.flatMap((entry) => {
    if (entry["type"] !== type) return [];
    const ip = typeof entry["address"] === "string" ? canonicalIP(entry["address"]) : undefined;
    if (ip !== undefined) return [ip.text];
    findings.add(`bad ${type}, it is left out`, entry["address"], "use an IPv4 or IPv6 address");
    return [];
  });
}
