import { switchOption, textOption } from "@turnout/core/backend";
import type { IPFamily, OptionsOf } from "@turnout/core/backend";

/** What this backend can be told; none of it changes which packets go where. */
export interface NftOptions {
  /** The nft program. */
  readonly nftPath: string;
  /** Show row names in `nft list`; costs some bytes per service. */
  readonly comments: boolean;
  /** Count connections, rejects and drops of each destination. */
  readonly counters: boolean;
  /** Count the bytes of each destination, too: something that each packet costs. */
  readonly countBytes: boolean;
}

/** What rendering knows of the host. */
export interface NftFacts {
  /** Addresses of the host per family, canonical, without link-local ones. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
}

/** The options by name. */
export const NFT_OPTIONS: OptionsOf<NftOptions> = {
  nftPath: textOption("nft-path", "nft", "a path", /./, "e.g. /usr/sbin/nft"),
  comments: switchOption("comments", true),
  counters: switchOption("counters", false),
  countBytes: switchOption("count-bytes", false),
};
