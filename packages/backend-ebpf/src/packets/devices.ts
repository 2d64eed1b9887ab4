import type { NodeContext } from "@turnout/core/backend";
import type { Device, DeviceRoute, HostAddress } from "@turnout/host";
import type { PacketProgram } from "../hooks.ts";
import { isInside, podRangesOf } from "../bytes/ranges.ts";

/** A device that may carry the programs of packets: none of loopback, and no port of a bridge. */
export interface DeviceFact {
  readonly [key: string]: string | number | boolean | readonly string[];
  readonly index: number;
  readonly name: string;
  /** The option `devices` names it, or a port of it. */
  readonly isNamed: boolean;
  /** A default route goes by it. */
  readonly isWayOut: boolean;
  readonly addresses: readonly string[];
  /** What is reached by it without a router, as CIDRs, sorted; none of link-local addresses. */
  readonly destinations: readonly string[];
}

/** What the kernel tells of devices. */
export interface DeviceParts {
  readonly devices: readonly Device[];
  readonly routes: readonly DeviceRoute[];
  readonly addresses: readonly HostAddress[];
}

/** A device of such a kind stands for its ports: what these take in comes to IP by it. */
const OVER_PORTS: ReadonlySet<string> = new Set(["bridge", "bond", "team"]);

const LINK_LOCAL = "fe80::/10";

/**
 * Say which devices may carry programs. Pure.
 *
 * @param wanted names, where a `*` at the end stands for any rest
 */
export function deviceFacts({ devices, routes, addresses }: DeviceParts, wanted: readonly string[]): readonly DeviceFact[] {
  const byIndex = new Map(devices.map((device) => [device.index, device]));
  const overOf = ({ master }: Device): Device | undefined => {
    const over = master === undefined ? undefined : byIndex.get(master);
    return over !== undefined && OVER_PORTS.has(over.kind) ? over : undefined;
  };
  const named = new Set<number>();
  for (const device of devices) {
    if (!wanted.some((pattern) => fits(pattern, device.name))) continue;
    // A port of a bond may be one of a bridge; a bridge is nobody's port.
    let top = device;
    for (let over = overOf(top); over !== undefined && !named.has(over.index); over = overOf(top)) top = over;
    named.add(top.index);
  }
  return devices
    .filter((device) => !device.isLoopback && overOf(device) === undefined)
    .map(({ index, name }) => {
      const ways = routes.filter(({ device }) => device === index);
      const reached = ways.filter(({ destination, hasGateway }) => !hasGateway && !isDefault(destination));
      return {
        index,
        name,
        isNamed: named.has(index),
        isWayOut: ways.some(({ destination }) => isDefault(destination)),
        addresses: addresses.flatMap(({ ip, link }) => (link === name && !isInside(ip, LINK_LOCAL) ? [ip] : [])).toSorted(),
        destinations: [...new Set(reached.map(({ destination }) => destination))].filter((one) => !isInside(one, LINK_LOCAL)).toSorted(),
      };
    });
}

/** A device that carries programs. */
export interface ChosenDevice {
  readonly index: number;
  /** The program for what it takes in. */
  readonly program: PacketProgram;
}

/** What the choice of devices depends on beside the node. */
export interface DeviceChoice {
  /** Only devices that the option names carry programs. */
  readonly isNamedOnly: boolean;
  /** The addresses of the host on which node ports answer. */
  readonly answering: ReadonlySet<string>;
}

/**
 * Choose the devices that carry programs: those that the option names; or else the ways out, those with an address of the node or one on which node
 * ports answer, and those by which pods are reached without a router; where nothing tells pods, those by which anybody is. Pure.
 *
 * Edges: a device whose network has pods among others counts, as it may be theirs: Weave Net's bridge has the whole cluster's range.
 */
export function chooseDevices(
  { node, host }: { readonly node: NodeContext; readonly host: { readonly devices: readonly DeviceFact[] } },
  { isNamedOnly, answering }: DeviceChoice,
): readonly ChosenDevice[] {
  const { addresses, detector } = node;
  const pods = podRangesOf(node);
  // Nothing tells pods, so whoever is reached without a router may be one.
  const isUntold = pods.length === 0 && (detector === undefined || detector.by === "cidr");
  const isOfPods = (name: string): boolean =>
    (detector?.by === "interface" && name === detector.name) || (detector?.by === "interfacePrefix" && name.startsWith(detector.prefix));
  const isFound = (device: DeviceFact): boolean =>
    device.isWayOut ||
    isOfPods(device.name) ||
    device.addresses.some((address) => addresses.includes(address) || answering.has(address)) ||
    device.destinations.some((reached) => isUntold || pods.some((range) => isInside(reached, range) || isInside(range, reached)));
  return host.devices
    .filter((device) => (isNamedOnly ? device.isNamed : isFound(device)))
    .map(({ index, name }) => ({ index, program: isOfPods(name) ? "turnout_in_pods" : "turnout_in" }));
}

function fits(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}

function isDefault(destination: string): boolean {
  return destination.endsWith("/0");
}
