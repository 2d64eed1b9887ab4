/**
 * What transactions of nf_tables are made of: pure, for what decides in a backend. {@link NftSession} of `@turnout/host/nft` carries them out.
 *
 * @packageDocumentation
 */
export { concat, ct, goTo, match, meta, numgen, payload, setMark, vmap } from "./build.ts";
export { isElements, nftStatementText } from "./nft-statement.ts";
export type { NftElements, NftElementWrite, NftPartKind, NftStatement } from "./nft-statement.ts";
export { printHook, printRule } from "./print.ts";
export type { NftHook } from "./print.ts";
export type {
  NftChainSpec,
  NftCommand,
  NftExpression,
  NftRuleSpec,
  NftRuleStatement,
  NftSetSpec,
  NftSubject,
  NftTypeSpec,
  NftVerdict,
} from "./syntax.ts";
