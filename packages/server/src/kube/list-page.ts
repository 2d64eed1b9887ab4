import { ProxyError } from "@turnout/core";
import { isRawObject, isRecord, type RawObject } from "../source/raw-object.ts";

/** One page of a list. */
export interface ListPage {
  readonly items: readonly RawObject[];
  readonly revision: string;
  /** Asks for the next page; "" when there is none. */
  readonly token: string;
}

/** Read a page. @throws {ProxyError} `feed_lost` for anything else. */
export function parseList(text: string): ListPage {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw ProxyError.from(error, "feed_lost", "the list is not JSON");
  }
  const metadata = isRecord(body) && isRecord(body["metadata"]) ? body["metadata"] : {};
  const revision = metadata["resourceVersion"];
  if (!isRecord(body) || typeof revision !== "string") throw new ProxyError("feed_lost", "the answer is not a list");
  const items: readonly unknown[] = Array.isArray(body["items"]) ? body["items"] : [];
  const token = typeof metadata["continue"] === "string" ? metadata["continue"] : "";
  return { items: items.filter(isRawObject), revision, token };
}

/** Put a body together. */
export async function collect(chunks: AsyncIterable<Buffer>): Promise<string> {
  const parts: Buffer[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString("utf8");
}
