import { ipBytes } from "../conntrack/conntrack.ts";
import { NLM_F } from "../message.ts";
import { NFGENMSG_LENGTH, NFT_SUBSYSTEM } from "./nft-changes.ts";
import type { NftElements, NftElementWrite, NftPartKind } from "../../nft-statement/nft-statement.ts";

// Message types, attributes, verdicts. @source linux/netfilter/nfnetlink.h, nf_tables.h
const BATCH = { begin: 0x10, end: 0x11 } as const;
const MESSAGES = { add: (NFT_SUBSYSTEM << 8) | 12, delete: (NFT_SUBSYSTEM << 8) | 14 } as const;
const DELETE_TABLE = (NFT_SUBSYSTEM << 8) | 2;
const TABLE_NAME = 1;
const LIST = { table: 1, set: 2, elements: 3, element: 1 } as const;
const ELEMENT = { key: 1, data: 2, userdata: 6 } as const;
const DATA = { value: 1, verdict: 2 } as const;
const VERDICT = { code: 1, chain: 2 } as const;
const VERDICTS: Readonly<Record<string, number>> = { drop: 0, goto: -4 };
const CREATE = 0x400;
const NESTED = 0x8000;
const FAMILIES = { inet: 1, ip: 2, ip6: 10 } as const;
const PROTOCOLS: Readonly<Record<string, number>> = { tcp: 6, udp: 17, sctp: 132 };
const MESSAGE_HEADER = 16;
const ATTRIBUTE_HEADER = 4;
/** An attribute's length has 16 bits; this much leaves room for one more element. */
const LIST_BYTES_MAX = 60_000;
/** Longest element there is: two IPv6 addresses, a comment and the longest name of a chain. */
const ELEMENT_BYTES_MAX = 1_024;
const SEPARATOR = " . ";
/** What the data of a map of endpoints consists of. */
const ENDPOINT: readonly NftPartKind[] = ["address", "port"];
const [ZERO, DOT, SPACE] = [0x30, 0x2e, 0x20] as const;

/** A transaction in the kernel's bytes, to be sent as one datagram. */
export interface NftBatch {
  readonly bytes: Buffer;
  /** The statement that a message was made of, by its sequence number. */
  readonly statements: readonly (NftElements | undefined)[];
}

/** Write elements as one transaction. Pure. */
export function encodeNftBatch(statements: readonly NftElements[]): NftBatch {
  const writer = new BatchWriter(statements.reduce((sum, { elements }) => sum + elements.length, 0));
  return writer.write(statements);
}

/** Write the deletion of a table, with everything in it, as one transaction. Pure. */
export function encodeTableDeletion(family: keyof typeof FAMILIES, table: string): NftBatch {
  return new BatchWriter(0).writeTableDeletion(family, table);
}

/** Writes into one buffer, because a load has a hundred thousand elements. */
class BatchWriter {
  #bytes: Buffer;
  /** The same bytes; several times as fast for numbers. */
  #view: DataView;
  #at = 0;
  readonly #statements: (NftElements | undefined)[] = [];
  /** The key whose bytes were written last, and where: elements of a list share it. */
  #lastKey = "";
  #lastKeyAt = 0;
  #lastKeyLength = 0;

  constructor(elements: number) {
    // Not from Buffer's shared pool: C reads it while this thread goes on.
    this.#bytes = Buffer.allocUnsafeSlow(4_096 + elements * 96);
    this.#view = viewOf(this.#bytes);
  }

  write(statements: readonly NftElements[]): NftBatch {
    return this.#batch(() => {
      for (const statement of statements) {
        for (let from = 0; from < statement.elements.length;) from = this.#elements(statement, from);
      }
    });
  }

  writeTableDeletion(family: keyof typeof FAMILIES, table: string): NftBatch {
    return this.#batch(() => {
      const message = this.#message(DELETE_TABLE, 0, FAMILIES[family], 0, undefined);
      this.#text(TABLE_NAME, table);
      this.#close(message);
    });
  }

  #batch(fill: () => void): NftBatch {
    this.#close(this.#message(BATCH.begin, 0, 0, NFT_SUBSYSTEM, undefined));
    fill();
    this.#close(this.#message(BATCH.end, 0, 0, NFT_SUBSYSTEM, undefined));
    return { bytes: this.#bytes.subarray(0, this.#at), statements: this.#statements };
  }

  /** Write a message of as many elements as fit, from an index on; returns the first that did not. */
  #elements(statement: NftElements, from: number): number {
    const { verb, family, table, set, parts, elements } = statement;
    const message = this.#message(MESSAGES[verb], verb === "add" ? CREATE : 0, FAMILIES[family], 0, statement);
    this.#text(LIST.table, table);
    this.#text(LIST.set, set);
    const list = this.#open(LIST.elements | NESTED);
    const end = this.#at + LIST_BYTES_MAX;
    this.#lastKey = "";
    let index = from;
    for (; index < elements.length && this.#at < end; index++) this.#element(elements[index] as NftElementWrite, parts);
    this.#end(list);
    this.#close(message);
    return index;
  }

  #element({ key, place, value, comment }: NftElementWrite, parts: readonly NftPartKind[]): void {
    this.#space(ELEMENT_BYTES_MAX);
    const element = this.#open(LIST.element | NESTED);
    const keyed = this.#open(ELEMENT.key | NESTED);
    const keyBytes = this.#open(DATA.value);
    this.#key(key, parts);
    if (place !== undefined) this.#number(place);
    this.#end(keyBytes);
    this.#end(keyed);
    if (value !== "") this.#data(value);
    if (comment !== "") this.#comment(comment);
    this.#end(element);
  }

  #key(key: string, parts: readonly NftPartKind[]): void {
    if (key === this.#lastKey) {
      this.#bytes.copyWithin(this.#at, this.#lastKeyAt, this.#lastKeyAt + this.#lastKeyLength);
      this.#at += this.#lastKeyLength;
      return;
    }
    const start = this.#at;
    this.#parts(key, parts);
    this.#lastKey = key;
    this.#lastKeyAt = start;
    this.#lastKeyLength = this.#at - start;
  }

  #data(value: string): void {
    const data = this.#open(ELEMENT.data | NESTED);
    const space = value.indexOf(" ");
    const code = VERDICTS[space < 0 ? value : value.slice(0, space)];
    const inner = this.#open(code === undefined ? DATA.value : DATA.verdict | NESTED);
    if (code === undefined) this.#parts(value, ENDPOINT);
    else {
      const coded = this.#open(VERDICT.code);
      this.#view.setInt32(this.#at, code);
      this.#at += 4;
      this.#end(coded);
      if (space >= 0) this.#text(VERDICT.chain, value.slice(space + 1));
    }
    this.#end(inner);
    this.#end(data);
  }

  /** Nft's own way to keep one: type 0, a length, a text that ends in a zero byte. */
  #comment(comment: string): void {
    const userdata = this.#open(ELEMENT.userdata);
    this.#bytes[this.#at++] = 0;
    this.#bytes[this.#at++] = comment.length + 1;
    this.#zeroEnded(comment);
    this.#end(userdata);
  }

  /** Of several parts each is padded to four bytes. */
  #parts(text: string, parts: readonly NftPartKind[]): void {
    let from = 0;
    for (let index = 0; from < text.length; index++) {
      const found = text.indexOf(SEPARATOR, from);
      const to = found < 0 ? text.length : found;
      this.#part(text, from, to, parts[index] ?? "number");
      from = to + SEPARATOR.length;
    }
  }

  #part(text: string, from: number, to: number, kind: NftPartKind): void {
    switch (kind) {
      case "address":
        return this.#address(text, from, to);
      case "protocol":
        this.#bytes[this.#at++] = PROTOCOLS[text.slice(from, to)] ?? 0;
        break;
      case "port":
        this.#view.setUint16(this.#at, decimal(text, from, to));
        this.#at += 2;
        break;
      case "number":
        this.#number(decimal(text, from, to));
    }
    this.#pad();
  }

  #address(text: string, from: number, to: number): void {
    if (text.indexOf(":", from) >= 0 && text.indexOf(":", from) < to) {
      this.#at += ipBytes(text.slice(from, to)).copy(this.#bytes, this.#at);
      return;
    }
    let byte = 0;
    for (let at = from; at < to; at++) {
      const code = text.charCodeAt(at);
      if (code !== DOT) byte = byte * 10 + code - ZERO;
      else {
        this.#bytes[this.#at++] = byte;
        byte = 0;
      }
    }
    this.#bytes[this.#at++] = byte;
  }

  /** Begin a message; gives where, for {@link BatchWriter.#close}. */
  #message(type: number, flags: number, family: number, resource: number, statement: NftElements | undefined): number {
    this.#space(ELEMENT_BYTES_MAX);
    const start = this.#at;
    const sequence = this.#statements.push(statement) - 1;
    this.#view.setUint16(start + 4, type, true);
    this.#view.setUint16(start + 6, NLM_F.request | flags, true);
    this.#view.setUint32(start + 8, sequence, true);
    this.#view.setUint32(start + 12, 0, true);
    // Family, version 0, the resource in network order.
    this.#view.setUint32(start + MESSAGE_HEADER, (family << 24) | resource);
    this.#at = start + MESSAGE_HEADER + NFGENMSG_LENGTH;
    return start;
  }

  #close(message: number): void {
    this.#view.setUint32(message, this.#at - message, true);
  }

  /** Begin an attribute; gives where, for {@link BatchWriter.#end}. */
  #open(type: number): number {
    const start = this.#at;
    this.#view.setUint16(start + 2, type, true);
    this.#at = start + ATTRIBUTE_HEADER;
    return start;
  }

  #end(start: number): void {
    this.#view.setUint16(start, this.#at - start, true);
    this.#pad();
  }

  #text(type: number, text: string): void {
    const start = this.#open(type);
    this.#zeroEnded(text);
    this.#end(start);
  }

  #zeroEnded(text: string): void {
    this.#at += this.#bytes.write(text, this.#at, "latin1");
    this.#bytes[this.#at++] = 0;
  }

  #number(value: number): void {
    this.#view.setUint32(this.#at, value, true);
    this.#at += 4;
  }

  #pad(): void {
    while (this.#at % 4 !== 0) this.#bytes[this.#at++] = 0;
  }

  #space(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(2 * this.#bytes.length + bytes);
    this.#bytes.copy(larger, 0, 0, this.#at);
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }
}

function viewOf({ buffer, byteOffset, byteLength }: Buffer): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

function decimal(text: string, from: number, to: number): number {
  let value = 0;
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code !== SPACE) value = value * 10 + code - ZERO;
  }
  return value;
}
