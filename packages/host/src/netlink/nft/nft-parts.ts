import type { NetlinkChannel } from "../channel.ts";
import { ipBytes } from "../conntrack/conntrack.ts";
import { errno, kernelError } from "../errno.ts";
import { attribute, be16, findAttribute, host32, nested, zeroEnded, zeroTerminated } from "../message.ts";
import { hookText, parseChain } from "./nft-chains.ts";
import { NFGENMSG_LENGTH } from "./nft-changes.ts";
import { commentIn, readElements } from "./nft-elements.ts";
import type { NftElement, NftSetType } from "./nft-elements.ts";
import type { NftPartKind } from "../../nft-statement/nft-statement.ts";
import { listSets, tableRequest } from "./nft-table.ts";
import type { NftTable, NftTableChain } from "./nft-table.ts";

/** One element of a set or map. */
export interface NftElementQuestion {
  readonly set: string;
  /** As text, in order: `10.96.0.1`, `tcp`, `80`. */
  readonly key: readonly { readonly is: NftPartKind; readonly text: string }[];
}

/** Parts of one table. */
export interface NftPartsQuestion {
  readonly elements: readonly NftElementQuestion[];
  readonly chains: readonly string[];
}

// Message types, attributes. @source linux/netfilter/nf_tables.h (subsystem 10)
const NFT = { getChain: 0xa04, getRule: 0xa07, getElement: 0xa0d } as const;
const CHAIN_NAME = 3;
const RULE = { chain: 2, userdata: 7 } as const;
const LIST = { set: 2, elements: 3, element: 1 } as const;
const ELEMENT_KEY = 1;
const DATA_VALUE = 1;
const PROTOCOLS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };

/**
 * Read single elements and chains of one table, whatever else is in it: `nft` itself reads all elements of a table to show one.
 *
 * Shape: of the table's sets and maps each has the elements that were asked for and are there; of the chains those that were asked for are there.
 * Edges: undefined where there is no such table. Sets of ranges, and those with parts of other types than ours, are left out.
 * @throws {ProxyError} `permission_denied`, `host_unsupported`, `tool_failed`.
 */
export async function readNftParts(
  channel: Pick<NetlinkChannel, "request" | "dump">,
  family: "ip" | "ip6",
  table: string,
  { elements, chains }: NftPartsQuestion,
): Promise<NftTable | undefined> {
  const head = tableRequest(family, table);
  const listed = await listSets(channel, head);
  if (listed === undefined) return undefined;
  const sets = new Map<string, NftElement[]>(Array.from(listed.sets.keys(), (name) => [name, []]));
  for (const question of elements) {
    const type = listed.sets.get(question.set);
    if (type !== undefined) sets.get(question.set)?.push(...(await readElement(channel, head, question, type)));
  }
  const read = new Map<string, NftTableChain>();
  for (const name of chains) {
    const chain = await readChain(channel, head, name);
    if (chain !== undefined) read.set(name, chain);
  }
  return sets.size === 0 && read.size === 0 ? undefined : { sets, chains: read };
}

async function readElement(
  channel: Pick<NetlinkChannel, "request">,
  head: Buffer,
  { set, key }: NftElementQuestion,
  type: NftSetType,
): Promise<readonly NftElement[]> {
  const bytes = Buffer.concat(key.map(({ is, text }) => padded(keyBytes(is, text))));
  // A key of one part has its own length; of several, each is padded.
  const exact = key.length === 1 && key[0] !== undefined ? keyBytes(key[0].is, key[0].text) : bytes;
  const element = nested(LIST.element, nested(ELEMENT_KEY, attribute(DATA_VALUE, exact)));
  const found: NftElement[] = [];
  const outcome = await channel.request(
    NFT.getElement,
    Buffer.concat([head, attribute(LIST.set, zeroEnded(set)), nested(LIST.elements, element)]),
    (_, payload) => readElements(payload, type, (one) => void found.push(one)),
  );
  if (outcome === errno("ENOENT")) return [];
  if (outcome !== 0)
    throw kernelError(outcome, "an element can't be read", { object: `${set} ${key.map(({ text }) => text).join(" . ")}` });
  return found;
}

async function readChain(
  channel: Pick<NetlinkChannel, "request" | "dump">,
  head: Buffer,
  name: string,
): Promise<NftTableChain | undefined> {
  let chain: Omit<NftTableChain, "comments"> | undefined;
  const outcome = await channel.request(NFT.getChain, Buffer.concat([head, attribute(CHAIN_NAME, zeroEnded(name))]), (_, payload) => {
    const base = parseChain(payload)?.base;
    chain = { hook: hookText(base), isDropping: base?.policy === "drop" };
  });
  if (outcome === errno("ENOENT") || chain === undefined) return undefined;
  if (outcome !== 0) throw kernelError(outcome, "a chain can't be read", { object: name });
  const comments: string[] = [];
  const end = await channel.dump(NFT.getRule, Buffer.concat([head, attribute(RULE.chain, zeroEnded(name))]), (_, payload) => {
    // An older kernel lists the rules of all chains.
    const of = findAttribute(payload, RULE.chain, NFGENMSG_LENGTH);
    if (of !== undefined && zeroTerminated(of) === name) comments.push(commentIn(findAttribute(payload, RULE.userdata, NFGENMSG_LENGTH)));
  });
  if (end.errno !== 0) throw kernelError(end.errno, "the rules of a chain can't be listed", { object: name });
  return { ...chain, comments };
}

function keyBytes(is: NftPartKind, text: string): Buffer {
  if (is === "address") return ipBytes(text);
  if (is === "protocol") return Buffer.of(PROTOCOLS[text] ?? 0);
  return is === "port" ? be16(Number(text)) : host32(Number(text));
}

function padded(bytes: Buffer): Buffer {
  return bytes.length % 4 === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(4 - (bytes.length % 4))]);
}
