import type { IPFamily } from "@turnout/core";

/** Kinds of sets that Turnout makes, in ipset's words: what the entries of one are made of. */
export type SetType = "hash:ip" | "hash:ip,port" | "hash:ip,port,ip" | "hash:ip,port,net" | "bitmap:port";

/** What a set is made with. */
export interface SetSpec {
  readonly type: SetType;
  /** Of the addresses. A `bitmap:port` has none, and is the same for both. */
  readonly family: IPFamily;
}

/** A set's name has up to this many characters. @source linux/netfilter/ipset/ip_set.h IPSET_MAXNAMELEN */
export const SET_NAME_MAX = 31;

/** Entries that a set may have where nobody says another number: the kernel's own default, and what kube-proxy makes its sets with. */
export const SET_ENTRIES_DEFAULT = 65_536;

/** Entries that a set made for many may have. It is a bound only: a set has memory for the entries that it has. */
export const SET_ENTRIES_MAX = 1_048_576;

const FAMILY_WORD: Readonly<Record<IPFamily, string>> = { IPv4: "inet", IPv6: "inet6" };

/**
 * The words after a set's type in the order of `ipset save`, as far as they make two sets of one type the same or not: `family inet maxelem 65536`.
 *
 * Edges: how large the kernel's table is (`hashsize`) is left out, as it grows with the entries.
 */
export function optionsOf({ type, family }: SetSpec, entriesMax: number = SET_ENTRIES_DEFAULT): string {
  return type === "bitmap:port" ? "range 0-65535" : `family ${FAMILY_WORD[family]} maxelem ${entriesMax}`;
}
