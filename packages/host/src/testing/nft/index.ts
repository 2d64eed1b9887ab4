/**
 * nft and the kernel behind it, in memory: a part of a fake host.
 *
 * @packageDocumentation
 */
export { EXTERNAL_BIT } from "../external-mark.ts";
export { createNftExec } from "./fake-exec.ts";
export type { RunInput } from "./fake-exec.ts";
export { FakeNft } from "./fake-nft.ts";
export type { FakeNftHost, FollowOptions } from "./fake-nft.ts";
export { dataJson, listedStatements, verdictJson } from "./json.ts";
export { listedTable } from "./listed-table.ts";
export { tokenize } from "./lexer.ts";
export type { NftResult } from "./nft-engine.ts";
export { Refusal } from "./refusal.ts";
export type { Chain, Element, NftSet, Rule, Ruleset, Table } from "./ruleset.ts";
