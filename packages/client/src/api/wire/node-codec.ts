import {
  canonicalIP,
  detectorFor,
  isDNSName,
  parseCIDR,
  type DetectLocal,
  type IPFamily,
  type LocalDetector,
  type NodeContext,
  type NodeSettings,
} from "@turnout/core";
import type * as wire from "../../gen/turnout/node/v1/node.ts";
import { readCIDR } from "./row-codec.ts";
import { notUnderstood } from "./words.ts";

const MARK_BITS = 32;
const TEXT_MAX = 253;

/** Write the node a state is for. Its settings stay: whoever asked has them. */
export function wireNode({ name, addresses, zone, podCIDRs, serviceCIDRs, detector }: NodeContext): wire.Node {
  return {
    name,
    addresses: [...addresses],
    zone,
    podCidrs: [...podCIDRs],
    serviceCidrs: [...serviceCIDRs],
    detector: detector === undefined ? undefined : { by: wireDetector(detector) },
  };
}

function wireDetector(detector: LocalDetector): wire.LocalDetector["by"] {
  switch (detector.by) {
    case "cidr":
      return { $case: "cidrs", value: { cidrs: [...detector.cidrs] } };
    case "interface":
      return { $case: "interface", value: detector.name };
    case "interfacePrefix":
      return { $case: "interfacePrefix", value: detector.prefix };
  }
}

/**
 * Read the node a state is for, and put the settings back that were asked with.
 *
 * Edges: how pods are told is worked out again from those settings: what a node-state server says of it is for clients that can't.
 * @throws {ProxyError} `feed_lost` for anything a node can't be.
 */
export function readNode(message: wire.Node, family: IPFamily, settings: NodeSettings): NodeContext {
  const { name, addresses, zone } = message;
  if (!isDNSName(name)) throw notUnderstood("a node's name", name);
  for (const address of addresses) {
    const ip = canonicalIP(address);
    if (ip?.text !== address || ip.family !== family) throw notUnderstood(`an ${family} address of the node`, address);
  }
  const podCIDRs = message.podCidrs.map((cidr) => readCIDR(cidr, family));
  const serviceCIDRs = message.serviceCidrs.map((cidr) => readCIDR(cidr, family));
  return { name, family, addresses, zone, podCIDRs, serviceCIDRs, detector: detectorFor(settings, family, podCIDRs), settings };
}

/** Write settings. */
export function wireSettings({ masqueradeAll, masqueradeBit, detectLocal, nodePortAddresses }: NodeSettings): wire.Settings {
  return {
    masqueradeAll,
    masqueradeBit,
    detectLocal: { mode: wireMode(detectLocal) },
    nodePortAddresses: nodePortAddresses === undefined ? undefined : { addresses: [...nodePortAddresses] },
  };
}

function wireMode(detectLocal: DetectLocal): wire.DetectLocal["mode"] {
  switch (detectLocal.mode) {
    case "ClusterCIDR":
      return { $case: "clusterCidr", value: { cidrs: [...detectLocal.clusterCIDRs] } };
    case "NodeCIDR":
      return { $case: "nodeCidr", value: {} };
    case "BridgeInterface":
      return { $case: "bridgeInterface", value: detectLocal.bridgeInterface };
    case "InterfaceNamePrefix":
      return { $case: "interfaceNamePrefix", value: detectLocal.interfaceNamePrefix };
  }
}

/** Read settings. @throws {ProxyError} `feed_lost` for what settings can't be. */
export function readSettings(message: wire.Settings): NodeSettings {
  const { masqueradeAll, masqueradeBit, detectLocal, nodePortAddresses } = message;
  if (masqueradeBit >= MARK_BITS) throw notUnderstood("a bit of the packet mark", masqueradeBit);
  for (const text of nodePortAddresses?.addresses ?? []) if (text.length > TEXT_MAX) throw notUnderstood("node-port addresses", text);
  return { masqueradeAll, masqueradeBit, detectLocal: readMode(detectLocal), nodePortAddresses: nodePortAddresses?.addresses };
}

function readMode(message: wire.DetectLocal | undefined): DetectLocal {
  const mode = message?.mode;
  switch (mode?.$case) {
    case "clusterCidr":
      for (const cidr of mode.value.cidrs) if (parseCIDR(cidr) === undefined) throw notUnderstood("a cluster CIDR", cidr);
      return { mode: "ClusterCIDR", clusterCIDRs: mode.value.cidrs };
    case "nodeCidr":
      return { mode: "NodeCIDR" };
    case "bridgeInterface":
      return { mode: "BridgeInterface", bridgeInterface: mode.value };
    case "interfaceNamePrefix":
      return { mode: "InterfaceNamePrefix", interfaceNamePrefix: mode.value };
    case undefined:
      throw notUnderstood("a mode of telling pods", "");
  }
}
