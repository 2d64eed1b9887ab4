import type { Backend, IPFamily, NodeSettings, Plain } from "@turnout/core";
import { fixtureState, SHOWCASE as TREATMENTS, TestProxy } from "@turnout/core/testing";
import type { ServiceFixture, WantedState } from "@turnout/core/testing";
import { iptablesModule } from "../module.ts";
import type { IptablesObject } from "../objects.ts";
import type { IptablesFacts } from "../options.ts";
import type { Step } from "../plan.ts";
import type { IptablesWorld } from "../world.ts";

/** Host facts of the tests: node1's addresses. */
export const FACTS: IptablesFacts = {
  addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] },
  isTcpLiberal: false,
  canCount: false,
};

/** The rows and context that a set of fixtures comes to, in one family. */
export function stateOf(fixtures: readonly ServiceFixture[], family: IPFamily, settings: Partial<NodeSettings> = {}): WantedState {
  return fixtureState(fixtures, { family, settings });
}

/** What a proxy of the tests wants: fixtures. */
export type IptablesProxy = TestProxy<IptablesFacts, IptablesObject, Step, readonly ServiceFixture[]>;

/** What a proxy is opened with besides its world. */
export interface ProxySetting {
  readonly raw?: Readonly<Record<string, Plain>>;
  readonly settings?: Partial<NodeSettings>;
  /** Default: as the rows have it. */
  readonly hasManyEndpoints?: boolean;
}

/** One family's proxy of a dataplane. */
export function proxyOf(backend: Backend<IptablesFacts, IptablesObject, Step>, family: IPFamily): IptablesProxy {
  return new TestProxy(backend, { host: FACTS, stateOf: (fixtures) => stateOf(fixtures, family), nowMs: Date.now });
}

/** Open a proxy on a world. */
export function openProxy(
  world: IptablesWorld,
  family: IPFamily = "IPv4",
  { raw = {}, settings, ...many }: ProxySetting = {},
): Promise<IptablesProxy> {
  const wanted = (fixtures: readonly ServiceFixture[]): WantedState => ({ ...stateOf(fixtures, family, settings), ...many });
  return TestProxy.open(iptablesModule, world, { raw, family, host: FACTS, stateOf: wanted });
}

/** The Services of this backend's tests that are other than in {@link TREATMENTS}: with addresses of both families, and a health check node port. */
const OWN: readonly ServiceFixture[] = [
  {
    name: "balanced",
    number: 6,
    local: 2,
    remote: 1,
    spec: {
      type: "LoadBalancer",
      nodePort: 30006,
      externalTrafficPolicy: "Local",
      healthCheckNodePort: 32006,
      loadBalancerSourceRanges: ["203.0.113.0/24", "198.51.100.7/32", "2001:db8::/32"],
    },
    loadBalancerIPs: ["198.51.100.6", "fd00:198::6"],
  },
  { name: "dns", number: 8, protocol: "UDP", remote: 2, spec: { externalIPs: ["198.51.100.8", "fd00:198::8"] } },
];

/** One service of each treatment there is. */
export const SHOWCASE: readonly ServiceFixture[] = [
  ...TREATMENTS.map((one) => OWN.find(({ name }) => name === one.name) ?? one),
  { name: "signal", number: 9, protocol: "SCTP", remote: 9 },
  { name: "away", number: 10, remote: 1, spec: { type: "NodePort", nodePort: 30010, externalTrafficPolicy: "Local" } },
  { name: "void", number: 11, spec: { type: "NodePort", nodePort: 30011, externalIPs: ["198.51.100.11", "fd00:198::11"] } },
];
