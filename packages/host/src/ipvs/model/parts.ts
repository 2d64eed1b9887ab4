import { parseIP } from "@turnout/core";
import type { VirtualServerKey } from "./model.ts";

/** In so many parts virtual servers are digested: what is otherwise is looked for in a few of them. */
export const PARTS = 256;
const WORD_BITS = 32n;
const FAMILY_WORDS = { IPv4: 1, IPv6: 4 } as const;

/** Mix a word into a digest: another word gives another digest. No defence against an attacker who looks for two alike. Pure. */
export function mixed(digest: number, word: number): number {
  return Math.imul(digest ^ word, 0x0100_0193);
}

/** The part of what was mixed of an address, word by word from its beginning, and a port. Pure. */
export function partOfChecksum(digest: number): number {
  return digest >>> 24;
}

/** The part that a virtual server is in: by its address and port, whatever the protocol. Pure. */
export function partOf({ address, port }: Pick<VirtualServerKey, "address" | "port">): number {
  const ip = parseIP(address);
  const words = ip === undefined ? 0 : FAMILY_WORDS[ip.family];
  let digest = 0;
  for (let index = words - 1; index >= 0; index -= 1)
    digest = mixed(digest, Number(BigInt.asIntN(32, (ip?.value ?? 0n) >> (WORD_BITS * BigInt(index)))));
  return partOfChecksum(mixed(digest, port));
}
