import type { DetectLocal } from "@turnout/core";
import { cidrOf } from "./cidr.ts";
import type { ConfigValues } from "./config-values.ts";
import { invalid, placeOf, type LoadedConfig } from "./loaded-config.ts";

/** Read how a node tells its pods' traffic. @throws {ProxyError} `invalid_object` where a mode lacks its value, or CIDRs can't be read. */
export function detectLocal(values: ConfigValues, loaded: LoadedConfig): DetectLocal {
  const bridgeInterface = values["detectLocal.bridgeInterface"];
  const interfaceNamePrefix = values["detectLocal.interfaceNamePrefix"];
  switch (values.detectLocalMode) {
    case "NodeCIDR":
      return { mode: "NodeCIDR" };
    case "BridgeInterface":
      if (bridgeInterface === "") throw invalid(placeOf("detectLocal.bridgeInterface", loaded), "mode BridgeInterface needs it");
      return { mode: "BridgeInterface", bridgeInterface };
    case "InterfaceNamePrefix":
      if (interfaceNamePrefix === "")
        throw invalid(placeOf("detectLocal.interfaceNamePrefix", loaded), "mode InterfaceNamePrefix needs it");
      return { mode: "InterfaceNamePrefix", interfaceNamePrefix };
    default:
      return { mode: "ClusterCIDR", clusterCIDRs: clusterCIDRs(values.clusterCIDR, placeOf("clusterCIDR", loaded)) };
  }
}

function clusterCIDRs(text: string, place: string): readonly string[] {
  if (text === "") return [];
  const cidrs = text.split(",").map((part) => {
    const cidr = cidrOf(part);
    if (cidr === undefined) throw invalid(place, `"${part}" is not a CIDR like 10.0.0.0/8`);
    return cidr;
  });
  if (cidrs.length > 2 || (cidrs.length === 2 && cidrs[0]?.family === cidrs[1]?.family)) {
    throw invalid(place, `"${text}" must be one CIDR, or one of each family`);
  }
  return cidrs.map((cidr) => cidr.text);
}
