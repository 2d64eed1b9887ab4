import type { NetlinkChannel } from "../channel.ts";
import type { NftFamily } from "../../nft-statement/syntax.ts";
import { errno, kernelError } from "../errno.ts";
import { attribute, findAttribute, zeroEnded, zeroTerminated } from "../message.ts";
import { hookText, parseChain } from "./nft-chains.ts";
import { NFGENMSG_LENGTH } from "./nft-changes.ts";
import { commentIn, parseSetType, readElements } from "./nft-elements.ts";
import type { NftElement, NftSetType } from "./nft-elements.ts";
import { readGeneration } from "./nft-events.ts";

/** A chain of a table, as far as it tells whether it is as somebody made it. */
export interface NftTableChain {
  /** Where the kernel calls it in: `type nat hook prerouting priority -100`; undefined for a chain that only other chains call. */
  readonly hook: string | undefined;
  /** A base chain's policy is to drop. */
  readonly isDropping: boolean;
  /** The comment of each of its rules, in order; "" for one without. */
  readonly comments: readonly string[];
}

/** What is in one table of nf_tables. */
export interface NftTable {
  /** Sets and maps that have names, with their elements. */
  readonly sets: ReadonlyMap<string, readonly NftElement[]>;
  readonly chains: ReadonlyMap<string, NftTableChain>;
}

/** Takes a table piece by piece, so that its elements need not be kept. */
export interface NftTableSink {
  /** There is such a set or map; what comes back is called for each of its elements; undefined: they aren't read. */
  set(name: string): ((element: NftElement) => void) | undefined;
  /** Without it, chains aren't read. */
  chain?(name: string, chain: NftTableChain): void;
}

// Message types, attributes. @source linux/netfilter/nf_tables.h (subsystem 10)
const NFT = { getTable: 0xa01, getChain: 0xa04, getRule: 0xa07, getSet: 0xa0a, getElement: 0xa0d } as const;
const TABLE = 1;
const SET_NAME = 2;
const ELEMENTS_SET = 2;
const RULE = { table: 1, chain: 2, userdata: 7 } as const;
const FAMILIES: Readonly<Record<NftFamily, number>> = { inet: 1, ip: 2, ip6: 10 };
/** A read takes half a second at 100,000 elements; who commits more often than that mostly commits to other tables. */
const TRIES_MAX = 5;

/** The part of a request that says which table is meant. */
export function tableRequest(family: NftFamily, table: string): Buffer {
  return Buffer.concat([Buffer.of(FAMILIES[family], 0, 0, 0), attribute(TABLE, zeroEnded(table))]);
}

/**
 * Tell whether there is such a table; `nft list tables` reads all chains and sets first, which takes many seconds beside the chains of an iptables proxy.
 * @throws {ProxyError} `permission_denied`, `tool_failed`.
 */
export async function hasTable(channel: Pick<NetlinkChannel, "request">, family: NftFamily, table: string): Promise<boolean> {
  const outcome = await channel.request(NFT.getTable, tableRequest(family, table));
  // A kernel without nf_tables knows no such message.
  if (outcome === errno("ENOENT") || outcome === errno("EINVAL")) return false;
  if (outcome !== 0) throw kernelError(outcome, "a table can't be read", { object: `${family} ${table}` });
  return true;
}

/**
 * Read a table with its elements; `nft -j list table` takes several times as long to print them.
 *
 * Shape: `openChannel` is called once. `open` is called for each try, and what it gave for the last one comes back.
 * Edges: undefined where there is no such table. Sets of ranges, and those with parts of other types than ours, are left out. What is read is what
 * was there after one commit; where somebody commits during each of five tries, the last one counts.
 * @throws {ProxyError} `permission_denied`, `host_unsupported`, `tool_failed`.
 */
export async function readNftTable<T extends NftTableSink>(
  openChannel: () => Pick<NetlinkChannel, "request" | "dump" | "close">,
  family: NftFamily,
  table: string,
  open: () => T,
): Promise<T | undefined> {
  const channel = openChannel();
  try {
    for (let attempt = 1; ; attempt++) {
      const sink = open();
      const generation = await readGeneration(channel);
      const reader = new TableReader(channel, family, table);
      const isThere = await reader.read(sink);
      const isOne = !reader.isInterrupted && (await readGeneration(channel)) === generation;
      if (isOne || attempt === TRIES_MAX) return isThere ? sink : undefined;
    }
  } finally {
    channel.close();
  }
}

/** List the sets and maps of a table that elements can be read of, and what those consist of; undefined: there is no such table. */
export async function listSets(
  channel: Pick<NetlinkChannel, "dump">,
  request: Buffer,
): Promise<{ readonly sets: ReadonlyMap<string, NftSetType>; readonly isInterrupted: boolean } | undefined> {
  const sets = new Map<string, NftSetType>();
  const end = await channel.dump(NFT.getSet, request, (_, payload) => {
    const name = findAttribute(payload, SET_NAME, NFGENMSG_LENGTH);
    const type = parseSetType(payload);
    if (name !== undefined && type !== undefined) sets.set(zeroTerminated(name), type);
  });
  if (end.errno === errno("ENOENT")) return undefined;
  if (isRefused(end.errno)) throw kernelError(end.errno, "the sets of a table can't be listed");
  return { sets, isInterrupted: end.interrupted || end.errno !== 0 };
}

/** One try. */
class TableReader {
  readonly #channel: Pick<NetlinkChannel, "request" | "dump">;
  readonly #family: NftFamily;
  readonly #table: string;
  readonly #request: Buffer;
  /** Something changed meanwhile. */
  isInterrupted = false;

  constructor(channel: Pick<NetlinkChannel, "request" | "dump">, family: NftFamily, table: string) {
    this.#channel = channel;
    this.#family = family;
    this.#table = table;
    this.#request = tableRequest(family, table);
  }

  /** Resolves to whether there is such a table. */
  async read(sink: NftTableSink): Promise<boolean> {
    if (!(await hasTable(this.#channel, this.#family, this.#table))) return false;
    if (sink.chain !== undefined) for (const [name, chain] of await this.#chains()) sink.chain(name, chain);
    const listed = await listSets(this.#channel, this.#request);
    if (listed === undefined || listed.isInterrupted) this.isInterrupted = true;
    for (const [name, type] of listed?.sets ?? []) {
      const put = sink.set(name);
      if (put !== undefined) await this.#elements(name, type, put);
    }
    return true;
  }

  async #elements(set: string, type: NftSetType, put: (element: NftElement) => void): Promise<void> {
    const request = Buffer.concat([this.#request, attribute(ELEMENTS_SET, zeroEnded(set))]);
    await this.#dump(NFT.getElement, request, `the elements of ${set}`, (payload) => readElements(payload, type, put));
  }

  async #chains(): Promise<ReadonlyMap<string, NftTableChain>> {
    const chains = new Map<string, NftTableChain & { readonly comments: string[] }>();
    // The kernel lists the chains of all tables of the family.
    await this.#dump(NFT.getChain, this.#request, "chains", (payload) => {
      const chain = parseChain(payload);
      if (chain === undefined || chain.table !== this.#table) return;
      chains.set(chain.name, { hook: hookText(chain.base), isDropping: chain.base?.policy === "drop", comments: [] });
    });
    await this.#dump(NFT.getRule, this.#request, "rules", (payload) => {
      const [table, chain] = [RULE.table, RULE.chain].map((part) => findAttribute(payload, part, NFGENMSG_LENGTH));
      // An older kernel lists the rules of all tables.
      if (table === undefined || chain === undefined || zeroTerminated(table) !== this.#table) return;
      chains.get(zeroTerminated(chain))?.comments.push(commentIn(findAttribute(payload, RULE.userdata, NFGENMSG_LENGTH)));
    });
    return chains;
  }

  async #dump(type: number, request: Buffer, what: string, read: (payload: Buffer) => void): Promise<void> {
    const end = await this.#channel.dump(type, request, (_, payload) => read(payload));
    // What was listed a moment ago is gone: somebody changed something.
    if (end.interrupted || end.errno !== 0) this.isInterrupted = true;
    if (isRefused(end.errno)) throw kernelError(end.errno, `${what} can't be listed`, { object: this.#table });
  }
}

/** An error, and not one that says that something changed meanwhile. */
function isRefused(value: number): boolean {
  return value !== 0 && value !== errno("EINTR") && value !== errno("ENOENT");
}
