import type { Chain, NftSet, Table } from "./ruleset.ts";

/** What is known while a rule is being read from left to right. */
export interface RuleContext {
  readonly table: Table;
  readonly nowMs: number;
  /** Transport protocols that earlier parts of the rule have said it is about. */
  protocols: readonly string[];
  /** The match of TCP that nft puts in front of a rule that ends in a TCP reset. */
  readonly reset: Listing | undefined;
  /** The last match of a protocol that was written out; one that a port implies anyway isn't listed. */
  dependency: Listing | undefined;
  /** Chains and sets that the rule refers to. */
  readonly chains: Chain[];
  readonly sets: NftSet[];
}

/** Whether a statement shows in a listing. */
export interface Listing {
  isHidden: boolean;
}
