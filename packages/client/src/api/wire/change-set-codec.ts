import type { ChangeSet, NodeSettings, ServicePort, SharedRows } from "@turnout/core";
import type { Eligibility } from "../eligibility.ts";
import * as wire from "../../gen/turnout/node/v1/node.ts";
import { readNode, wireNode } from "./node-codec.ts";
import { encodeSet, packRows, SET_TAG, unpackRows, type PackedReader } from "./packed-rows.ts";
import { encodeRow, keyOf, readName, RowReader, wireName, written } from "./row-codec.ts";
import { FAMILY_WORDS, notUnderstood } from "./words.ts";

/** Bytes of an unsigned number as a varint. */
function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** Write a field's tag and the length of its value; returns where the value begins. */
function writeTag(into: Buffer, start: number, tag: number, valueBytes: number): number {
  let at = into.writeUInt8(tag, start);
  for (let rest = valueBytes; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return into.writeUInt8(rest, at);
    at = into.writeUInt8((rest % 128) + 128, at);
  }
}

/** Fields of a message that are bytes already: they are copied as they are, and nothing is made for each of them. */
class FieldList {
  /** Of each piece; 0 where that has its tags in it. */
  readonly #tags: number[] = [];
  readonly #pieces: Uint8Array[] = [];
  #bytes = 0;

  /** What all of it takes, tags included. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Add the value of a field; `tag` is the field's number × 8 + 2, below 128. */
  add(tag: number, value: Uint8Array): void {
    this.#tags.push(tag);
    this.#pieces.push(value);
    this.#bytes += 1 + varintLength(value.length) + value.length;
  }

  /** Add whole fields, tags included. */
  addFields(fields: Uint8Array): void {
    this.#tags.push(0);
    this.#pieces.push(fields);
    this.#bytes += fields.length;
  }

  /** Write all of it. */
  write(into: Buffer, start: number): void {
    let at = start;
    for (const [index, piece] of this.#pieces.entries()) {
      const tag = this.#tags[index] ?? 0;
      if (tag !== 0) at = writeTag(into, at, tag, piece.length);
      into.set(piece, at);
      at += piece.length;
    }
  }
}

/** A change set with what the node-state server says beside it. */
export interface Delivery {
  readonly changes: ChangeSet;
  /** Undefined: as before. */
  readonly eligibility: Eligibility | undefined;
  /** Of a full change set, to be sent packed: rows as most nodes have them. Rows of `changes.set` take the place of those with the same keys. */
  readonly shared?: readonly SharedRows[];
}

/** How a delivery becomes messages. */
export interface EncodeOptions {
  /** Rows of one message stay below this many bytes, one row alone excepted; default 1 MiB. */
  readonly partBytes?: number;
  /** The bytes of a row; default {@link encodeRow}. */
  readonly encode?: (row: ServicePort) => Uint8Array;
  /** The bytes of shared rows; default {@link packRows}. */
  readonly pack?: (rows: SharedRows) => Uint8Array;
  /** The bytes of rows beside shared ones; default {@link encodeSet}. */
  readonly encodeOwn?: (rows: readonly ServicePort[]) => Uint8Array;
  /** Memory for a message; default a new buffer. */
  readonly allocate?: (bytes: number) => Buffer;
}

const PART_BYTES = 1_048_576;
/** A state has fewer rows than this, whatever cluster it is of: ten times the Services Kubernetes is tested with, all ports. */
const ROWS_MAX = 5_000_000;
/** Tag bytes: field number × 8 + 2, length-delimited. */
const CHANGE_SET_TAG = 0x12;
const PACKED_TAG = 0x5a;
/** Endpoints of rows that are written at once: tens of KiB. */
const WEIGHT_MAX = 1_000;

/** The names of the rows a change set deletes: keys are `namespace/name:port/protocol`. */
function deletedName(key: string): wire.RowName {
  const slash = key.indexOf("/");
  const colon = key.indexOf(":", slash);
  const last = key.lastIndexOf("/");
  const protocol = key.slice(last + 1) as ServicePort["name"]["protocol"];
  return wireName({ namespace: key.slice(0, slash), name: key.slice(slash + 1, colon), port: key.slice(colon + 1, last), protocol });
}

/**
 * Write a delivery as one or more `WatchResponse` messages, made one at a time as they are asked for.
 *
 * Edges: rows are put in as bytes, so that those of a row that many watchers get can be shared.
 */
export function* encodeDelivery({ changes, eligibility, shared = [] }: Delivery, options: EncodeOptions = {}): Generator<Buffer, void> {
  const { partBytes = PART_BYTES, encode = encodeRow, pack = packRows, encodeOwn = encodeSet, allocate = newBuffer } = options;
  const { instance, revision, family, full, node, triggersMs } = changes;
  const common = { instance, revision, family: FAMILY_WORDS.write(family), full, set: [], packed: [] };
  const first: wire.ChangeSet = {
    ...common,
    node: node === undefined ? undefined : wireNode(node),
    delete: changes.delete.map(deletedName),
    triggeredMs: [...triggersMs],
    eligibility: eligibility === undefined ? undefined : wireEligibility(eligibility),
    more: false,
  };
  const following: wire.ChangeSet = { ...common, node: undefined, delete: [], triggeredMs: [], eligibility: undefined, more: false };
  /** Of all parts between the first and the last. */
  let between: Uint8Array | undefined;
  let isFirst = true;
  let part = new FieldList();
  for (const [tag, bytes] of fieldsOf({ changes, eligibility, shared }, { encode, pack, encodeOwn })) {
    if (part.bytes > 0 && part.bytes + bytes.length > partBytes) {
      yield message(isFirst ? headBytes(first, true) : (between ??= headBytes(following, true)), part, allocate);
      isFirst = false;
      part = new FieldList();
    }
    if (tag === undefined) part.addFields(bytes);
    else part.add(tag, bytes);
  }
  yield message(headBytes(isFirst ? first : following, false), part, allocate);
}

/** The rows of a delivery, each with its tag, or without one where it is in the bytes. */
function* fieldsOf(
  { changes: { set }, shared = [] }: Delivery,
  { encode, pack, encodeOwn }: Required<Pick<EncodeOptions, "encode" | "pack" | "encodeOwn">>,
): Generator<readonly [tag: number | undefined, bytes: Uint8Array]> {
  for (const rows of shared) yield [PACKED_TAG, pack(rows)];
  if (shared.length === 0) for (const row of set) yield [SET_TAG, encode(row)];
  // Nobody else gets these, so they need not be there one by one.
  else for (const rows of byWeight(set)) yield [undefined, encodeOwn(rows)];
}

function* byWeight(rows: readonly ServicePort[]): Generator<readonly ServicePort[]> {
  let some: ServicePort[] = [];
  let weight = 0;
  for (const row of rows) {
    some.push(row);
    weight += row.endpoints.length + 1;
    if (weight < WEIGHT_MAX) continue;
    yield some;
    [some, weight] = [[], 0];
  }
  if (some.length > 0) yield some;
}

function headBytes(head: wire.ChangeSet, more: boolean): Uint8Array {
  return written((writer) => void wire.ChangeSet.encode({ ...head, more }, writer));
}

function newBuffer(bytes: number): Buffer {
  return Buffer.allocUnsafe(bytes);
}

/** A thousand watchers get ten thousand rows each: they are copied in as they are. */
function message(head: Uint8Array, rows: FieldList, allocate: (bytes: number) => Buffer): Buffer {
  const length = head.length + rows.bytes;
  const whole = allocate(1 + varintLength(length) + length);
  const at = writeTag(whole, 0, CHANGE_SET_TAG, length);
  whole.set(head, at);
  rows.write(whole, at + head.length);
  return whole;
}

/** What has come of a change set. */
interface Assembly {
  readonly first: wire.ChangeSet;
  readonly set: ServicePort[];
  /** Rows as most nodes have them. */
  readonly packed: ServicePort[];
  readonly delete: string[];
  readonly triggersMs: number[];
  parts: number;
}

/** Puts the parts of one family's change sets together again; each is read as it comes. */
export class DeliveryReader {
  readonly #family: ChangeSet["family"];
  readonly #settings: NodeSettings;
  readonly #rows: RowReader;
  readonly #packed: PackedReader | undefined;
  #partial: Assembly | undefined;

  /** `packed` is shared with readers of other nodes' states. */
  constructor(family: ChangeSet["family"], settings: NodeSettings, packed?: PackedReader) {
    this.#family = family;
    this.#settings = settings;
    this.#packed = packed;
    this.#rows = new RowReader(family);
  }

  /** Forget parts whose rest won't come. */
  reset(): void {
    this.#partial = undefined;
  }

  /** Take a part; gives the delivery when it was the last one. @throws {ProxyError} `feed_lost` for what can't be. */
  receive(part: wire.ChangeSet): Delivery | undefined {
    const partial = (this.#partial ??= { first: part, set: [], packed: [], delete: [], triggersMs: [], parts: 0 });
    const { first } = partial;
    if (part.instance !== first.instance || part.revision !== first.revision || part.full !== first.full) {
      throw notUnderstood("parts of different change sets as one", part.instance);
    }
    for (const row of part.set) partial.set.push(this.#rows.read(row));
    for (const packed of part.packed) for (const row of this.#unpack(packed)) partial.packed.push(row);
    for (const name of part.delete) partial.delete.push(keyOf(readName(name)));
    for (const ms of part.triggeredMs) partial.triggersMs.push(ms);
    partial.parts += 1;
    if (partial.parts + partial.set.length + partial.packed.length + partial.delete.length > ROWS_MAX)
      throw notUnderstood("a change set without end", part.instance);
    if (part.more) return undefined;
    this.reset();
    const { instance, revision, full, node, eligibility } = first;
    return {
      changes: {
        instance,
        revision,
        family: this.#family,
        full,
        ...(node === undefined ? {} : { node: readNode(node, this.#family, this.#settings) }),
        set: withOwn(partial.packed, partial.set),
        delete: partial.delete,
        triggersMs: partial.triggersMs,
      },
      eligibility: eligibility === undefined ? undefined : readEligibility(eligibility),
    };
  }

  #unpack(packed: wire.PackedRows): readonly ServicePort[] {
    const read = (): readonly ServicePort[] => unpackRows(packed).map((row) => this.#rows.read(row));
    return this.#packed === undefined ? read() : this.#packed.rowsOf(packed, this.#family, read);
  }
}

/** Put a node's own rows in the place of those that most nodes have. */
function withOwn(packed: readonly ServicePort[], own: readonly ServicePort[]): readonly ServicePort[] {
  if (packed.length === 0) return own;
  const keys = new Set(own.map(({ key }) => key));
  return [...packed.filter(({ key }) => !keys.has(key)), ...own];
}

function wireEligibility({ isEligible, reason, isAwaited = false }: Eligibility): wire.Eligibility {
  return { eligible: isEligible, reason, nodeAwaited: isAwaited };
}

function readEligibility({ eligible, reason, nodeAwaited }: wire.Eligibility): Eligibility {
  return { isEligible: eligible, reason, ...(nodeAwaited ? { isAwaited: true } : {}) };
}
