import { familyOf, parseCIDR } from "../model/addresses.ts";
import type { LocalDetector, NodeContext, NodeSettings } from "../model/rows.ts";
import type { IPFamily, Node } from "../model/api-objects.ts";

/** Settings of a proxy nobody configured: the field's defaults. */
export const DEFAULT_SETTINGS: NodeSettings = {
  masqueradeAll: false,
  masqueradeBit: 14,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [] },
  nodePortAddresses: undefined,
};

/** What makes up a node's context. */
export interface NodeContextParts {
  readonly name: string;
  readonly family: IPFamily;
  readonly settings: NodeSettings;
  /** What is known of it; undefined while there never was a Node object. */
  readonly node: Node | undefined;
  /** Of both families, canonical. */
  readonly serviceCIDRs: readonly string[];
  /** Canonical address that goes before the node's own of its family, as the primary one; undefined: none. */
  readonly bindAddress: string | undefined;
}

/**
 * Put together the node a state is computed for, in one family.
 * @source rules
 */
export function nodeContextFor({ name, family, settings, node, serviceCIDRs, bindAddress }: NodeContextParts): NodeContext {
  const own = (node?.addresses ?? []).filter((address) => familyOf(address) === family);
  const bound = bindAddress !== undefined && familyOf(bindAddress) === family ? [bindAddress] : [];
  const podCIDRs = (node?.podCIDRs ?? []).filter((cidr) => familyOf(cidr) === family);
  return {
    name,
    family,
    addresses: [...bound, ...own.filter((address) => !bound.includes(address))],
    zone: node?.zone ?? "",
    podCIDRs,
    serviceCIDRs: serviceCIDRs.filter((cidr) => familyOf(cidr) === family).toSorted(),
    detector: detectorFor(settings, family, podCIDRs),
    settings,
  };
}

/** Resolve detect-local for one family; undefined when the mode has no data for it. A mode takes the first CIDR of a family. */
export function detectorFor({ detectLocal }: NodeSettings, family: IPFamily, podCIDRs: readonly string[]): LocalDetector | undefined {
  switch (detectLocal.mode) {
    case "ClusterCIDR":
      return byFirstCIDR(detectLocal.clusterCIDRs, family);
    case "NodeCIDR":
      return byFirstCIDR(podCIDRs, family);
    case "BridgeInterface":
      return { by: "interface", name: detectLocal.bridgeInterface };
    case "InterfaceNamePrefix":
      return { by: "interfacePrefix", prefix: detectLocal.interfaceNamePrefix };
  }
}

function byFirstCIDR(texts: readonly string[], family: IPFamily): LocalDetector | undefined {
  for (const text of texts) {
    const cidr = parseCIDR(text);
    if (cidr?.family === family) return { by: "cidr", cidrs: [cidr.text] };
  }
  return undefined;
}
