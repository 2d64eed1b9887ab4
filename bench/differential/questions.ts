import { addressesOf, stagePeer, STAGE_NODE, targetsOf } from "@turnout/conformance";
import type { Packet, PacketTarget } from "@turnout/conformance";
import { FAMILIES } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import { createRandom } from "@turnout/core/testing";
import type { RawObject } from "@turnout/core/testing";
import { HELD_BALANCER, nameOf, SPARE } from "./world.ts";

/** One thing to ask of both proxies: a client, and what it connects to. */
export interface Question {
  readonly from: string;
  readonly family: IPFamily;
  readonly protocol: "TCP" | "UDP";
  readonly address: string;
  readonly port: number;
}

/** A health check node port to ask. */
export interface HealthQuestion {
  readonly family: IPFamily;
  readonly address: string;
  readonly port: number;
}

/** Who asks: pods of this node, of the other node through this one, the node itself, and a client outside. */
export const CLIENTS: readonly string[] = ["pod-1-1", "pod-1-2", "pod-2-1", STAGE_NODE, "client1"];
const LOOPBACK: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };
/** Used by no Service. */
export const UNUSED_PORT = 82;
const UNALLOCATED: Readonly<Record<IPFamily, string>> = { IPv4: "10.96.0.99", IPv6: "fd00:96::63" };

/** The addresses of node1 on which node ports are asked for, loopback last. */
export function nodeAddresses(family: IPFamily): readonly string[] {
  return [stagePeer(STAGE_NODE).addresses[family], SPARE[family], HELD_BALANCER[family], LOOPBACK[family]];
}

/** Choose what is asked in a phase: of all that its Services name, and of some that no Service has, at most so many. Pure. */
export function questionsOf(objects: readonly RawObject[], seed: number, most: number): readonly Question[] {
  const random = createRandom(seed);
  const services = objects.filter(({ kind }) => kind === "Service");
  const all = FAMILIES.flatMap((family) => {
    const targets = [...targetsOf(services, family, nodeAddresses(family)), ...unused(family)];
    return unique(targets).flatMap((target) =>
      CLIENTS.filter((from) => target.address !== LOOPBACK[family] || from === STAGE_NODE).map((from) => ({ from, family, ...target })),
    );
  });
  const shuffled = all.map((question) => ({ question, at: random() })).toSorted((a, b) => a.at - b.at);
  return shuffled.slice(0, most).map(({ question }) => question as Question);
}

function unused(family: IPFamily): readonly PacketTarget[] {
  return [
    { address: UNALLOCATED[family], port: 80, protocol: "TCP" },
    { address: addressesOf(1, "clusterIP")[family], port: UNUSED_PORT, protocol: "TCP" },
    { address: addressesOf(2, "clusterIP")[family], port: UNUSED_PORT, protocol: "UDP" },
    { address: addressesOf(3, "externalIP")[family], port: UNUSED_PORT, protocol: "TCP" },
    { address: addressesOf(4, "loadBalancerIP")[family], port: UNUSED_PORT, protocol: "UDP" },
  ];
}

function unique(targets: readonly PacketTarget[]): readonly PacketTarget[] {
  return [...new Map(targets.map((target) => [`${target.address} ${target.port} ${target.protocol}`, target])).values()];
}

/** Name the Services that want an address, port and protocol; a node port on any address of the node. Pure. */
export function claimantsOf(objects: readonly RawObject[], { family, address, port, protocol }: Question): readonly RawObject[] {
  const own = nodeAddresses(family).includes(address) ? [address] : [];
  return objects.filter(
    (object) =>
      object["kind"] === "Service" &&
      targetsOf([withoutProxied(object)], family, own).some(
        (one) => one.address === address && one.port === port && one.protocol === protocol,
      ),
  );
}

/** A load-balancer IP in ipMode Proxy is served by the load balancer only. */
function withoutProxied(service: RawObject): RawObject {
  const { loadBalancer } = (service["status"] ?? {}) as { readonly loadBalancer?: { readonly ingress?: readonly RawObject[] } };
  const ingress = (loadBalancer?.ingress ?? []).filter(({ ipMode }) => ipMode !== "Proxy");
  return { ...service, status: { loadBalancer: { ingress } } };
}

/** Write the first packet of a question as the oracle has it. The node asks its own addresses with that same address. Pure. */
export function packetOfQuestion({ from, family, protocol, address, port }: Question): Packet {
  const { addresses, link } = stagePeer(from);
  const source = from === STAGE_NODE && nodeAddresses(family).includes(address) ? address : addresses[family];
  return { family, protocol, source, destination: address, port, link };
}

/** Write a question in words. Pure. */
export function questionText({ from, address, port, protocol }: Question): string {
  return `${from} → ${address} ${port}/${protocol}`;
}

/** List the health check node ports of all Services of the phases, on the node's addresses. Pure. */
export function healthQuestions(phases: readonly (readonly RawObject[])[]): readonly HealthQuestion[] {
  const ports = new Set(
    phases.flat().flatMap((object) => {
      const { healthCheckNodePort } = (object["spec"] ?? {}) as { readonly healthCheckNodePort?: number };
      return healthCheckNodePort === undefined ? [] : [healthCheckNodePort];
    }),
  );
  return [...ports].flatMap((port) =>
    FAMILIES.flatMap((family) =>
      nodeAddresses(family)
        .slice(0, 3)
        .map((address) => ({ family, address, port })),
    ),
  );
}

/** One write at the API server. */
export type Write = { readonly remove: ReturnType<typeof nameOf> } | { readonly put: RawObject };

/**
 * List the writes that make `to` of `from`, in an order in which no endpoint is away for a moment that is in both, and no cluster IP is two Services':
 * a proxy that is faster than the writes would tell. Pure.
 */
export function writesBetween(from: readonly RawObject[], to: readonly RawObject[]): readonly Write[] {
  const keyOf = (object: RawObject): string => JSON.stringify(nameOf(object));
  const [before, after] = [from, to].map((objects) => new Map(objects.map((object) => [keyOf(object), object])));
  const isService = ({ kind }: RawObject): boolean => kind === "Service";
  const growth = (object: RawObject): number => endpointsIn(object) - endpointsIn(before?.get(keyOf(object)) ?? {});
  const removed = from.filter((object) => after?.has(keyOf(object)) !== true);
  const changed = to.filter((object) => JSON.stringify(before?.get(keyOf(object))) !== JSON.stringify(object));
  const slices = changed.filter((object) => !isService(object)).toSorted((one, other) => growth(other) - growth(one));
  const put = (object: RawObject): Write => ({ put: object });
  const remove = (object: RawObject): Write => ({ remove: nameOf(object) });
  return [
    ...removed.filter(isService).map(remove),
    ...[...changed.filter(isService), ...slices].map(put),
    ...removed.filter((object) => !isService(object)).map(remove),
  ];
}

function endpointsIn(object: RawObject): number {
  return (object["endpoints"] as readonly unknown[] | undefined)?.length ?? 0;
}
