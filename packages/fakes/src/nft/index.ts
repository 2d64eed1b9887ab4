/**
 * nft and the kernel behind it, in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { EXTERNAL_BIT } from "../host/external-mark.ts";
export { createNftExec } from "./fake-exec.ts";
export type { NftResult } from "./fake-exec.ts";
export { FakeNft } from "./fake-nft.ts";
export type { Chain, Element, NftSet, Rule, Ruleset, Table } from "./ruleset.ts";
