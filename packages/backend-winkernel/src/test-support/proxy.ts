import { isEqual, Ledger } from "@turnout/core";
import type { Backend, IPFamily, Outcome, Plain, Turn } from "@turnout/core";
import { createStoreView, POD_SETTINGS, rawNode, rawService, rawSlice } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import type { WinkernelFacts } from "../facts.ts";
import { winkernelModule } from "../module.ts";
import type { WinkernelObject } from "../objects.ts";
import { explainPlan } from "../plan.ts";
import type { Step } from "../plan.ts";
import type { WinkernelWorld } from "../world.ts";

const never = new AbortController().signal;
const NODE = rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] });

/** A Service `cart` at 10.96.0.1:80 with endpoints: those in 10.1.1.0/24 and fd00:1:1::/64 are on node1, others on node2. */
export function cart(endpoints: readonly string[], spec: RawObject = {}, ingress?: readonly unknown[]): readonly RawObject[] {
  const isIPv6 = endpoints.some((ip) => ip.includes(":"));
  const isHere = (ip: string): boolean => ip.startsWith("10.1.1.") || ip.startsWith("fd00:1:1:");
  const slice = rawSlice(
    "cart",
    endpoints.map((ip) => ({ ip, node: isHere(ip) ? "node1" : "node2" })),
  );
  return [
    rawService("cart", { ...(isIPv6 ? { clusterIP: "fd00:96::1" } : {}), ...spec }, ingress === undefined ? {} : { ingress }),
    { ...slice, ...(isIPv6 ? { addressType: "IPv6" } : {}) },
  ];
}

/** A backend with its ledger: what a proxy process is to HNS, in one family. */
export class Proxy {
  readonly ledger: Ledger<WinkernelObject> = new Ledger<WinkernelObject>();
  readonly backend: Backend<WinkernelFacts, WinkernelObject, Step>;
  readonly #world: WinkernelWorld;
  readonly #family: IPFamily;
  readonly #facts: WinkernelFacts;
  #rows: ReadonlyMap<string, readonly WinkernelObject[]> | undefined;

  private constructor(
    backend: Backend<WinkernelFacts, WinkernelObject, Step>,
    { world, family, facts }: { readonly world: WinkernelWorld; readonly family: IPFamily; readonly facts: WinkernelFacts },
  ) {
    this.backend = backend;
    this.#world = world;
    this.#family = family;
    this.#facts = facts;
  }

  /** Open the backend, and look at what is there. */
  static async open(world: WinkernelWorld, options: Readonly<Record<string, Plain>> = {}, family: IPFamily = "IPv4"): Promise<Proxy> {
    const parsed = winkernelModule.parseOptions(options);
    const { facts } = await winkernelModule.probe(parsed, world, never);
    const dataplane = await winkernelModule.open(parsed, world, never);
    const proxy = new Proxy(dataplane.family(family), { world, family, facts });
    await proxy.look();
    return proxy;
  }

  /** Compare with HNS. @throws what observing fails with. */
  async look(): Promise<void> {
    this.ledger.adopt(await this.backend.observe(never));
  }

  /** Want a state, and bring it into force. */
  async sync(objects: readonly RawObject[], turn?: Turn): Promise<Outcome<WinkernelObject>> {
    this.#want(objects);
    const delta = this.ledger.delta(this.#world.clock.nowMs());
    const outcome = await this.backend.apply(this.backend.plan(delta), never, turn);
    this.ledger.commit(delta, outcome, this.#world.clock.nowMs());
    return outcome;
  }

  /** What a sync would do, as text. */
  planText(objects: readonly RawObject[]): string {
    this.#want(objects);
    return explainPlan(this.backend.plan(this.ledger.delta(this.#world.clock.nowMs())));
  }

  #want(objects: readonly RawObject[]): void {
    const { view, pull } = createStoreView([NODE, ...objects], { family: this.#family, settings: POD_SETTINGS });
    const changes = pull();
    if (changes?.node === undefined) throw new Error("a synced store gives a full change set");
    const context = { node: changes.node, host: this.#facts };
    const rows = new Map([...view.rows].map(([key, row]) => [key, this.backend.render(row, context)]));
    // As in production: what stays as it is doesn't count as changed.
    if (this.#rows === undefined) this.ledger.setAll(this.backend.skeleton(context), rows);
    else this.ledger.setRows(new Map(changedRows(this.#rows, rows).map((key) => [key, rows.get(key) ?? []])));
    this.#rows = rows;
  }
}

function changedRows<K, V>(before: ReadonlyMap<K, V>, after: ReadonlyMap<K, V>): readonly K[] {
  return [...new Set([...before.keys(), ...after.keys()])].filter((key) => !isEqual(before.get(key), after.get(key)));
}
