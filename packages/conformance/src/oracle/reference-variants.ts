import type { Variants } from "@turnout/core";

/** The variants that the scenarios' words are written for, and that the reference backend has. */
export const REFERENCE_VARIANTS: Variants = {
  undefinedClusterIPPort: "reject",
  undefinedExternalPort: "pass",
  unallocatedClusterIP: "drop",
  nodePortRejectScope: "nodePortAddresses",
  rejectFromHost: true,
  blockedWithoutEndpoints: "drop",
  affinityScope: "row",
  nodePortsOnLoopback: "never",
  rowChanges: "atOnce",
  localClients: "packets",
  nodePortScope: "settings",
  affinityBy: "memory",
};
