import { Ledger } from "@turnout/core";
import type { Backend, IPFamily, Plain } from "@turnout/core";
import { createStoreView, POD_SETTINGS, rawNode, rawService, rawSlice } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { ipvsModule } from "../module.ts";
import type { IpvsObject } from "../objects.ts";
import type { IpvsFacts } from "../options.ts";
import { explainPlan } from "../plan.ts";
import type { Step } from "../plan.ts";
import type { IpvsWorld } from "../world.ts";

const never = new AbortController().signal;

/** node1's addresses. */
const FACTS: IpvsFacts = { addresses: { IPv4: ["172.18.0.1"], IPv6: ["fd00:18::1"] } };
const NODE = rawNode("node1", { addresses: ["172.18.0.1", "fd00:18::1"] });

/** A Service `cart` at 10.96.0.1:80 with endpoints; `2` among them is on another node. */
export function cart(endpoints: readonly string[], spec: RawObject = {}, ingress?: readonly unknown[]): readonly RawObject[] {
  const ports = spec["ports"] as readonly { readonly name: string; readonly protocol: string }[] | undefined;
  const slicePorts = ports?.map(({ name, protocol }) => ({ name, protocol, port: 8080 }));
  return [
    rawService("cart", spec, ingress === undefined ? {} : { ingress }),
    rawSlice(
      "cart",
      endpoints.map((ip) => ({ ip, node: ip.startsWith("10.1.1.") ? "node1" : "node2" })),
      slicePorts === undefined ? {} : { ports: slicePorts },
    ),
  ];
}

/** A backend with its ledger: what a proxy process is to the kernel, in one family. */
export class Proxy {
  readonly ledger: Ledger<IpvsObject> = new Ledger<IpvsObject>();
  readonly backend: Backend<IpvsFacts, IpvsObject, Step>;
  readonly #world: IpvsWorld;
  readonly #family: IPFamily;

  private constructor(backend: Backend<IpvsFacts, IpvsObject, Step>, world: IpvsWorld, family: IPFamily) {
    this.backend = backend;
    this.#world = world;
    this.#family = family;
  }

  /** Open the backend, and look at what is there. */
  static async open(world: IpvsWorld, options: Readonly<Record<string, Plain>> = {}, family: IPFamily = "IPv4"): Promise<Proxy> {
    const dataplane = await ipvsModule.open(ipvsModule.parseOptions(options), world, never);
    const proxy = new Proxy(dataplane.family(family), world, family);
    proxy.ledger.adopt(await proxy.backend.observe(never));
    return proxy;
  }

  /** Want a state, and bring it into force; resolves to how many objects had to change. */
  async sync(objects: readonly RawObject[]): Promise<number> {
    this.#want(objects);
    const delta = this.ledger.delta(this.#world.clock.nowMs());
    this.ledger.commit(delta, await this.backend.apply(this.backend.plan(delta), never), this.#world.clock.nowMs());
    return delta.put.length + delta.remove.length;
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
    const context = { node: changes.node, host: FACTS };
    const rows = new Map([...view.rows].map(([key, row]) => [key, this.backend.render(row, context)]));
    this.ledger.setAll(this.backend.skeleton(context), rows);
  }
}
