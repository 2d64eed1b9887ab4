import type {
  Backend,
  BackendModule,
  Capabilities,
  Context,
  Dataplane,
  Delta,
  HostEvent,
  IPFamily,
  Leftover,
  Observed,
  Outcome,
  Plan,
  ServicePort,
  Turn,
} from "@turnout/core/backend";
import { ProxyError } from "@turnout/core/backend";
import { Applier } from "./apply.ts";
import type { WinkernelFacts } from "./facts.ts";
import { HnsClient } from "./hns/client.ts";
import { reported } from "./hns/error.ts";
import { familyOfAddress } from "./objects.ts";
import type { WinkernelObject } from "./objects.ts";
import { WINKERNEL_OPTIONS, parseWinkernelOptions } from "./options.ts";
import type { WinkernelOptions } from "./options.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { probeWinkernel, wantedNetwork } from "./probe.ts";
import { renderRow, renderSkeleton } from "./render.ts";
import { watchHost } from "./watch.ts";
import { createWinkernelWorld } from "./world.ts";
import type { WinkernelWorld } from "./world.ts";

const NO_REFUSAL = "HNS has no load balancer without endpoints: packets for an address that has none go on their way";

/** What load balancers of HNS can express. */
const CAPABILITIES: Capabilities = {
  IPv4: true,
  IPv6: true,
  TCP: true,
  UDP: true,
  SCTP: "nobody has seen HNS balance SCTP",
  sessionAffinity: true,
  sourceRanges: "load balancers of HNS serve all sources; ACLs are the CNI's",
  clientAddress: true,
  hairpin: "whether a pod that reaches itself gets answers is not known",
  hostOrigin: "nobody has seen a Windows node reach Services itself",
  drop: NO_REFUSAL,
  refuse: NO_REFUSAL,
  origins: "a load balancer of HNS has one list of endpoints for everybody",
  endpointPorts: "a load balancer of HNS has one port for all its endpoints",
  hostEndpoints: "HNS has no endpoint for addresses of the host",
  forgetsFlows: "HNS tells of no flows",
};

/** The Windows dataplane as a backend module: load balancers of the Host Network Service. */
export const winkernelModule: BackendModule<WinkernelOptions, WinkernelFacts, WinkernelObject, Step, WinkernelWorld> = {
  name: "winkernel",
  contract: 2,
  residence: "kernel",
  capabilities: CAPABILITIES,
  variants: {
    // Whatever has no load balancer is the network's.
    undefinedClusterIPPort: "pass",
    undefinedExternalPort: "pass",
    unallocatedClusterIP: "pass",
    // Each load balancer chooses by itself, by the client's address.
    affinityScope: "address",
    affinityBy: "address",
    // A load balancer without an address answers on all of the host's.
    nodePortScope: "all",
    nodePortsOnLoopback: "never",
  },
  proxyMode: "kernelspace",
  createWorld: createWinkernelWorld,
  options: WINKERNEL_OPTIONS,
  parseOptions: parseWinkernelOptions,
  probe: probeWinkernel,
  open: (options, world) => Promise.resolve(openDataplane(options, world)),
};

function openDataplane(options: WinkernelOptions, world: WinkernelWorld): Dataplane<WinkernelFacts, WinkernelObject, Step> {
  return { family: (family) => new WinkernelBackend(family, options, world), close: (signal) => world.hns.close(signal) };
}

async function isHnsThere({ hns }: WinkernelWorld, signal: AbortSignal): Promise<boolean> {
  try {
    await hns.version(signal);
    return true;
  } catch (error) {
    if (ProxyError.is(error, "tool_missing")) return false;
    throw reported(error, "HNS can't be asked", "its version");
  }
}

function isLoopback(ip: string): boolean {
  return ip === "::1" || ip.startsWith("127.");
}

class WinkernelBackend implements Backend<WinkernelFacts, WinkernelObject, Step> {
  readonly #options: WinkernelOptions;
  readonly #world: WinkernelWorld;
  readonly #applier: Applier;

  constructor(family: IPFamily, options: WinkernelOptions, world: WinkernelWorld) {
    this.#options = options;
    this.#world = world;
    const { clock, log, hns } = world;
    const [networkName, rootName] = [wantedNetwork(options, world), options.rootHnsEndpointName];
    const ownAddress = (): string => world.addresses().find(({ ip }) => familyOfAddress(ip) === family && !isLoopback(ip))?.ip ?? "";
    this.#applier = new Applier({ client: new HnsClient(hns), clock, log, family, networkName, rootName, ownAddress });
  }

  skeleton(context: Context<WinkernelFacts>): readonly WinkernelObject[] {
    return renderSkeleton(context, this.#options);
  }

  render(row: ServicePort, context: Context<WinkernelFacts>): readonly WinkernelObject[] {
    return renderRow(row, context, this.#options);
  }

  /** An endpoint may be of several rows, and so may the load balancer for a Service's health checks. */
  isShared(object: WinkernelObject): boolean {
    return object.kind === "endpoint" || (object.kind === "loadbalancer" && object.value.endpoints[0]?.startsWith("@") === true);
  }

  plan(delta: Delta<WinkernelObject>): Plan<Step> {
    return planDelta(delta);
  }

  explain(plan: Plan<Step>): string {
    return explainPlan(plan);
  }

  observe(signal: AbortSignal): Promise<Observed<WinkernelObject>> {
    return this.#applier.observe(signal);
  }

  apply(plan: Plan<Step>, signal: AbortSignal, turn?: Turn): Promise<Outcome<WinkernelObject>> {
    return this.#applier.apply(plan, signal, turn);
  }

  watch(signal: AbortSignal): AsyncIterable<HostEvent<WinkernelFacts>> {
    return watchHost(this.#options, this.#world, signal);
  }

  /** What kube-proxy left on the network is adopted, so while this backend is in use nothing is left over. */
  async leftovers(isInUse: boolean, signal: AbortSignal): Promise<readonly Leftover[]> {
    if (isInUse) return [];
    const objects = await this.#left(signal);
    if (objects.length === 0) return [];
    const count = objects.filter(({ kind }) => kind === "loadbalancer").length;
    const what = `${count} load balancer${count === 1 ? "" : "s"} and ${objects.length - count} endpoints of HNS network ${wantedNetwork(this.#options, this.#world)}`;
    return [{ what, remove: (stop) => this.#removeAll(stop) }];
  }

  async cleanup(signal: AbortSignal): Promise<void> {
    await this.#removeAll(signal);
  }

  /** Nothing is left on a network that is gone, nor where there is no HNS. @throws {ProxyError} `invalid_object` where nobody named the network. */
  async #left(signal: AbortSignal): Promise<readonly WinkernelObject[]> {
    if (wantedNetwork(this.#options, this.#world) === "") {
      if (!(await isHnsThere(this.#world, signal))) return [];
      throw new ProxyError("invalid_object", "nobody named the network", {
        object: "winkernel",
        hint: "pass networkName, or set KUBE_NETWORK",
      });
    }
    try {
      return [...(await this.observe(signal)).objects.values()];
    } catch (error) {
      if (ProxyError.is(error, "not_found")) return [];
      throw error;
    }
  }

  async #removeAll(signal: AbortSignal): Promise<void> {
    const remove = await this.#left(signal);
    const { failed } = await this.apply(planDelta({ put: [], remove, lingering: [], nowMs: this.#world.clock.nowMs() }), signal);
    for (const error of failed?.values() ?? []) throw error;
  }
}
