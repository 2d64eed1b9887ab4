import { attributesOf, findAttribute, zeroTerminated } from "../message.ts";
import type { NetlinkMessage } from "../message.ts";

/** nf_tables' number among the subsystems of nfnetlink. @source linux/netfilter/nfnetlink.h */
export const NFT_SUBSYSTEM = 10;
/** Length of the header of every message of nfnetlink. */
export const NFGENMSG_LENGTH = 4;
/** nft's words for the numbers of families. */
export const NFT_FAMILIES: ReadonlyMap<number, string> = new Map([
  [1, "inet"],
  [2, "ip"],
  [3, "arp"],
  [5, "netdev"],
  [7, "bridge"],
  [10, "ip6"],
]);

/** One thing that a commit did. */
export interface NftChange {
  /** As nft names it, e.g. `ip turnout`. */
  readonly table: string;
  readonly verb: "made" | "deleted";
  /** `other`: an object, a flowtable, or what newer kernels have. */
  readonly kind: "table" | "chain" | "rule" | "set" | "elements" | "other";
  /** Of the chain, also for a rule, or of the set, also for elements; "" for a table and others. */
  readonly name: string;
  /** Keys of the elements, as the kernel has them. */
  readonly keys: readonly Buffer[];
}

// Attributes. @source linux/netfilter/nf_tables.h
const TABLE = 1;
const ELEMENT_LIST = 3;
const ELEMENT_KEY = 1;
const DATA_VALUE = 1;

/** What the messages say, by the low byte of their type, and which attribute has the name. @source linux/netfilter/nf_tables.h nf_tables_msg_types */
const MEANINGS: ReadonlyMap<number, Pick<NftChange, "verb" | "kind"> & { readonly name?: number }> = new Map([
  [0, { verb: "made", kind: "table" }],
  [2, { verb: "deleted", kind: "table" }],
  [3, { verb: "made", kind: "chain", name: 3 }],
  [5, { verb: "deleted", kind: "chain", name: 3 }],
  [6, { verb: "made", kind: "rule", name: 2 }],
  [8, { verb: "deleted", kind: "rule", name: 2 }],
  [9, { verb: "made", kind: "set", name: 2 }],
  [11, { verb: "deleted", kind: "set", name: 2 }],
  [12, { verb: "made", kind: "elements", name: 2 }],
  [14, { verb: "deleted", kind: "elements", name: 2 }],
]);

/** The table that a message is about, as nft names it. */
export function nftTableOf(payload: Buffer): string {
  const family = payload.readUInt8(0);
  const name = findAttribute(payload, TABLE, NFGENMSG_LENGTH);
  return `${NFT_FAMILIES.get(family) ?? `family ${family}`} ${name === undefined ? "" : zeroTerminated(name)}`;
}

/** Read what the messages of a commit say was done. */
export function readNftChanges(messages: readonly NetlinkMessage[]): readonly NftChange[] {
  return messages.map(({ type, payload }) => {
    const { verb, kind, name: id } = MEANINGS.get(type & 0xff) ?? { verb: "made", kind: "other" };
    const name = id === undefined ? undefined : findAttribute(payload, id, NFGENMSG_LENGTH);
    return {
      table: nftTableOf(payload),
      verb,
      kind,
      name: name === undefined ? "" : zeroTerminated(name),
      keys: kind === "elements" ? keysIn(findAttribute(payload, ELEMENT_LIST, NFGENMSG_LENGTH)) : [],
    };
  });
}

function keysIn(list: Buffer | undefined): readonly Buffer[] {
  return attributesOf(list ?? Buffer.alloc(0)).flatMap((element) => {
    const key = findAttribute(element, ELEMENT_KEY);
    const value = key === undefined ? undefined : findAttribute(key, DATA_VALUE);
    return value === undefined ? [] : [value];
  });
}
