import { DEFAULT_SETTINGS } from "@turnout/core";
import type { IPFamily, NodeContext, NodeSettings, ServicePort } from "@turnout/core";
import { fixtureState } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import type { NftFacts } from "../options.ts";

/** Settings of the tests: pods are 10.1.0.0/16 and fd00:1::/48. */
export const SETTINGS: NodeSettings = {
  ...DEFAULT_SETTINGS,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/48"] },
};

/** Host facts of the tests: node1's addresses. */
export const FACTS: NftFacts = { addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] } };

/** The rows and context that a set of fixtures comes to, in one family. */
export function stateOf(
  fixtures: readonly ServiceFixture[],
  family: IPFamily,
  settings: NodeSettings = SETTINGS,
): { readonly rows: ReadonlyMap<string, ServicePort>; readonly node: NodeContext } {
  return fixtureState(fixtures, { family, settings });
}
