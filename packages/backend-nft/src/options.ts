import { ProxyError, refuseUnknownOptions } from "@turnout/core/backend";
import type { IPFamily, OptionKinds, Plain } from "@turnout/core/backend";

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

/** What {@link parseNftOptions} takes. */
export const NFT_OPTIONS: OptionKinds = {
  "nft-path": "text",
  comments: "switch",
  counters: "switch",
  "count-bytes": "switch",
};

/** The boolean options, and what they are unless told. */
const SWITCHES = { comments: true, counters: false, "count-bytes": false } as const;

/**
 * Check options given by name: `nft-path` (text), `comments` (boolean, default true), `counters` and `count-bytes` (boolean, default false; the latter
 * implies the former).
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function parseNftOptions(raw: Readonly<Record<string, Plain>>): NftOptions {
  refuseUnknownOptions("nft", NFT_OPTIONS, raw);
  const nftPath = raw["nft-path"] ?? "nft";
  if (typeof nftPath !== "string" || nftPath === "")
    throw new ProxyError("invalid_object", "nft-path must be a path", { hint: "e.g. /usr/sbin/nft" });
  const isOn = (name: keyof typeof SWITCHES): boolean => {
    const value = raw[name] ?? SWITCHES[name];
    if (typeof value !== "boolean") throw new ProxyError("invalid_object", `${name} must be true or false`);
    return value;
  };
  const countBytes = isOn("count-bytes");
  return { nftPath, comments: isOn("comments"), counters: isOn("counters") || countBytes, countBytes };
}
