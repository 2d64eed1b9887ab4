import { ProxyError } from "@turnout/core";
import type { NetlinkChannel } from "../channel.ts";
import { errno, kernelError } from "../errno.ts";
import { findAttribute, throughAttribute, zeroTerminated } from "../message.ts";
import type { NetlinkMessage } from "../message.ts";
import { NFGENMSG_LENGTH, NFT_SUBSYSTEM, nftTableOf, readNftChanges } from "./nft-changes.ts";
import type { NftChange } from "./nft-changes.ts";

// @source linux/netfilter/nfnetlink.h, nf_tables.h
const NEWGEN = (NFT_SUBSYSTEM << 8) | 15;
const GENERATION = { id: 1, pid: 2, process: 3 } as const;
/** In every nf_tables message but NEWGEN attribute 1 is the name of the table concerned. */
const TABLE = 1;
/** NEWRULE and DELRULE, by the low byte of their type. */
const RULES: readonly number[] = [6, 8];
/** Of a rule: the kernel writes the names of its table and chain first, and then what it does. */
const RULE_CHAIN = 2;
/** Kept of one commit. More is not worth it: everything has to be looked at then. */
const KEPT_BYTES_MAX = 16 << 20;

/** NFT_MSG_GETGEN: ask for the ruleset generation. */
const NFT_GETGEN: number = (NFT_SUBSYSTEM << 8) | 16;

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
      /** What was done, read when it is asked for, of rules in a row once for each chain; undefined: too much to tell. */
      readonly changes: () => readonly NftChange[] | undefined;
    }
  | { readonly kind: "lost" };

/** Read the generation out of a NEWGEN payload; undefined for anything else. */
export function parseGeneration(type: number, payload: Buffer): number | undefined {
  if (type !== NEWGEN) return undefined;
  return findAttribute(payload, GENERATION.id, NFGENMSG_LENGTH)?.readUInt32BE(0);
}

/**
 * Ask for the ruleset generation.
 * @throws {ProxyError} `host_unsupported` where the kernel has no nf_tables; what the channel throws.
 */
export async function readGeneration(channel: Pick<NetlinkChannel, "request">): Promise<number> {
  let generation: number | undefined;
  const outcome = await channel.request(NFT_GETGEN, Buffer.alloc(4), (type, payload) => {
    generation ??= parseGeneration(type, payload);
  });
  // EINVAL is how nfnetlink says that a subsystem isn't there.
  if (outcome === errno("EINVAL"))
    throw new ProxyError("host_unsupported", "this kernel has no nf_tables", { hint: "load it: modprobe nf_tables" });
  if (outcome !== 0) throw kernelError(outcome, "the ruleset generation can't be read");
  if (generation === undefined) throw new ProxyError("tool_failed", "the kernel's answer holds no ruleset generation");
  return generation;
}

/** Puts notifications together into commits: the kernel sends one message per object and ends with NEWGEN. */
export class NftEventReader {
  #tables = new Set<string>();
  #lastFamily = -1;
  #lastName: Buffer = Buffer.alloc(0);
  /** Copies of what says what was done, of rules in which chain; undefined: there was too much. */
  #kept: NetlinkMessage[] | undefined = [];
  #keptBytes = 0;

  /** Take one notification; the last of a commit gives the event. */
  receive(message: NetlinkMessage): NftEvent | undefined {
    const { type, payload } = message;
    if (type >> 8 !== NFT_SUBSYSTEM || payload.length < NFGENMSG_LENGTH) return undefined;
    if (type !== NEWGEN) {
      this.#noteTable(payload);
      this.#keep(message);
      return undefined;
    }
    const tables = [...this.#tables];
    const kept = this.#kept;
    this.reset();
    const pid = findAttribute(payload, GENERATION.pid, NFGENMSG_LENGTH)?.readUInt32BE(0) ?? 0;
    const name = findAttribute(payload, GENERATION.process, NFGENMSG_LENGTH);
    const process = name === undefined ? "" : zeroTerminated(name);
    const generation = parseGeneration(type, payload) ?? 0;
    return { kind: "commit", generation, pid, process, tables, changes: () => (kept === undefined ? undefined : readNftChanges(kept)) };
  }

  /** Forget a commit seen only in part. */
  reset(): void {
    this.#tables = new Set();
    this.#lastFamily = -1;
    this.#kept = [];
    this.#keptBytes = 0;
  }

  // A large commit names one table a hundred thousand times: equal bytes are not decoded again.
  #noteTable(payload: Buffer): void {
    const name = findAttribute(payload, TABLE, NFGENMSG_LENGTH);
    const family = payload.readUInt8(0);
    if (name === undefined || (family === this.#lastFamily && name.equals(this.#lastName))) return;
    this.#tables.add(nftTableOf(payload));
    this.#lastFamily = family;
    this.#lastName = Buffer.from(name);
  }

  // They are read only where a commit is somebody else's.
  #keep(message: NetlinkMessage): void {
    if (this.#kept === undefined) return;
    const isRule = RULES.includes(message.type & 0xff);
    const payload = isRule ? throughAttribute(message.payload, RULE_CHAIN, NFGENMSG_LENGTH) : message.payload;
    const last = this.#kept.at(-1);
    // A flush deletes all rules of one chain after another: of each chain it is said once.
    if (isRule && last?.type === message.type && last.payload.equals(payload)) return;
    this.#keptBytes += payload.length;
    if (this.#keptBytes > KEPT_BYTES_MAX) this.#kept = undefined;
    else this.#kept.push({ ...message, payload: Buffer.from(payload) });
  }
}
