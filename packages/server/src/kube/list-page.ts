import { ProxyError, type ObjectKind } from "@turnout/core";
import { isRawObject, isRecord, type RawObject } from "../source/raw-object.ts";

/** One page of a list. */
export interface ListPage {
  readonly items: readonly RawObject[];
  readonly revision: string;
  /** Asks for the next page; "" when there is none. */
  readonly token: string;
}

/**
 * Bytes of a list, or of a page of one: V8 has no longer strings than 512 MiB.
 * 250,000 endpoints are about 100 MB.
 */
const LIST_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Read a page.
 *
 * Edges: an item without a name is left out. Anything but a list of `kind` is no empty list: what is known would be taken away.
 * @throws {ProxyError} `feed_lost` for anything else.
 */
export function parseList(text: string, kind: ObjectKind): ListPage {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw ProxyError.from(error, "feed_lost", "the list is not JSON");
  }
  const metadata = isRecord(body) && isRecord(body["metadata"]) ? body["metadata"] : {};
  const revision = metadata["resourceVersion"];
  if (!isRecord(body) || body["kind"] !== `${kind}List` || typeof revision !== "string" || revision === "") {
    throw new ProxyError("feed_lost", `the answer is no list of ${kind}s`);
  }
  // Go writes an empty list as null where nobody made it.
  const items: unknown = body["items"] ?? [];
  if (!Array.isArray(items)) throw new ProxyError("feed_lost", "the list has no items");
  const token = typeof metadata["continue"] === "string" ? metadata["continue"] : "";
  return { items: items.filter(isRawObject), revision, token };
}

/** Put a body together. @throws {ProxyError} `limit_reached` for one of more than `bytesMax`. */
export async function collect(chunks: AsyncIterable<Buffer>, bytesMax: number = LIST_BYTES_MAX): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new ProxyError("limit_reached", `the list has more than ${bytesMax} bytes`);
    parts.push(chunk);
  }
  return Buffer.concat(parts).toString("utf8");
}
