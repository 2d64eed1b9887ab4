import { canonicalIP, cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { CIDR, IPFamily } from "@turnout/core";
import { at, listAt, objectsOf, textAt } from "./raw-fields.ts";
import type { OracleWorld } from "./oracle-world.ts";
import type { Packet } from "./packet.ts";

/** The node in one family, as far as packets depend on it. */
export interface OracleNode {
  readonly name: string;
  /** "" when unknown. */
  readonly zone: string;
  readonly primary: string | undefined;
  readonly hostAddresses: ReadonlySet<string>;
  /** Those, and what its Node object tells. */
  readonly allAddresses: ReadonlySet<string>;
  /** Addresses node ports answer on. */
  readonly nodePortAddresses: ReadonlySet<string>;
  /** The loopback address on which the process answers node ports of TCP, and the backend refuses those of UDP and SCTP. */
  readonly loopbackNodePort: string | undefined;
  readonly serviceRanges: readonly CIDR[];
  /** Where the node's pods are, as the API says. */
  readonly podCIDRs: readonly CIDR[];
  /** Tell a pod's packet; undefined where pods can't be told (rule R-26). */
  readonly isFromPod: ((packet: Packet) => boolean) | undefined;
}

/** Read what the world says of the node in one family. */
export function readNode(world: OracleWorld, family: IPFamily): OracleNode {
  const raw = objectsOf(world.objects, "Node").find((node) => textAt(node, "metadata", "name") === world.nodeName);
  const primary = canonicalOf(world.bindAddress, family) ?? nodeAddresses(raw, family)[0];
  return {
    name: world.nodeName,
    zone: textAt(raw, "metadata", "labels", "topology.kubernetes.io/zone"),
    primary,
    hostAddresses: new Set(world.hostAddresses[family]),
    allAddresses: new Set([...world.hostAddresses[family], ...(primary === undefined ? [] : [primary]), ...nodeAddresses(raw, family)]),
    nodePortAddresses: new Set(nodePortAddresses(world, family, primary)),
    loopbackNodePort: loopbackNodePort(world, family),
    serviceRanges: objectsOf(world.objects, "ServiceCIDR").flatMap((object) => rangesOf(listAt(object, "spec", "cidrs"), family)),
    podCIDRs: rangesOf(podRanges(raw), family),
    isFromPod: podTest(world, family, podRanges(raw)),
  };
}

/** Read the addresses of all nodes in one family. */
export function readNodeAddresses(world: OracleWorld, family: IPFamily): ReadonlySet<string> {
  return new Set(objectsOf(world.objects, "Node").flatMap((node) => nodeAddresses(node, family)));
}

/** Read the pod ranges of all nodes in one family. */
export function readPodRanges(world: OracleWorld, family: IPFamily): readonly CIDR[] {
  return objectsOf(world.objects, "Node").flatMap((node) => rangesOf(podRanges(node), family));
}

/** Rule R-61. */
function nodeAddresses(raw: unknown, family: IPFamily): readonly string[] {
  const all = listAt(raw, "status", "addresses");
  const ofType = (type: string): readonly string[] =>
    all.filter((entry) => textAt(entry, "type") === type).flatMap((entry) => canonicalOf(at(entry, "address"), family) ?? []);
  return [...ofType("InternalIP"), ...ofType("ExternalIP")];
}

/** The API has a node's first range in the older field as well. */
function podRanges(raw: unknown): readonly unknown[] {
  const all = listAt(raw, "spec", "podCIDRs");
  return all.length > 0 ? all : [at(raw, "spec", "podCIDR")];
}

function canonicalOf(text: unknown, family: IPFamily): string | undefined {
  const ip = typeof text === "string" ? canonicalIP(text) : undefined;
  return ip?.family === family ? ip.text : undefined;
}

/** Rule R-38: loopback has to be named, by the word or by a range of its own. */
function loopbackNodePort({ settings, variants }: OracleWorld, family: IPFamily): string | undefined {
  const [address, whole] = family === "IPv4" ? ["127.0.0.1", "127.0.0.0/8"] : ["::1", "::1/128"];
  const named = (settings.nodePortAddresses ?? []).map((word) => (word === "localhost" ? whole : word));
  const [loopback] = rangesOf([whole], family);
  const isNamed = rangesOf(named, family).some((range) => loopback !== undefined && contains(loopback, range) && isIn(address, [range]));
  return variants.nodePortsOnLoopback === "TCP" && settings.localhostNodePorts !== false && isNamed ? address : undefined;
}

/** Rules; loopback answers only where the backend has it so, and never over IPv6. */
function nodePortAddresses(world: OracleWorld, family: IPFamily, primary: string | undefined): readonly string[] {
  const loopback = family === "IPv4" ? "127.0.0.0/8" : "::1/128";
  const everything = family === "IPv4" ? "0.0.0.0/0" : "::/0";
  const chosen = (world.settings.nodePortAddresses ?? world.nodePortAddressesDefault).flatMap((word): readonly string[] => {
    if (word === "localhost") return [loopback];
    if (word === "all") return [everything];
    if (word !== "primary") return [word];
    return primary === undefined ? [] : [family === "IPv4" ? `${primary}/32` : `${primary}/128`];
  });
  const ranges = rangesOf(chosen, family);
  const hasLoopback = family === "IPv4" && world.variants.nodePortsOnLoopback === "IPv4";
  return world.hostAddresses[family].filter(
    (address) =>
      (hasLoopback || !isIn(address, rangesOf([loopback], family))) &&
      (ranges.length === 0 || world.variants.nodePortScope === "all" || isIn(address, ranges)),
  );
}

/**
 * Rule R-24: a mode takes the first range of a family. Rule R-56: whoever answers clients itself sees no links; where those should tell pods,
 * the range of the node's pods does.
 */
function podTest(world: OracleWorld, family: IPFamily, podCIDRs: readonly unknown[]): OracleNode["isFromPod"] {
  const { settings, capabilities } = world;
  const { detectLocal } = settings;
  const isByRange = detectLocal.mode === "ClusterCIDR" || detectLocal.mode === "NodeCIDR" || capabilities.clientAddress !== true;
  if (isByRange) {
    const [range] = rangesOf(detectLocal.mode === "ClusterCIDR" ? detectLocal.clusterCIDRs : podCIDRs, family);
    return range === undefined ? undefined : ({ source }) => isIn(source, [range]);
  }
  switch (detectLocal.mode) {
    case "BridgeInterface":
      return ({ link }) => link !== "" && link === detectLocal.bridgeInterface;
    case "InterfaceNamePrefix":
      return ({ link }) => link !== "" && link.startsWith(detectLocal.interfaceNamePrefix);
  }
}

/** Tell whether an address lies in one of the ranges. */
export function isIn(address: string, ranges: readonly CIDR[]): boolean {
  const ip = parseIP(address);
  return ip !== undefined && ranges.some((range) => cidrContains(range, ip));
}

/** Tell whether a range lies in another one. */
export function contains(outer: CIDR, inner: CIDR): boolean {
  return outer.prefixLength <= inner.prefixLength && cidrContains(outer, { text: "", family: inner.family, value: inner.value });
}

/** Tell whether a source address is one of the host's own; all of loopback is. */
export function isOfHost(node: OracleNode, source: string): boolean {
  return node.hostAddresses.has(source) || source === "::1" || (canonicalIP(source)?.family === "IPv4" && source.startsWith("127."));
}

function rangesOf(texts: readonly unknown[], family: IPFamily): readonly CIDR[] {
  return texts.flatMap((text) => {
    const range = typeof text === "string" ? parseCIDR(text) : undefined;
    return range?.family === family ? [range] : [];
  });
}
