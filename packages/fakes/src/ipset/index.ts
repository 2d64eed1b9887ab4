/**
 * ipset and the kernel's sets behind it, in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { FakeIpset } from "./fake-ipset.ts";
export type { FakeIpsetHost } from "./fake-ipset.ts";
export type { FakeSet } from "./fake-set.ts";
export type { PacketEnds, SetLookup } from "../host/set-lookup.ts";
