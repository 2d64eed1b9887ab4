/**
 * IPVS in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { FakeIpvs } from "./fake-ipvs.ts";
export type { FakeIpvsHost } from "./fake-ipvs.ts";
export type { PacketEnds } from "../host/set-lookup.ts";
