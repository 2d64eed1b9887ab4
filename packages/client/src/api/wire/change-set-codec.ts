import type { ChangeSet, NodeSettings, ServicePort } from "@turnout/core";
import type { Eligibility } from "../eligibility.ts";
import * as wire from "../../gen/turnout/node/v1/node.ts";
import { readNode, wireNode } from "./node-codec.ts";
import { encodeRow, keyOf, readName, RowReader, wireName } from "./row-codec.ts";
import { FAMILY_WORDS, notUnderstood } from "./words.ts";

/** A change set with what the node-state server says beside it. */
export interface Delivery {
  readonly changes: ChangeSet;
  /** Undefined: as before. */
  readonly eligibility: Eligibility | undefined;
}

/** How a delivery becomes messages. */
export interface EncodeOptions {
  /** Rows of one message stay below this many bytes, one row alone excepted; default 1 MiB. */
  readonly partBytes?: number;
  /** The bytes of a row; default {@link encodeRow}. */
  readonly encode?: (row: ServicePort) => Uint8Array;
}

const PART_BYTES = 1_048_576;
/** A state has fewer rows than this, whatever cluster it is of: ten times the Services Kubernetes is tested with, all ports. */
const ROWS_MAX = 5_000_000;
/** Tag bytes: field number × 8 + 2, length-delimited. */
const CHANGE_SET_TAG = 0x12;
const SET_TAG = 0x32;

/** The names of the rows a change set deletes: keys are `namespace/name:port/protocol`. */
function deletedName(key: string): wire.RowName {
  const slash = key.indexOf("/");
  const colon = key.indexOf(":", slash);
  const last = key.lastIndexOf("/");
  const protocol = key.slice(last + 1) as ServicePort["name"]["protocol"];
  return wireName({ namespace: key.slice(0, slash), name: key.slice(slash + 1, colon), port: key.slice(colon + 1, last), protocol });
}

/** Bytes of an unsigned number as a varint. */
function varintLength(value: number): number {
  let length = 1;
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++;
  return length;
}

/** Write a field that has a length in front; returns where it ends. */
function writeField(into: Buffer, start: number, tag: number, bytesLength: number): number {
  let at = into.writeUInt8(tag, start);
  for (let rest = bytesLength; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return into.writeUInt8(rest, at);
    at = into.writeUInt8((rest % 128) + 128, at);
  }
}

/**
 * Write a delivery as one or more `WatchResponse` messages, made one at a time as they are asked for.
 *
 * Edges: rows are put in as bytes, so that those of a row that many watchers get can be shared.
 */
export function* encodeDelivery({ changes, eligibility }: Delivery, options: EncodeOptions = {}): Generator<Buffer, void> {
  const { partBytes = PART_BYTES, encode = encodeRow } = options;
  const { instance, revision, family, full, node, set, triggersMs } = changes;
  const common = { instance, revision, family: FAMILY_WORDS.write(family), full, set: [] };
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
  let rows: Uint8Array[] = [];
  let size = 0;
  for (const row of set) {
    const bytes = encode(row);
    if (size > 0 && size + bytes.length > partBytes) {
      yield message(isFirst ? headBytes(first, true) : (between ??= headBytes(following, true)), rows, size);
      isFirst = false;
      [rows, size] = [[], 0];
    }
    rows.push(bytes);
    size += 1 + varintLength(bytes.length) + bytes.length;
  }
  yield message(headBytes(isFirst ? first : following, false), rows, size);
}

function headBytes(head: wire.ChangeSet, more: boolean): Uint8Array {
  return wire.ChangeSet.encode({ ...head, more }).finish();
}

/** A thousand watchers get ten thousand rows each: rows are copied in as they are, and nothing is made for each of them. */
function message(head: Uint8Array, rows: readonly Uint8Array[], rowBytes: number): Buffer {
  const length = head.length + rowBytes;
  const whole = Buffer.allocUnsafe(1 + varintLength(length) + length);
  let at = writeField(whole, 0, CHANGE_SET_TAG, length);
  whole.set(head, at);
  at += head.length;
  for (const row of rows) {
    at = writeField(whole, at, SET_TAG, row.length);
    whole.set(row, at);
    at += row.length;
  }
  return whole;
}

/** What has come of a change set. */
interface Assembly {
  readonly first: wire.ChangeSet;
  readonly set: ServicePort[];
  readonly delete: string[];
  readonly triggersMs: number[];
  parts: number;
}

/** Puts the parts of one family's change sets together again; each is read as it comes. */
export class DeliveryReader {
  readonly #family: ChangeSet["family"];
  readonly #settings: NodeSettings;
  readonly #rows: RowReader;
  #partial: Assembly | undefined;

  constructor(family: ChangeSet["family"], settings: NodeSettings) {
    this.#family = family;
    this.#settings = settings;
    this.#rows = new RowReader(family);
  }

  /** Forget parts whose rest won't come. */
  reset(): void {
    this.#partial = undefined;
  }

  /** Take a part; gives the delivery when it was the last one. @throws {ProxyError} `feed_lost` for what can't be. */
  receive(part: wire.ChangeSet): Delivery | undefined {
    const partial = (this.#partial ??= { first: part, set: [], delete: [], triggersMs: [], parts: 0 });
    const { first } = partial;
    if (part.instance !== first.instance || part.revision !== first.revision || part.full !== first.full) {
      throw notUnderstood("parts of different change sets as one", part.instance);
    }
    for (const row of part.set) partial.set.push(this.#rows.read(row));
    for (const name of part.delete) partial.delete.push(keyOf(readName(name)));
    for (const ms of part.triggeredMs) partial.triggersMs.push(ms);
    partial.parts += 1;
    if (partial.parts + partial.set.length + partial.delete.length > ROWS_MAX)
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
        set: partial.set,
        delete: partial.delete,
        triggersMs: partial.triggersMs,
      },
      eligibility: eligibility === undefined ? undefined : readEligibility(eligibility),
    };
  }
}

function wireEligibility({ isEligible, reason, isAwaited = false }: Eligibility): wire.Eligibility {
  return { eligible: isEligible, reason, nodeAwaited: isAwaited };
}

function readEligibility({ eligible, reason, nodeAwaited }: wire.Eligibility): Eligibility {
  return { isEligible: eligible, reason, ...(nodeAwaited ? { isAwaited: true } : {}) };
}
