import { canonicalIP, parseCIDR } from "../addresses.ts";
import type { Node, ServiceCIDR } from "../objects.ts";
import { isObject, listField, objectField, textField } from "./fields.ts";
import type { Findings, Raw } from "./fields.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";
const LEAVING_TAINT = "ToBeDeletedByClusterAutoscaler";

/**
 * Reduce a v1 Node to what a proxy reads.
 *
 * Shape: addresses are InternalIPs, then ExternalIPs, in the order listed.
 * @source semantics.md 6.1, 6.3; rules
 */
export function readNode(raw: Raw, name: string, findings: Findings): Node {
  const spec = objectField(raw, "spec");
  const metadata = objectField(raw, "metadata");
  return {
    name,
    addresses: [...statusAddresses(raw, "InternalIP", findings), ...statusAddresses(raw, "ExternalIP", findings)],
    podCIDRs: readCIDRs(podCIDRTexts(spec), "podCIDR", findings),
    zone: textField(objectField(metadata, "labels"), ZONE_LABEL) ?? "",
    isDeleting: typeof metadata["deletionTimestamp"] === "string",
    isLeaving: listField(spec, "taints").some((taint) => isObject(taint) && taint["key"] === LEAVING_TAINT),
  };
}

/** Reduce a networking.k8s.io/v1 ServiceCIDR to its ranges. */
export function readServiceCIDR(raw: Raw, name: string, findings: Findings): ServiceCIDR {
  return { name, cidrs: readCIDRs(listField(objectField(raw, "spec"), "cidrs"), "service CIDR", findings) };
}

function podCIDRTexts(spec: Raw): readonly unknown[] {
  const list = listField(spec, "podCIDRs");
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

function statusAddresses(raw: Raw, type: string, findings: Findings): readonly string[] {
  return listField(objectField(raw, "status"), "addresses").flatMap((entry) => {
    if (!isObject(entry) || entry["type"] !== type) return [];
    const ip = typeof entry["address"] === "string" ? canonicalIP(entry["address"]) : undefined;
    if (ip !== undefined) return [ip.text];
    findings.add(`bad ${type}, it is left out`, entry["address"], "use an IPv4 or IPv6 address");
    return [];
  });
}
