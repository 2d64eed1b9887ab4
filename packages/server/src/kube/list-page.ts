import { parseJSON, ProxyError, type ObjectKind } from "@turnout/core";
import { isRawObject, isRecord, type RawObject } from "../source/raw-object.ts";

/** What a page of a list says besides its items. */
export interface ListPage {
  readonly revision: string;
  /** Asks for the next page; "" when there is none. */
  readonly token: string;
}

/** Bytes of one item, and of all that is no item. etcd takes objects of 1.5 MB unless told otherwise; as JSON they are a few times as long. */
const ITEM_BYTES_MAX = 64 * 1024 * 1024;
/** Bytes of an answer that is no list. */
const ANSWER_BYTES_MAX = 1024 * 1024;

/** Bytes that JSON consists of. */
const CODE = { quote: 0x22, backslash: 0x5c, openBracket: 0x5b, openBrace: 0x7b, closeBracket: 0x5d, closeBrace: 0x7d } as const;
/** Levels of braces and brackets: within the list's own, and within that of `items`. */
const IN_LIST = 1;
const IN_ITEMS = 2;
/** `"items": [` is found within so many. */
const KEY_CHARACTERS_MAX = 64;

/** Cuts the text of a list into its items, and what remains without them: the list is in memory item by item, whatever its length. */
class ListSplitter {
  readonly #bytesMax: number;
  /** What is no item. */
  #rest = "";
  #item: Buffer[] = [];
  #bytes = 0;
  #level = 0;
  #isInString = false;
  #isEscaped = false;
  #isInItems = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** The list without items; while they come, what is before them. */
  get rest(): string {
    return this.#rest;
  }

  /** Take a chunk; gives the items it completes, one at a time. @throws {ProxyError} `limit_reached` for an item that does not end. */
  *push(chunk: Buffer): Generator<string, void> {
    let start = 0;
    for (let at = 0; at < chunk.length; at++) {
      const code = chunk[at];
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false;
        else if (code === CODE.backslash) this.#isEscaped = true;
        else if (code === CODE.quote) this.#isInString = false;
      } else if (code === CODE.quote) {
        this.#isInString = true;
      } else if (code === CODE.openBrace || code === CODE.openBracket) {
        if (this.#isInItems && this.#level === IN_ITEMS) start = at;
        this.#level++;
        if (this.#isInItems || code === CODE.openBrace || this.#level !== IN_ITEMS) continue;
        this.#keep(chunk.subarray(start, at + 1));
        start = at + 1;
        this.#isInItems = /[{,]\s*"items"\s*:\s*\[$/.test(this.#rest.slice(-KEY_CHARACTERS_MAX));
      } else if (code === CODE.closeBrace || code === CODE.closeBracket) {
        this.#level--;
        if (!this.#isInItems) continue;
        if (this.#level === IN_LIST) this.#isInItems = false;
        else if (this.#level === IN_ITEMS) yield this.#finish(chunk.subarray(start, at + 1));
        else continue;
        start = this.#isInItems ? at + 1 : at;
      }
    }
    if (!this.#isInItems || this.#level > IN_ITEMS) this.#keep(chunk.subarray(start));
  }

  #finish(end: Buffer): string {
    const item = this.#item.length === 0 ? end : Buffer.concat([...this.#item, end]);
    this.#item = [];
    this.#bytes = 0;
    return item.toString("utf8");
  }

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > this.#bytesMax) throw new ProxyError("limit_reached", `an item of the list has more than ${this.#bytesMax} bytes`);
    if (this.#isInItems) this.#item.push(part);
    else this.#rest += part.toString("latin1");
  }
}

/**
 * Read a page of a list as it comes, and hand on each of its items.
 *
 * Edges: an item without a name is left out. Anything but a list of `kind` is no empty list: what is known would be taken away.
 * Where the list's kind follows its items (keys in alphabetical order), an item without a kind is kept until then.
 * @throws {ProxyError} `feed_lost` for anything else, `limit_reached` for an item of more than `itemBytesMax`, and for so many bytes of items that are kept.
 */
export async function readList(
  chunks: AsyncIterable<Buffer>,
  kind: ObjectKind,
  take: (object: RawObject) => void,
  itemBytesMax: number = ITEM_BYTES_MAX,
): Promise<ListPage> {
  const splitter = new ListSplitter(itemBytesMax);
  const kept: RawObject[] = [];
  let keptBytes = 0;
  let hasKind: boolean | undefined;
  for await (const chunk of chunks) {
    for (const text of splitter.push(chunk)) {
      // Objects of another kind must not be taken for ours.
      hasKind ??= saysKind(parsed(`${splitter.rest}]}`), kind);
      const item = parsed(text);
      if (!isRawObject(item)) continue;
      if (!hasKind && item.kind === undefined) {
        keptBytes += text.length;
        if (keptBytes > itemBytesMax)
          throw new ProxyError(
            "limit_reached",
            `more than ${itemBytesMax} bytes of items without a kind are before the kind of their list`,
          );
        kept.push(item);
      } else if (hasKind || item.kind === kind) take(item);
      else throw noList(kind);
    }
  }
  const body = kindOf(parsed(splitter.rest), kind);
  const metadata = isRecord(body["metadata"]) ? body["metadata"] : {};
  const revision = metadata["resourceVersion"];
  if (typeof revision !== "string" || revision === "") throw noList(kind);
  // Go writes an empty list as null where nobody made it.
  if (!Array.isArray(body["items"] ?? [])) throw new ProxyError("feed_lost", "the list has no items");
  for (const item of kept) take(item);
  return { revision, token: typeof metadata["continue"] === "string" ? metadata["continue"] : "" };
}

/** Whether the kind of a list is known before its items. @throws {ProxyError} `feed_lost` for another kind. */
function saysKind(before: unknown, kind: ObjectKind): boolean {
  if (isRecord(before) && before["kind"] === undefined) return false;
  kindOf(before, kind);
  return true;
}

function parsed(text: string): unknown {
  try {
    return parseJSON(text);
  } catch (error) {
    throw ProxyError.from(error, "feed_lost", "the list is not JSON");
  }
}

function kindOf(body: unknown, kind: ObjectKind): Readonly<Record<string, unknown>> {
  if (!isRecord(body) || body["kind"] !== `${kind}List`) throw noList(kind);
  return body;
}

function noList(kind: ObjectKind): ProxyError {
  return new ProxyError("feed_lost", `the answer is no list of ${kind}s`);
}

/** Put a body together. @throws {ProxyError} `limit_reached` for one of more than `bytesMax`. */
export async function collect(chunks: AsyncIterable<Buffer>, bytesMax: number = ANSWER_BYTES_MAX): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new ProxyError("limit_reached", `the answer has more than ${bytesMax} bytes`);
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString("utf8");
}
