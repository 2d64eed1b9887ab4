import { Ledger } from "@turnout/core";
import type { Backend, IPFamily, NodeContext, NodeSettings, ServicePort } from "@turnout/core";
import { fixtureState, SHOWCASE as TREATMENTS } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import type { IptablesObject } from "../objects.ts";
import type { IptablesFacts } from "../options.ts";
import { explainPlan } from "../plan.ts";
import type { Step } from "../plan.ts";

/** Host facts of the tests: node1's addresses. */
export const FACTS: IptablesFacts = {
  addresses: { IPv4: ["127.0.0.1", "172.18.0.1"], IPv6: ["::1", "fd00:18::1"] },
  isTcpLiberal: false,
  canCount: false,
};

/** The rows and context that a set of fixtures comes to, in one family. */
export function stateOf(
  fixtures: readonly ServiceFixture[],
  family: IPFamily,
  settings: Partial<NodeSettings> = {},
): { readonly rows: ReadonlyMap<string, ServicePort>; readonly node: NodeContext } {
  return fixtureState(fixtures, { family, settings });
}

/** A backend with its ledger: what a proxy process is to the kernel. */
export class Proxy {
  readonly ledger: Ledger<IptablesObject> = new Ledger<IptablesObject>();
  readonly backend: Backend<IptablesFacts, IptablesObject, Step>;
  readonly #family: IPFamily;
  readonly #signal: AbortSignal = new AbortController().signal;

  constructor(backend: Backend<IptablesFacts, IptablesObject, Step>, family: IPFamily) {
    this.backend = backend;
    this.#family = family;
  }

  want(fixtures: readonly ServiceFixture[], settings: Partial<NodeSettings> = {}): void {
    const { rows, node } = stateOf(fixtures, this.#family, settings);
    const context = { node, host: FACTS };
    this.ledger.setAll(this.backend.skeleton(context), new Map([...rows].map(([key, row]) => [key, this.backend.render(row, context)])));
  }

  /** Sync once; resolves to how many objects had to change. */
  async sync(): Promise<number> {
    const delta = this.ledger.delta(Date.now());
    if (delta.put.length + delta.remove.length + delta.lingering.length === 0) return 0;
    this.ledger.commit(delta, await this.backend.apply(this.backend.plan(delta), this.#signal));
    return delta.put.length + delta.remove.length;
  }

  /** What the next sync would do, as text. */
  planText(): string {
    return explainPlan(this.backend.plan(this.ledger.delta(0)));
  }

  async adopt(): Promise<void> {
    this.ledger.adopt(await this.backend.observe(this.#signal));
  }
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
