import type { IPFamily } from "@turnout/core";
import { ipText } from "../host-addresses.ts";
import { findAttribute, zeroTerminated } from "../message.ts";
import { NFGENMSG_LENGTH } from "./nft-changes.ts";
import type { NftPartKind } from "../../nft-statement/nft-statement.ts";

/** An element of a set or map, in the words of nft's language. */
export interface NftElement {
  /** The parts of its key, joined: `10.96.0.1 . tcp . 80`; `*` for what all other keys lead to. */
  readonly key: string;
  /** What a map's element leads to: a verdict, or the parts of its data, joined; "" in a set. */
  readonly value: string;
  /** "" for none. */
  readonly comment: string;
  /** What packets that met the element were counted to; absent: it doesn't count. */
  readonly counter?: NftCounter;
}

/** What the kernel counted, since it was told to. */
export interface NftCounter {
  readonly packets: number;
  /** From the IP header on. */
  readonly bytes: number;
}

/** What the elements of one set or map consist of. */
export interface NftSetType {
  readonly key: readonly PartType[];
  /** Undefined: verdicts, or nothing in a set. */
  readonly data: readonly PartType[] | undefined;
}

/** A part as nft has it, by the number of its type. @source nftables include/datatype.h enum datatypes */
type PartType = 4 | 7 | 8 | 12 | 13 | 19 | 23;

/** Bytes of a part by its type; a number may be shorter only where it is alone, which ours never are. */
const LENGTHS: Readonly<Record<PartType, number>> = { 4: 4, 7: 4, 8: 16, 12: 1, 13: 2, 19: 4, 23: 4 };
/** In a concatenation each part's type has so many bits. @source nftables include/datatype.h TYPE_BITS */
const TYPE_BITS = 6;
/** @source linux/netfilter/nf_tables.h enum nft_data_types */
const DATA_VERDICT = 0xffffff00;
/** Flag of a set whose elements are ends of ranges. @source linux/netfilter/nf_tables.h enum nft_set_flags */
const INTERVAL = 0x4;

// Attributes. @source linux/netfilter/nf_tables.h
const SET = { flags: 3, keyType: 4, keyLength: 5, dataType: 6, dataLength: 7 } as const;
const LIST = { elements: 3 } as const;
const ELEMENT = { key: 1, data: 2, userdata: 6, expression: 7 } as const;
const EXPRESSION = { name: 1, data: 2 } as const;
const COUNTER = { bytes: 1, packets: 2 } as const;
const DATA = { value: 1, verdict: 2 } as const;
const VERDICT = { code: 1, chain: 2 } as const;
const HEADER_LENGTH = 4;
const TYPE_MASK = 0x3fff;

const VERDICTS: ReadonlyMap<number, string> = new Map([
  [0, "drop"],
  [1, "accept"],
  [-1, "continue"],
  [-3, "jump"],
  [-4, "goto"],
  [-5, "return"],
]);

const PROTOCOLS: Readonly<Record<number, string>> = { 6: "tcp", 17: "udp", 132: "sctp" };

/** Read from an NFT_MSG_NEWSET payload what the elements are; undefined: ranges, or parts of other types than ours. */
export function parseSetType(payload: Buffer): NftSetType | undefined {
  const number = (attribute: number): number | undefined => findAttribute(payload, attribute, NFGENMSG_LENGTH)?.readUInt32BE(0);
  const key = partTypes(number(SET.keyType) ?? 0, number(SET.keyLength) ?? 0);
  if (key === undefined || ((number(SET.flags) ?? 0) & INTERVAL) !== 0) return undefined;
  const dataType = number(SET.dataType);
  if (dataType === undefined || dataType === DATA_VERDICT) return { key, data: undefined };
  const data = partTypes(dataType, number(SET.dataLength) ?? 0);
  return data === undefined ? undefined : { key, data };
}

function partTypes(type: number, length: number): readonly PartType[] | undefined {
  const types: PartType[] = [];
  for (let rest = type; rest > 0; rest = Math.floor(rest / 2 ** TYPE_BITS)) {
    const part = rest % 2 ** TYPE_BITS;
    if (!isPartType(part)) return undefined;
    types.unshift(part);
  }
  const [first] = types;
  if (first === undefined) return undefined;
  const expected = types.length === 1 ? LENGTHS[first] : types.reduce((sum, part) => sum + padded(LENGTHS[part]), 0);
  return length === expected ? types : undefined;
}

function isPartType(type: number): type is PartType {
  return type in LENGTHS;
}

/**
 * Read the elements of an NFT_MSG_NEWSETELEM payload.
 *
 * Shape: `put` is called for each. A table has a hundred thousand, so attributes are not made into objects.
 * @throws {TypeError} for bytes that no kernel writes.
 */
export function readElements(payload: Buffer, type: NftSetType, put: (element: NftElement) => void): void {
  const list = findAttribute(payload, LIST.elements, NFGENMSG_LENGTH);
  if (list === undefined) return;
  for (let at = 0; at + HEADER_LENGTH <= list.length;) {
    const end = endOf(list, at, list.length);
    put(elementAt(list, at + HEADER_LENGTH, end, type));
    at = padded(end);
  }
}

function elementAt(bytes: Buffer, from: number, to: number, { key: keyTypes, data: dataTypes }: NftSetType): NftElement {
  let key = "*";
  let value = "";
  let comment = "";
  let counter: NftCounter | undefined;
  for (let at = from; at + HEADER_LENGTH <= to;) {
    const end = endOf(bytes, at, to);
    const inner = at + HEADER_LENGTH;
    switch (typeAt(bytes, at)) {
      case ELEMENT.key:
        key = partsText(bytes, inner, end, keyTypes);
        break;
      case ELEMENT.data:
        value = dataText(bytes, inner, end, dataTypes);
        break;
      case ELEMENT.userdata:
        comment = commentIn(bytes.subarray(inner, end));
        break;
      case ELEMENT.expression:
        counter = counterIn(bytes.subarray(inner, end));
        break;
    }
    at = padded(end);
  }
  return counter === undefined ? { key, value, comment } : { key, value, comment, counter };
}

/** Undefined: another expression, e.g. a limit. */
function counterIn(expression: Buffer): NftCounter | undefined {
  const name = findAttribute(expression, EXPRESSION.name);
  const data = findAttribute(expression, EXPRESSION.data);
  if (name === undefined || data === undefined || zeroTerminated(name) !== "counter") return undefined;
  const [packets, bytes] = [findAttribute(data, COUNTER.packets), findAttribute(data, COUNTER.bytes)];
  if (packets === undefined || bytes === undefined) return undefined;
  return { packets: Number(packets.readBigUInt64BE(0)), bytes: Number(bytes.readBigUInt64BE(0)) };
}

function dataText(bytes: Buffer, at: number, end: number, types: readonly PartType[] | undefined): string {
  if (at + HEADER_LENGTH <= end && typeAt(bytes, at) === DATA.value && types !== undefined) return partsText(bytes, at, end, types);
  const verdict = findAttribute(bytes.subarray(at, end), DATA.verdict);
  const code = verdict && findAttribute(verdict, VERDICT.code)?.readInt32BE(0);
  const word = VERDICTS.get(code ?? 1) ?? `verdict ${code}`;
  const chain = verdict && findAttribute(verdict, VERDICT.chain);
  return chain === undefined ? word : `${word} ${zeroTerminated(chain)}`;
}

function endOf(bytes: Buffer, at: number, to: number): number {
  const length = bytes.readUInt16LE(at);
  if (length < HEADER_LENGTH || at + length > to) throw new TypeError("an attribute is longer than what it is in");
  return at + length;
}

function typeAt(bytes: Buffer, at: number): number {
  return bytes.readUInt16LE(at + 2) & TYPE_MASK;
}

/** The text of the attribute at `from`, which is in one that ends at `end`. */
function partsText(bytes: Buffer, from: number, end: number, types: readonly PartType[]): string {
  const to = endOf(bytes, from, end);
  let text = "";
  let at = from + HEADER_LENGTH;
  for (const type of types) {
    if (at + LENGTHS[type] > to) throw new TypeError("a part is shorter than its type");
    text = text === "" ? partText(bytes, at, type) : `${text} . ${partText(bytes, at, type)}`;
    at += padded(LENGTHS[type]);
  }
  return text;
}

/** A number is in host order, as packets' marks and priorities and what `numgen` draws are. */
function partText(bytes: Buffer, at: number, type: PartType): string {
  switch (type) {
    case 7:
      return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
    case 8:
      return ipText(bytes.subarray(at, at + LENGTHS[8]));
    case 12:
      return PROTOCOLS[bytes.readUInt8(at)] ?? String(bytes.readUInt8(at));
    case 13:
      return String(bytes.readUInt16BE(at));
    case 4:
    case 19:
    case 23:
      return String(bytes.readUInt32LE(at));
  }
}

/** nft keeps comments as a list of type, length and value; "" where there is none. */
export function commentIn(userdata: Buffer | undefined): string {
  for (let at = 0; userdata !== undefined && at + 2 <= userdata.length;) {
    const [type, length] = [userdata.readUInt8(at), userdata.readUInt8(at + 1)];
    if (type === 0) return zeroTerminated(userdata.subarray(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return "";
}

/**
 * Read an element's key as nft writes its parts: `10.96.0.1`, `tcp`, `80`; undefined where it has other parts.
 *
 * Edges: of several parts each is padded to four bytes; a number is in host order, as packets' marks are.
 */
export function readNftKey(key: Buffer, family: IPFamily, parts: readonly NftPartKind[]): readonly string[] | undefined {
  const types = parts.map((part) => typeOf(part, family));
  const ends = types.reduce((sum, type) => sum + (types.length === 1 ? LENGTHS[type] : padded(LENGTHS[type])), 0);
  if (ends !== key.length) return undefined;
  const texts: string[] = [];
  let at = 0;
  for (const type of types) {
    if (type === 12 && PROTOCOLS[key.readUInt8(at)] === undefined) return undefined;
    texts.push(partText(key, at, type));
    at += padded(LENGTHS[type]);
  }
  return texts;
}

function typeOf(part: NftPartKind, family: IPFamily): PartType {
  if (part === "address") return family === "IPv4" ? 7 : 8;
  return part === "protocol" ? 12 : part === "port" ? 13 : 4;
}

function padded(length: number): number {
  return (length + 3) & ~3;
}
