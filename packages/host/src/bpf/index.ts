/**
 * eBPF by libbpf: what this kernel has, compiled objects, maps, links, trying a program on a packet; and ending sockets whose endpoint is gone.
 *
 * Objects are compiled from `src/**\/*.bpf.c` of a package by scripts/build-bpf.sh, to `dist/**\/*.bpf.o`.
 *
 * @packageDocumentation
 */
export { createBpf } from "./bpf.ts";
export type { Bpf } from "./bpf.ts";
export type { CgroupHook, Direction } from "./constants.ts";
export { elementError } from "./errors.ts";
export { FEATURES } from "./features.ts";
export type { BpfFeature } from "./features.ts";
export type { BpfHandle } from "./handle.ts";
export type { LinkInfo } from "./info.ts";
export type { BpfLink } from "./link.ts";
export type { BpfMap } from "./maps/map.ts";
export { ElementSpace } from "./maps/map-batches.ts";
export type { BatchOutcome, Elements } from "./maps/map-batches.ts";
export { findBpfMounts } from "./mounts.ts";
export type { BpfMounts } from "./mounts.ts";
export { inNetworkNamespace, networkNamespaceCookie } from "./sockets/namespace.ts";
export { listNetworkNamespaces } from "./sockets/namespaces.ts";
export { verifierLogOf } from "./object.ts";
export type { LoadedObject, LoadOptions, MapChoice } from "./object.ts";
export { perCpuValues, sumCounter } from "./maps/per-cpu.ts";
export type { Pin } from "./pins.ts";
export { probeBpf } from "./probe.ts";
export type { BpfProbe } from "./probe.ts";
export type { BpfProgram } from "./program.ts";
export { createSockets } from "./sockets/sockets.ts";
export type { RemoteEnd, Sockets } from "./sockets/sockets.ts";
export type { TcFilterName, TcPlace } from "./tc.ts";
