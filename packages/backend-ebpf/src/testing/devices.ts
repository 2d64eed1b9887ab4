import { PLACES, STAGE_NODE, STAGE_RANGES, UPLINK } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core/backend";
import type { Device, DeviceRoute } from "@turnout/host";

const LOOPBACK = "lo";

/** Pods of node1, each behind a device of its own. */
const PODS = PLACES.filter(({ kind, node }) => kind === "pod" && node === STAGE_NODE);

/** Devices of node1 by their names, with their numbers. */
export const DEVICES: ReadonlyMap<string, number> = new Map(
  [LOOPBACK, UPLINK, ...PODS.map(({ link }) => link)].map((name, index) => [name, index + 1]),
);

/** The same, as netlink tells of them. */
export const NETLINK_DEVICES: readonly Device[] = [...DEVICES].map(([name, index]) => ({
  index,
  name,
  kind: name.startsWith("veth") ? "veth" : "",
  master: undefined,
  isLoopback: name === LOOPBACK,
  isUp: true,
  hasCarrier: true,
}));

/** The routes of node1: to the world, to the pods of the other node, and to each of its own. */
export const ROUTES: Readonly<Record<IPFamily, readonly DeviceRoute[]>> = {
  IPv4: routesOf("IPv4"),
  IPv6: routesOf("IPv6"),
};

function routesOf(family: IPFamily): readonly DeviceRoute[] {
  const [everything, full] = family === "IPv4" ? ["0.0.0.0/0", 32] : ["::/0", 128];
  const uplink = DEVICES.get(UPLINK) ?? 0;
  return [
    { destination: everything, device: uplink, hasGateway: true },
    { destination: STAGE_RANGES.pods[family], device: uplink, hasGateway: true },
    ...PODS.map(({ addresses, link }) => ({
      destination: `${addresses[family]}/${full}`,
      device: DEVICES.get(link) ?? 0,
      hasGateway: false,
    })),
  ];
}
