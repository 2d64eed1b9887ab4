import { namesLoopback, nodePortAddresses, unusableReason } from "@turnout/core/backend";
import type { Context } from "@turnout/core/backend";
import { chooseDevices } from "./packets/devices.ts";
import { deviceKey, HOOKS } from "./hooks.ts";
import type { ProgramFile } from "./hooks.ts";
import { UNSPECIFIED } from "./bytes/layout.ts";
import { loopbackId } from "./names.ts";
import { TABLE_OBJECT } from "./packets/nft-table.ts";
import type { EbpfFacts } from "./options.ts";
import type { DeviceObject, EbpfObject } from "./objects.ts";

/** kube-proxy's nftables mode answers node ports on the primary address unless told otherwise, and so do we. @source KEP-3866 */
export const NODE_PORT_ADDRESSES: readonly string[] = ["primary"];

/** What a family's skeleton depends on beside the node. */
export interface SkeletonParts {
  /** Whether this family keeps what both share: settings, opt-outs, links, devices, the table of nft. One of them does. */
  readonly isKeeper: boolean;
  /** The folders of the programs, below that of all pins. */
  readonly programs: Readonly<Record<ProgramFile, string>>;
  /** Only devices that the option names carry programs. */
  readonly isNamedOnly: boolean;
}

/**
 * Say what is there whatever the services are. Pure.
 *
 * Edges: node ports never answer on loopback: the process does where loopback is named, and UDP is refused. Where detect-local tells pods by devices there are no pod ranges: these devices have a program of
 * their own.
 */
export function renderSkeleton(context: Context<EbpfFacts>, { isKeeper, programs, isNamedOnly }: SkeletonParts): readonly EbpfObject[] {
  const { node, host } = context;
  const { family, addresses, settings, detector } = node;
  const [primary] = addresses;
  const wanted = settings.nodePortAddresses ?? NODE_PORT_ADDRESSES;
  const hostAddresses = host.addresses[family];
  const chosen = nodePortAddresses({ wanted, family, primary, hostAddresses });
  const answering = new Set(chosen === "all" ? hostAddresses : chosen);
  // Those on which node ports answer come first, in case there is no room for all.
  const nodeAddresses = [...new Set([...answering, ...hostAddresses])].filter((address) => unusableReason(address) !== "loopback");
  // A pod's socket leaves a cluster IP that is there to packets, so these have to be served.
  const listening = host.hasPackets ? host.addressesOfNoProxy[family] : [];
  const own: readonly EbpfObject[] = [
    ...(detector?.by === "cidr" ? detector.cidrs : []).map((key): EbpfObject => ({ kind: "pod-range", key, value: true })),
    ...(primary === undefined ? [] : [{ kind: "primary", key: UNSPECIFIED[family], value: primary } as const]),
    ...nodeAddresses.map((key): EbpfObject => {
      return { kind: "node-address", key, value: { hasNodePorts: answering.has(key), hasListeners: listening.includes(key) } };
    }),
    ...(namesLoopback(settings, family) ? [{ kind: "counter", key: loopbackId(family), value: true } as const] : []),
    { kind: "filled", key: family, value: true },
    { kind: "serving", key: family, value: true },
  ];
  if (!isKeeper) return own;
  return [
    { kind: "settings", key: "host-namespace", value: host.hostNamespace },
    ...host.optedOut.map((key): EbpfObject => ({ kind: "opt-out", key, value: true })),
    ...own,
    ...Object.keys(HOOKS).map((key): EbpfObject => ({ kind: "link", key, value: { cgroup: host.cgroup, programs: programs.sockets } })),
    ...(host.hasPackets ? [TABLE_OBJECT] : []),
    ...chooseDevices(context, { isNamedOnly, answering }).flatMap(({ index, program }) => [
      deviceObject(deviceKey({ ifindex: index, direction: "ingress" }), program, programs.packets),
      deviceObject(deviceKey({ ifindex: index, direction: "egress" }), "turnout_out", programs.packets),
    ]),
  ];
}

function deviceObject(key: string, program: DeviceObject["value"]["program"], programs: string): DeviceObject {
  return { kind: "device", key, value: { program, programs } };
}
