import { defineBackend, ProxyError } from "@turnout/core/backend";
import type { Backend, BackendModule, Capabilities, IPFamily, HostEvent } from "@turnout/core/backend";
import { Applier } from "./apply.ts";
import type { WinkernelFacts } from "./facts.ts";
import { HnsClient } from "./hns/client.ts";
import { reported } from "./hns/error.ts";
import { familyOfAddress } from "./objects.ts";
import type { WinkernelObject } from "./objects.ts";
import { WINKERNEL_OPTIONS } from "./options.ts";
import type { WinkernelOptions } from "./options.ts";
import { explainPlan, planDelta } from "./plan.ts";
import type { Step } from "./plan.ts";
import { probeWinkernel, wantedNetwork, readFacts } from "./probe.ts";
import { renderRow, renderSkeleton } from "./render.ts";
import { createWinkernelWorld } from "./world.ts";
import type { WinkernelWorld } from "./world.ts";

/** HNS tells of networks alone, and Windows of addresses by another way: both are looked at, which is cheap. */
const POLL_MS = 10_000;

/** Tell the host's facts, and again whenever they have changed: remote subnets come with the nodes that have them. */
async function* watchHost(options: WinkernelOptions, world: WinkernelWorld, signal: AbortSignal): AsyncIterable<HostEvent<WinkernelFacts>> {
  let known = "";
  while (!signal.aborted) {
    const facts = await readFacts(options, world, signal);
    const text = JSON.stringify(facts);
    if (text !== known) yield { kind: "facts", facts };
    known = text;
    await world.clock.sleep(POLL_MS, signal);
  }
}

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
  serviceEndpoints: true,
  hostEndpoints: "HNS has no endpoint for addresses of the host",
  forgetsFlows: "HNS tells of no flows",
};

/** The Windows dataplane as a backend module: load balancers of the Host Network Service. */
export const winkernelModule: BackendModule<WinkernelOptions, WinkernelFacts, WinkernelObject, Step, WinkernelWorld> = defineBackend({
  name: "winkernel",
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
  // "" is how kube-proxy's configuration leaves it to the proxy.
  settle: (options) => ({ ...options, rootHnsEndpointName: options.rootHnsEndpointName || "cbr0" }),
  probe: probeWinkernel,
  share: (options, world): Shared => ({ options, world }),
  family: backendOf,
  close: ({ world }, signal) => world.hns.close(signal),
});

/** What both families share. */
interface Shared {
  readonly options: WinkernelOptions;
  readonly world: WinkernelWorld;
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

function backendOf(family: IPFamily, { options, world }: Shared): Backend<WinkernelFacts, WinkernelObject, Step> {
  const { clock, log, hns } = world;
  const [networkName, rootName] = [wantedNetwork(options, world), options.rootHnsEndpointName];
  const ownAddress = (): string => world.addresses().find(({ ip }) => familyOfAddress(ip) === family && !isLoopback(ip))?.ip ?? "";
  const applier = new Applier({ client: new HnsClient(hns), clock, log, family, networkName, rootName, ownAddress });
  /** Nothing is left on a network that is gone, nor where there is no HNS. @throws {ProxyError} `invalid_object` where the network is not named. */
  const left = async (signal: AbortSignal): Promise<readonly WinkernelObject[]> => {
    if (networkName === "") {
      if (!(await isHnsThere(world, signal))) return [];
      const hint = "pass networkName, or set KUBE_NETWORK";
      throw new ProxyError("invalid_object", "nobody named the network", { object: "winkernel", hint });
    }
    try {
      return [...(await applier.observe(signal)).objects.values()];
    } catch (error) {
      if (ProxyError.is(error, "not_found")) return [];
      throw error;
    }
  };
  const removeAll = async (signal: AbortSignal): Promise<void> => {
    const remove = await left(signal);
    const { failed } = await applier.apply(planDelta({ put: [], remove, lingering: [], nowMs: clock.nowMs() }), signal);
    for (const error of failed?.values() ?? []) throw error;
  };
  return {
    skeleton: (context) => renderSkeleton(context, options),
    render: (row, context) => renderRow(row, context, options),
    /** An endpoint may be of several rows, and so may the load balancer for a Service's health checks. */
    isShared: (object) =>
      object.kind === "endpoint" || (object.kind === "loadbalancer" && object.value.endpoints[0]?.startsWith("@") === true),
    plan: planDelta,
    explain: explainPlan,
    observe: (signal) => applier.observe(signal),
    apply: (plan, signal, turn) => applier.apply(plan, signal, turn),
    watch: (signal) => watchHost(options, world, signal),
    /** What kube-proxy left on the network is adopted, so while this backend is in use nothing is left over. */
    async leftovers(isInUse, signal) {
      const objects = isInUse ? [] : await left(signal);
      if (objects.length === 0) return [];
      const count = objects.filter(({ kind }) => kind === "loadbalancer").length;
      const what = `${count} load balancer${count === 1 ? "" : "s"} and ${objects.length - count} endpoints of HNS network ${networkName}`;
      return [{ what, remove: removeAll }];
    },
    cleanup: removeAll,
  };
}
