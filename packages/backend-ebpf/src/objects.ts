import type { IPFamily, Plain } from "@turnout/core/backend";
import type { PacketProgram } from "./hooks.ts";
import { NO_LIST, rangesId } from "./names.ts";

/** What becomes of clients of one origin. */
export interface Choice {
  readonly [key: string]: Plain;
  readonly verdict: "serve" | "reject" | "drop";
  /** A list's name; NO_LIST of names.ts but for `serve`. */
  readonly list: string;
  /** How many endpoints the list has; 0 but for `serve`. */
  readonly count: number;
  /** For packets; at a socket there is no source address to rewrite. */
  readonly masquerade: boolean;
}

/** A destination, and what becomes of those who ask for it. */
export interface ServiceValue {
  readonly [key: string]: Plain;
  /** The row's name in the maps. */
  readonly row: string;
  /** The name of its namespace in the maps: clients are remembered by namespace. */
  readonly tenant: string;
  /** The name of its source ranges; NO_LIST of names.ts: clients are not restricted. */
  readonly ranges: string;
  /** 0: no affinity. */
  readonly affinitySeconds: number;
  /** How many sets of eight places clients of its namespace have to be remembered in; 0 without affinity. */
  readonly affinitySets: number;
  /** Sockets of pods leave it to packets: the Service opted out, or a pod's source address may be outside the ranges. */
  readonly podsPass: boolean;
  /** The host's sockets do, as its primary address is outside the ranges. */
  readonly hostPass: boolean;
  /** It is a cluster IP: a process of the host that listens there comes first. */
  readonly isClusterIP: boolean;
  /** Clients in another network namespace of this node. */
  readonly pod: Choice;
  /** Clients in the node's own. */
  readonly host: Choice;
  /** Packets from elsewhere. */
  readonly outside: Choice;
}

/** One destination. Key: `10.96.0.10:80/TCP`; of a node port `0.0.0.0:30080/TCP` or `[::]:30080/TCP`. */
export interface ServiceObject {
  readonly kind: "service";
  readonly key: string;
  readonly value: ServiceValue;
}

/** Endpoints, `ip:port`, in the order of their bytes. Key: its name, which its content makes. */
export interface ListObject {
  readonly kind: "list";
  readonly key: string;
  readonly value: readonly string[];
}

/** Source addresses that are let in: disjoint CIDRs, in the order of their bytes. Key: its name, which its content makes. */
export interface RangesObject {
  readonly kind: "ranges";
  readonly key: string;
  readonly value: readonly string[];
}

/**
 * Something that is there or isn't.
 * - `counter`: counters of a row, by its name in the maps; programs count;
 * - `opt-out`: a network namespace whose sockets are left alone, by its cookie in decimal;
 * - `pod-range`: a CIDR in which pods' source addresses are.
 */
export interface ElementObject {
  readonly kind: "counter" | "opt-out" | "pod-range";
  readonly key: string;
  readonly value: true;
}

/** What an address of the node is for. */
export interface AddressUse {
  readonly [key: string]: Plain;
  /** Node ports answer on it. */
  readonly hasNodePorts: boolean;
  /** Processes of the host that listen there come before a cluster IP. */
  readonly hasListeners: boolean;
}

/** An address of the node. */
export interface NodeAddressObject {
  readonly kind: "node-address";
  readonly key: string;
  readonly value: AddressUse;
}

/** The node's primary address in a family. Key: the family's unspecified address, `0.0.0.0` or `::`. */
export interface PrimaryObject {
  readonly kind: "primary";
  readonly key: string;
  readonly value: string;
}

/** What both families' programs are told of the node: its network namespace, by its cookie in decimal. */
export interface SettingsObject {
  readonly kind: "settings";
  readonly key: "host-namespace";
  readonly value: string;
}

/** An element of a map that can be none of ours: it is removed. Key: the map and the key's bytes in hexadecimal, `services 00…`; value: its bytes. */
export interface StrayObject {
  readonly kind: "stray";
  readonly key: string;
  readonly value: string;
}

/** What is in our maps. What programs write (affinity, peers, counts) is no object. */
export type MapObject =
  ServiceObject | ListObject | RangesObject | ElementObject | NodeAddressObject | PrimaryObject | SettingsObject | StrayObject;

/** A program at its hook. Key: its name in C. */
export interface LinkObject {
  readonly kind: "link";
  readonly key: string;
  readonly value: {
    /** The cgroup's number, in decimal; 0: it is gone. */
    readonly cgroup: string;
    /** The folder in which the program is pinned, below that of all pins; "": nobody knows. */
    readonly programs: string;
  };
}

/** A program at a side of a device. Key: the device's index and the side, `7-ingress`. */
export interface DeviceObject {
  readonly kind: "device";
  readonly key: string;
  readonly value: {
    /** Its name in C; "": another one's program is there, or the device is gone. */
    readonly program: PacketProgram | "";
    /** As of {@link LinkObject}. */
    readonly programs: string;
  };
}

/** What a program is attached to. */
export type AttachedObject = LinkObject | DeviceObject;

/** The table of nft that packets need. Value: chains and rules, a line for each. */
export interface TableObject {
  readonly kind: "table";
  readonly key: string;
  readonly value: readonly string[];
}

/** All services of a family were in the maps once: sockets may ask there. Key: the family. */
export interface FilledObject {
  readonly kind: "filled";
  readonly key: IPFamily;
  readonly value: true;
}

/** A family was served completely once: whatever fails later fails by itself. Key: the family. */
export interface ServingObject {
  readonly kind: "serving";
  readonly key: IPFamily;
  readonly value: true;
}

/** Maps of another layout or size, or programs of another build; only observed, and removed. Key: its path below the folder of all pins. */
export interface FolderObject {
  readonly kind: "folder";
  readonly key: string;
  readonly value: true;
}

/** Everything this backend keeps on a host. */
export type EbpfObject = MapObject | AttachedObject | TableObject | FilledObject | ServingObject | FolderObject;

/** The lists that a service names, each once. */
export function listsOf({ value: { pod, host, outside } }: ServiceObject): readonly string[] {
  return [...new Set([pod, host, outside].filter(({ verdict }) => verdict === "serve").map(({ list }) => list))];
}

/** The name of ranges that let nobody in: they have no elements, and so are nowhere. */
const NONE = rangesId([]);

/** The source ranges that a service names and that are in the maps, if any. */
export function rangesOf({ value: { ranges } }: ServiceObject): readonly string[] {
  return ranges === NO_LIST || ranges === NONE ? [] : [ranges];
}
