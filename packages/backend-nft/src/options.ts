import { ProxyError } from "@turnout/core/backend";
import type { IPFamily, Plain } from "@turnout/core/backend";

/** What this backend can be told; none of it changes which packets go where. */
export interface NftOptions {
  /** The nft program. */
  readonly nftPath: string;
  /** Show row names in `nft list`; costs some bytes per service. */
  readonly comments: boolean;
  /** Count connections, rejects and drops of each destination. */
  readonly counters: boolean;
}

/** What rendering knows of the host. */
export interface NftFacts {
  /** Addresses of the host per family, canonical, without link-local ones. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
}

/**
 * Check options given by name: `nft-path` (text), `comments` (boolean, default true), `counters` (boolean, default false).
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function parseNftOptions(raw: Readonly<Record<string, Plain>>): NftOptions {
  for (const name of Object.keys(raw)) {
    if (name !== "nft-path" && name !== "comments" && name !== "counters") {
      throw new ProxyError("invalid_object", `unknown nft option ${JSON.stringify(name)}`, {
        hint: "known are nft-path, comments and counters",
      });
    }
  }
  const nftPath = raw["nft-path"] ?? "nft";
  const comments = raw["comments"] ?? true;
  const counters = raw["counters"] ?? false;
  if (typeof nftPath !== "string" || nftPath === "")
    throw new ProxyError("invalid_object", "nft-path must be a path", { hint: "e.g. /usr/sbin/nft" });
  if (typeof comments !== "boolean") throw new ProxyError("invalid_object", "comments must be true or false");
  if (typeof counters !== "boolean") throw new ProxyError("invalid_object", "counters must be true or false");
  return { nftPath, comments, counters };
}
