import { DEFAULT_SETTINGS } from "@turnout/core";
import type { Backend, IPFamily, NodeSettings, Plain } from "@turnout/core";
import { fixtureState, TestProxy } from "@turnout/core/testing";
import type { FixtureSetting, ServiceFixture, WantedState } from "@turnout/core/testing";
import type { LinuxWorld } from "@turnout/host";
import { nftModule } from "../module.ts";
import type { NftObject } from "../objects.ts";
import type { NftFacts } from "../options.ts";
import type { Transaction } from "../plan.ts";

/** Settings of the tests: pods are 10.1.0.0/16 and fd00:1::/48. */
export const SETTINGS: NodeSettings = {
  ...DEFAULT_SETTINGS,
  detectLocal: { mode: "ClusterCIDR", clusterCIDRs: ["10.1.0.0/16", "fd00:1::/48"] },
};

/** Host facts of the tests: node1's addresses. */
export const FACTS: NftFacts = { addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] } };

/** What a proxy of the tests wants: fixtures. */
export type NftProxy = TestProxy<NftFacts, NftObject, Transaction, readonly ServiceFixture[]>;

/** What fixtures come to in one family, where nothing else is said. */
type Setting = Omit<FixtureSetting, "family">;

/** The rows and context that fixtures come to. */
export const stateOf =
  (family: IPFamily, setting: Setting = {}) =>
  (fixtures: readonly ServiceFixture[]): WantedState =>
    fixtureState(fixtures, { family, settings: SETTINGS, ...setting });

/** One family's proxy of a dataplane. */
export function proxyOf(backend: Backend<NftFacts, NftObject, Transaction>, family: IPFamily, setting: Setting = {}): NftProxy {
  return new TestProxy(backend, { host: FACTS, stateOf: stateOf(family, setting), nowMs: Date.now });
}

/** Open a proxy on a world. */
export function openProxy(
  world: LinuxWorld,
  family: IPFamily = "IPv4",
  { raw = {}, ...setting }: Setting & { readonly raw?: Readonly<Record<string, Plain>> } = {},
): Promise<NftProxy> {
  return TestProxy.open(nftModule, world, { raw, family, host: FACTS, stateOf: stateOf(family, setting) });
}
