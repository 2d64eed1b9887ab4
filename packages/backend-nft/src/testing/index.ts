/**
 * The nft backend's host in memory: an nft and a kernel as strict as the real ones, and a packet's way through them.
 *
 * @packageDocumentation
 */
export { createFakeHost } from "./fake-host.ts";
export type { NftFakeHost } from "./fake-host.ts";
export type { NftResult } from "@turnout/fakes/nft";
