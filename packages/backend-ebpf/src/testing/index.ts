/**
 * The eBPF backend's host in memory: a kernel that carries out the very instructions of the compiled programs, with maps, links, pins and conntrack
 * as strict as the real one.
 *
 * @packageDocumentation
 */
export { createFakeHost } from "./fake-host.ts";
export type { EbpfFakeHost } from "./fake-host.ts";
