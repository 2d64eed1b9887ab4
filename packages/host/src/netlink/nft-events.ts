import { findAttribute, zeroTerminated } from "./message.ts";
import type { NetlinkMessage } from "./message.ts";

// @source linux/netfilter/nfnetlink.h, nf_tables.h
/** Its number among those of nfnetlink. */
export const NFT_SUBSYSTEM = 10;
const NEWGEN = (NFT_SUBSYSTEM << 8) | 15;
const NFGENMSG_LENGTH = 4;
/** In every nf_tables message but NEWGEN attribute 1 is the name of the table concerned. */
const TABLE = 1;
const GENERATION = { id: 1, pid: 2, process: 3 } as const;
/** nft's words for the numbers of families. */
export const NFT_FAMILIES: ReadonlyMap<number, string> = new Map([
  [1, "inet"],
  [2, "ip"],
  [3, "arp"],
  [5, "netdev"],
  [7, "bridge"],
  [10, "ip6"],
]);

/** NFT_MSG_GETGEN: ask for the ruleset generation. */
export const NFT_GETGEN: number = (NFT_SUBSYSTEM << 8) | 16;

/** Somebody changed the ruleset; or the kernel told more than could be kept, and anything may have changed. */
export type NftEvent =
  | {
      readonly kind: "commit";
      readonly generation: number;
      /** The process that committed, as numbered in the initial pid namespace; 0 when the kernel does not say. */
      readonly pid: number;
      /** Its name, e.g. `nft`. */
      readonly process: string;
      /** Tables touched, as nft names them, e.g. `ip turnout`. */
      readonly tables: readonly string[];
    }
  | { readonly kind: "lost" };

/** Read the generation out of a NEWGEN payload; undefined for anything else. */
export function parseGeneration(type: number, payload: Buffer): number | undefined {
  if (type !== NEWGEN) return undefined;
  return findAttribute(payload, GENERATION.id, NFGENMSG_LENGTH)?.readUInt32BE(0);
}

/** Puts notifications together into commits: the kernel sends one message per object and ends with NEWGEN. */
export class NftEventReader {
  #tables = new Set<string>();
  #lastFamily = -1;
  #lastName: Buffer = Buffer.alloc(0);

  /** Take one notification; the last of a commit gives the event. */
  receive(message: NetlinkMessage): NftEvent | undefined {
    const { type, payload } = message;
    if (type >> 8 !== NFT_SUBSYSTEM || payload.length < NFGENMSG_LENGTH) return undefined;
    if (type !== NEWGEN) {
      this.#noteTable(payload);
      return undefined;
    }
    const tables = [...this.#tables];
    this.reset();
    const pid = findAttribute(payload, GENERATION.pid, NFGENMSG_LENGTH)?.readUInt32BE(0) ?? 0;
    const name = findAttribute(payload, GENERATION.process, NFGENMSG_LENGTH);
    const process = name === undefined ? "" : zeroTerminated(name);
    return { kind: "commit", generation: parseGeneration(type, payload) ?? 0, pid, process, tables };
  }

  /** Forget a commit seen only in part. */
  reset(): void {
    this.#tables = new Set();
    this.#lastFamily = -1;
  }

  // A large commit names one table a hundred thousand times: equal bytes are not decoded again.
  #noteTable(payload: Buffer): void {
    const name = findAttribute(payload, TABLE, NFGENMSG_LENGTH);
    const family = payload.readUInt8(0);
    if (name === undefined || (family === this.#lastFamily && name.equals(this.#lastName))) return;
    this.#tables.add(`${NFT_FAMILIES.get(family) ?? `family ${family}`} ${zeroTerminated(name)}`);
    this.#lastFamily = family;
    this.#lastName = Buffer.from(name);
  }
}
