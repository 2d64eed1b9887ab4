import type { IPFamily } from "@turnout/core";
import type { TrafficTarget } from "./roles/traffic.ts";
import type { TrafficPlace } from "@turnout/lab";
import { balancedIP, clusterIP, endpointAddress, nodePorts, SERVICE_PORTS, TARGET_PORTS } from "./traffic-workload.ts";
import type { AskedKind, TrafficService } from "./traffic-workload.ts";

/** Where clients of a node are, as places of the laboratory. */
export type TrafficFrom = "pod-1-1" | "node1" | "client1";

/** The same, for people. */
export const FROM: Readonly<Record<TrafficFrom, string>> = { "pod-1-1": "a pod", node1: "the node", client1: "outside" };

/** Name of a target in samples. */
export type TargetName = "own" | "own IPv6" | "plain" | "plain IPv6" | "sticky" | "ranged";

interface TargetSpec {
  readonly family: IPFamily;
  /** Undefined: the endpoints' own addresses. */
  readonly kind: AskedKind | undefined;
  /** What people read, from inside and from outside; undefined: nobody asks it from there. */
  readonly inside: string | undefined;
  readonly outside: string;
  readonly measures: TrafficTarget["measures"];
}

const FEW: TrafficTarget["measures"] = ["connects", "packets"];
const ALL: TrafficTarget["measures"] = ["connect", "requests", "bulk", ...FEW];

/** What is asked, in the order of tables. */
const TARGETS: Readonly<Record<TargetName, TargetSpec>> = {
  own: { family: "IPv4", kind: undefined, inside: "endpoint", outside: "endpoint", measures: ALL },
  "own IPv6": { family: "IPv6", kind: undefined, inside: "endpoint, IPv6", outside: "endpoint, IPv6", measures: FEW },
  plain: { family: "IPv4", kind: "plain", inside: "cluster IP", outside: "node port", measures: ALL },
  "plain IPv6": { family: "IPv6", kind: "plain", inside: "cluster IP, IPv6", outside: "node port, IPv6", measures: FEW },
  sticky: { family: "IPv4", kind: "sticky", inside: "cluster IP, affinity", outside: "node port, affinity", measures: FEW },
  // Source ranges are for load-balancer IPs, which pods and the node reach as they reach cluster IPs.
  ranged: { family: "IPv4", kind: "ranged", inside: undefined, outside: "load balancer, ranges", measures: FEW },
};

/** In the order of tables. */
export const TARGET_NAMES: readonly TargetName[] = Object.keys(TARGETS) as TargetName[];

/** Whether it is the endpoints' own addresses, which need no proxy. */
export function isOwn(name: TargetName): boolean {
  return TARGETS[name].kind === undefined;
}

/** What people read of a target; undefined: nobody asks it from there. */
export function askedText(name: TargetName, from: TrafficFrom): string | undefined {
  return TARGETS[name][from === "client1" ? "outside" : "inside"];
}

/** What a target's addresses depend on. */
export interface TargetWorld {
  readonly services: readonly TrafficService[];
  /** How many. */
  readonly endpoints: number;
  readonly nodeAddress: Readonly<Record<IPFamily, string>>;
}

/** What a client there asks: of Services, all of the kind in turn, wherever they stand among the others. Pure. Undefined: nothing, from there. */
export function targetOf(name: TargetName, from: TrafficFrom, world: TargetWorld): TrafficTarget | undefined {
  if (askedText(name, from) === undefined) return undefined;
  const { family, kind, measures } = TARGETS[name];
  const places =
    kind === undefined
      ? Array.from({ length: world.endpoints }, (_, number) => ({ address: endpointAddress(number, family), ...TARGET_PORTS }))
      : world.services.filter(({ asked }) => asked?.kind === kind).map((service) => placeOf(service, family, { from, world }));
  return { name, places, measures };
}

function placeOf(
  service: TrafficService,
  family: IPFamily,
  { from, world }: { readonly from: TrafficFrom; readonly world: TargetWorld },
): TrafficPlace {
  if (from !== "client1") return { address: clusterIP(service, family), ...SERVICE_PORTS };
  if (service.asked?.kind === "ranged") return { address: balancedIP(service, family), ...SERVICE_PORTS };
  return { address: world.nodeAddress[family], ...nodePorts(service) };
}
