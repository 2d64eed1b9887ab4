import { hostPort, listOption, numberOption, switchOption, textOption } from "@turnout/core/backend";
import type { Capacity, Content, IPFamily, OptionOf, OptionsOf, ServicePort } from "@turnout/core/backend";
import { listId, rangesId } from "./names.ts";
import type { DeviceFact } from "./packets/devices.ts";

/** How many elements the maps may have. Of the first three, rows may want half: what replaces an element is written before that goes. */
export interface MapSizes {
  /** Destinations of both families; also the rows that are counted. */
  readonly services: number;
  /** Endpoints in lists; while a list is replaced both count. */
  readonly endpoints: number;
  /** CIDRs in source ranges. */
  readonly ranges: number;
  /** Clients that are remembered for session affinity. */
  readonly affinity: number;
  /** Sockets that are shown the service's address as their peer. */
  readonly sockets: number;
}

/** What this backend can be told. */
export interface EbpfOptions {
  readonly sizes: MapSizes;
  /** Services that pods' sockets leave to packets, `namespace/name`, or `namespace/*` for all of a namespace. */
  readonly optOutServices: ReadonlySet<string>;
  /** Network namespaces whose sockets are left alone, by path, e.g. `/run/netns/cni-1`. */
  readonly optOutNamespaces: readonly string[];
  /** Whether pods' sockets leave all Services to packets: only programs in the node's own network namespace are served at their sockets. */
  readonly hostSocketsOnly: boolean;
  /** The cgroup (version 2) whose processes are served, by its folder; undefined: the root, where cgroup v2 is mounted. */
  readonly cgroup: string | undefined;
  /** Devices that carry the programs of packets, by name; a `*` at the end stands for any rest. Empty: they are found. */
  readonly devices: readonly string[];
  /** Whether programs count for each row; it takes 40 bytes for each CPU and row. */
  readonly counters: boolean;
  /** The file for the verifier's whole log when it refuses programs; undefined: errors have its last words alone. */
  readonly verifierLog: string | undefined;
}

/** What rendering knows of the host. */
export interface EbpfFacts {
  /** Addresses of the host per family, canonical, without link-local ones. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
  /** Those of them that are on devices to which no proxy gives addresses of Services. */
  readonly addressesOfNoProxy: Readonly<Record<IPFamily, readonly string[]>>;
  /** Cookie of the node's network namespace, in decimal. */
  readonly hostNamespace: string;
  /** Cookies of the network namespaces that are opted out. */
  readonly optedOut: readonly string[];
  /** The number of the cgroup whose processes are served, in decimal; 0: there is none. */
  readonly cgroup: string;
  /** Whether packets are served on this host. */
  readonly hasPackets: boolean;
  /** Devices that may carry their programs; none where they aren't served. */
  readonly devices: readonly DeviceFact[];
}

/** The number of the root of all cgroups; in a cgroup namespace, what is mounted begins with another. @source Linux fs/kernfs/dir.c kernfs_create_root */
export const ROOT_CGROUP = "1";

/** Sizes where nothing is said; those in programs/layout.h. */
export const DEFAULT_SIZES: MapSizes = { services: 262_144, endpoints: 2_097_152, ranges: 262_144, affinity: 131_072, sockets: 131_072 };

/** Which option gives each map its size. */
const SIZED_BY = {
  services: "services",
  counters: "services",
  endpoints: "endpoints",
  source_ranges: "ranges",
  affinity: "affinity",
  asked_tcp: "sockets",
  asked_udp: "sockets",
  chosen_udp: "sockets",
} as const satisfies Readonly<Record<string, keyof MapSizes>>;

/** A map has at most so many elements here: its memory would be gigabytes beyond. */
const SIZE_MAX = 16_777_216;

/** The options by name. */
export const EBPF_OPTIONS: OptionsOf<EbpfOptions> = {
  sizes: {
    services: sizeOption("services"),
    endpoints: sizeOption("endpoints"),
    ranges: sizeOption("ranges"),
    affinity: sizeOption("affinity"),
    sockets: sizeOption("sockets"),
  },
  optOutServices: servicesOption("opt-out-services"),
  optOutNamespaces: listOption("opt-out-namespaces", "a path", like(/^\/\S+$/)),
  hostSocketsOnly: switchOption("host-sockets-only", false),
  cgroup: textOption("cgroup", undefined, "a path from / on", /^\//),
  devices: listOption("devices", "a device's name, or its beginning and *", like(/^(?!$)[A-Za-z0-9_.:@-]{0,15}\*?$/)),
  counters: switchOption("counters", false),
  verifierLog: textOption("verifier-log", undefined, "a path from / on", /^\//),
};

function sizeOption(of: keyof MapSizes): OptionOf<number> {
  return numberOption(`max-${of}`, DEFAULT_SIZES[of], { min: 1, max: SIZE_MAX, isWhole: true });
}

function servicesOption(name: string): OptionOf<ReadonlySet<string>> {
  const { read, ...option } = listOption(name, "namespace/name or namespace/*", like(/^[^/\s]+\/[^/\s]+$/));
  const asSet = (found: readonly string[] | undefined): ReadonlySet<string> | undefined =>
    found === undefined ? undefined : new Set(found);
  return { ...option, otherwise: new Set(), read: (value) => asSet(read(value, name)) };
}

function like(form: RegExp): (text: string) => string | undefined {
  return (text) => (form.test(text) ? text : undefined);
}

/** How many entries each map is loaded with, by its name in C; others have those of the C. */
export function maxEntries(sizes: MapSizes): Readonly<Record<string, number>> {
  return Object.fromEntries(Object.entries(SIZED_BY).map(([map, by]) => [map, sizes[by]]));
}

/** What rows of one of so many families may want of the maps: half of a map, as what replaces an element is written before that goes. */
export function capacitiesOf(sizes: MapSizes, familyCount: number): readonly Capacity[] {
  const counted: readonly (readonly ["services" | "endpoints" | "ranges", Pick<Capacity, "name" | "sizeOf" | "contentsOf">])[] = [
    ["services", { name: "addresses and ports", sizeOf: ({ destinations }) => destinations.length }],
    ["endpoints", { name: "endpoints", sizeOf: (row) => poolsOf(row).flat().length, contentsOf: listContents }],
    ["ranges", { name: "source ranges", sizeOf: (row) => sourceRangesOf(row).flat().length, contentsOf: rangesContents }],
  ];
  return counted.map(([of, capacity]) => {
    return { ...capacity, max: Math.ceil(sizes[of] / 2 / familyCount), hint: `raise the option max-${of}` };
  });
}

/** The lists of endpoints that a row may need, by index; `local` only where it is another than `cluster`. */
function poolsOf({ cluster, local }: ServicePort): readonly (readonly number[])[] {
  const isSame = local.length === cluster.length && local.every((index, at) => index === cluster[at]);
  return isSame ? [cluster] : [cluster, local];
}

function listContents(row: ServicePort): readonly Content[] {
  return poolsOf(row).map((pool) => {
    const endpoints = pool.flatMap((index) => row.endpoints[index] ?? []).map(({ ip, port }) => hostPort(ip, port));
    return { key: listId(endpoints.toSorted()), size: endpoints.length };
  });
}

function sourceRangesOf({ destinations }: ServicePort): readonly (readonly string[])[] {
  return destinations.map(({ sourceRanges = [] }) => sourceRanges);
}

function rangesContents(row: ServicePort): readonly Content[] {
  return sourceRangesOf(row).map((ranges) => ({ key: rangesId(ranges.toSorted()), size: ranges.length }));
}

/** How many sets of eight places a namespace has to remember clients in: a quarter of the map. */
export function affinitySets({ affinity }: Pick<MapSizes, "affinity">): number {
  return Math.max(1, Math.floor(affinity / 32));
}

/** The option to raise when a map is full; undefined: it has no option. */
export function optionFor(map: string): string | undefined {
  const by = Object.entries(SIZED_BY).find(([name]) => name === map)?.[1];
  return by === undefined ? undefined : `max-${by}`;
}
