import type { NetlinkChannel } from "./channel.ts";
import { ipBytes } from "./conntrack.ts";
import { errno, kernelError } from "./errno.ts";
import { ipText } from "./host-addresses.ts";
import { attribute, be16, findAttribute, host32, nested, zeroEnded, zeroTerminated } from "./message.ts";

/** What a part of an element's key or data is. */
export type NftPartKind = "address" | "protocol" | "port" | "number";

/** One element of a set or map. */
export interface NftElementQuestion {
  readonly set: string;
  /** As text, in order: `10.96.0.1`, `tcp`, `80`. */
  readonly key: readonly { readonly is: NftPartKind; readonly text: string }[];
  /** Of what a map's element leads to; absent: it leads to a verdict, or the set is no map. */
  readonly data?: readonly NftPartKind[];
}

/** Parts of one table. */
export interface NftPartsQuestion {
  readonly elements: readonly NftElementQuestion[];
  readonly chains: readonly string[];
}

/** What there is of the parts that were asked for, in the form of `nft -j list`. */
export interface NftParts {
  /** All sets and maps of the table, each with the elements that were asked for and are there. */
  readonly sets: ReadonlyMap<string, readonly unknown[]>;
  /** Of the chains that were asked for those that are there. */
  readonly chains: ReadonlyMap<
    string,
    { readonly hook: string | undefined; readonly isDropping: boolean; readonly comments: readonly string[] }
  >;
}

// Message types, attributes. @source linux/netfilter/nf_tables.h (subsystem 10)
const NFT = { getChain: 0xa04, getRule: 0xa07, getSet: 0xa0a, getElement: 0xa0d } as const;
const TABLE = 1;
const CHAIN = { name: 3, hook: 4, policy: 5, type: 7 } as const;
const HOOK = { number: 1, priority: 2 } as const;
const RULE = { chain: 2, userdata: 7 } as const;
const SET_NAME = 2;
const LIST = { set: 2, elements: 3, element: 1 } as const;
const ELEMENT = { key: 1, data: 2, userdata: 6 } as const;
const DATA = { value: 1, verdict: 2 } as const;
const VERDICT = { code: 1, chain: 2 } as const;
const COMMENT = 0;
const NFGENMSG_LENGTH = 4;
const FAMILIES = { ip: 2, ip6: 10 } as const;
const HOOK_NAMES = ["prerouting", "input", "forward", "output", "postrouting"];
const NF_DROP = 0;
const VERDICTS: ReadonlyMap<number, string> = new Map([
  [NF_DROP, "drop"],
  [1, "accept"],
  [-3, "jump"],
  [-4, "goto"],
  [-5, "return"],
]);
const PROTOCOLS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };

/**
 * Read single elements and chains of one table, whatever else is in it: `nft` itself reads all elements of a table to show one.
 *
 * Edges: undefined where there is no such table.
 * @throws {ProxyError} `permission_denied`, `host_unsupported`, `tool_failed`.
 */
export async function readNftParts(
  channel: Pick<NetlinkChannel, "request" | "dump">,
  family: "ip" | "ip6",
  table: string,
  { elements, chains }: NftPartsQuestion,
): Promise<NftParts | undefined> {
  const head = Buffer.concat([Buffer.of(FAMILIES[family], 0, 0, 0), attribute(TABLE, zeroEnded(table))]);
  const names: string[] = [];
  const listed = await channel.dump(NFT.getSet, head, (_, payload) => {
    const name = findAttribute(payload, SET_NAME, NFGENMSG_LENGTH);
    if (name !== undefined) names.push(zeroTerminated(name));
  });
  if (listed.errno === errno("ENOENT")) return undefined;
  if (listed.errno !== 0) throw kernelError(listed.errno, "the sets of a table can't be listed");
  const sets = new Map<string, unknown[]>(names.map((name) => [name, []]));
  for (const question of elements) {
    const found = sets.has(question.set) ? await readElement(channel, head, question) : undefined;
    if (found !== undefined) sets.get(question.set)?.push(found);
  }
  const read = new Map<string, NonNullable<Awaited<ReturnType<typeof readChain>>>>();
  for (const name of chains) {
    const chain = await readChain(channel, head, name);
    if (chain !== undefined) read.set(name, chain);
  }
  return names.length === 0 && read.size === 0 ? undefined : { sets, chains: read };
}

async function readElement(
  channel: Pick<NetlinkChannel, "request">,
  head: Buffer,
  { set, key, data }: NftElementQuestion,
): Promise<unknown> {
  const bytes = Buffer.concat(key.map(({ is, text }) => padded(keyBytes(is, text))));
  // A key of one part has its own length; of several, each is padded.
  const exact = key.length === 1 && key[0] !== undefined ? keyBytes(key[0].is, key[0].text) : bytes;
  const element = nested(LIST.element, nested(ELEMENT.key, attribute(DATA.value, exact)));
  let found: Buffer | undefined;
  const outcome = await channel.request(
    NFT.getElement,
    Buffer.concat([head, attribute(LIST.set, zeroEnded(set)), nested(LIST.elements, element)]),
    (_, payload) => {
      const list = findAttribute(payload, LIST.elements, NFGENMSG_LENGTH);
      const one = list && findAttribute(list, LIST.element);
      if (one !== undefined) found = Buffer.from(one);
    },
  );
  if (outcome === errno("ENOENT")) return undefined;
  if (outcome !== 0)
    throw kernelError(outcome, "an element can't be read", { object: `${set} ${key.map(({ text }) => text).join(" . ")}` });
  if (found === undefined) return undefined;
  const texts = key.map(({ is, text }) => (is === "port" || is === "number" ? Number(text) : text));
  const plain = texts.length === 1 ? texts[0] : { concat: texts };
  const comment = commentIn(findAttribute(found, ELEMENT.userdata));
  const shown = comment === "" ? plain : { elem: { val: plain, comment } };
  const leadsTo = findAttribute(found, ELEMENT.data);
  return leadsTo === undefined ? shown : [shown, dataOf(leadsTo, data)];
}

function dataOf(bytes: Buffer, kinds: readonly NftPartKind[] | undefined): unknown {
  const verdict = findAttribute(bytes, DATA.verdict);
  if (verdict !== undefined) {
    const word = VERDICTS.get(findAttribute(verdict, VERDICT.code)?.readInt32BE(0) ?? 1) ?? "accept";
    const chain = findAttribute(verdict, VERDICT.chain);
    return { [word]: chain === undefined ? undefined : { target: zeroTerminated(chain) } };
  }
  const value = findAttribute(bytes, DATA.value) ?? Buffer.alloc(0);
  let at = 0;
  const parts = (kinds ?? []).map((kind) => {
    const length = kind === "address" ? ((kinds ?? []).length === 1 ? value.length : value.length - 4 * ((kinds ?? []).length - 1)) : 4;
    const part = value.subarray(at, at + length);
    at += length;
    return kind === "address" ? ipText(part) : kind === "port" ? part.readUInt16BE(0) : part.readUInt32LE(0);
  });
  return parts.length === 1 ? parts[0] : { concat: parts };
}

async function readChain(
  channel: Pick<NetlinkChannel, "request" | "dump">,
  head: Buffer,
  name: string,
): Promise<{ readonly hook: string | undefined; readonly isDropping: boolean; readonly comments: readonly string[] } | undefined> {
  let chain: { readonly hook: string | undefined; readonly isDropping: boolean } | undefined;
  const outcome = await channel.request(NFT.getChain, Buffer.concat([head, attribute(CHAIN.name, zeroEnded(name))]), (_, payload) => {
    chain = { hook: hookOf(payload), isDropping: findAttribute(payload, CHAIN.policy, NFGENMSG_LENGTH)?.readUInt32BE(0) === NF_DROP };
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

function hookOf(payload: Buffer): string | undefined {
  const hook = findAttribute(payload, CHAIN.hook, NFGENMSG_LENGTH);
  const type = findAttribute(payload, CHAIN.type, NFGENMSG_LENGTH);
  if (hook === undefined || type === undefined) return undefined;
  const at = HOOK_NAMES[findAttribute(hook, HOOK.number)?.readUInt32BE(0) ?? -1] ?? "";
  return `type ${zeroTerminated(type)} hook ${at} priority ${findAttribute(hook, HOOK.priority)?.readInt32BE(0) ?? 0}`;
}

/** nft keeps comments as a list of type, length and value. */
function commentIn(userdata: Buffer | undefined): string {
  for (let at = 0; userdata !== undefined && at + 2 <= userdata.length;) {
    const [type, length] = [userdata.readUInt8(at), userdata.readUInt8(at + 1)];
    if (type === COMMENT) return zeroTerminated(userdata.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return "";
}

function keyBytes(is: NftPartKind, text: string): Buffer {
  if (is === "address") return ipBytes(text);
  if (is === "protocol") return Buffer.of(PROTOCOLS[text] ?? 0);
  return is === "port" ? be16(Number(text)) : host32(Number(text));
}

function padded(bytes: Buffer): Buffer {
  return bytes.length % 4 === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(4 - (bytes.length % 4))]);
}
