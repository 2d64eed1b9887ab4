/**
 * What transactions of nf_tables are made of: pure, for what decides in a backend. {@link NftSession} of `@turnout/host/nft` carries them out.
 *
 * @packageDocumentation
 */
export { nftStatementText } from "./nft-statement.ts";
export type { NftElements, NftElementWrite, NftPartKind, NftStatement } from "./nft-statement.ts";
