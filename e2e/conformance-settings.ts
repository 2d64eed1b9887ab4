import type { NodeSettings } from "@turnout/core";

/** Write the flags of `turnout run` that make it keep these settings; what they don't mention has its default. Pure. */
export function settingsFlags(settings: NodeSettings): readonly string[] {
  const { masqueradeAll, masqueradeBit, nodePortAddresses } = settings;
  return [
    ...detectionFlags(settings),
    `--masquerade-all=${masqueradeAll}`,
    `--iptables-masquerade-bit=${masqueradeBit}`,
    ...(nodePortAddresses === undefined ? [] : ["--nodeport-addresses", nodePortAddresses.join(",")]),
  ];
}

function detectionFlags({ detectLocal }: NodeSettings): readonly string[] {
  const mode = ["--detect-local-mode", detectLocal.mode];
  switch (detectLocal.mode) {
    case "ClusterCIDR":
      return detectLocal.clusterCIDRs.length === 0 ? mode : [...mode, "--cluster-cidr", detectLocal.clusterCIDRs.join(",")];
    case "NodeCIDR":
      return mode;
    case "BridgeInterface":
      return [...mode, "--pod-bridge-interface", detectLocal.bridgeInterface];
    case "InterfaceNamePrefix":
      return [...mode, "--pod-interface-name-prefix", detectLocal.interfaceNamePrefix];
  }
}
