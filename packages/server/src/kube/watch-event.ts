import { parseJSON, ProxyError, type ObjectKind } from "@turnout/core";
import { isRawObject, isRecord, type RawObject } from "../source/raw-object.ts";
import { refusalOf, type Refusal } from "./refusal.ts";

/** One event of a watch, read. */
export type WatchEvent =
  | { readonly type: "put"; readonly isAdded: boolean; readonly object: RawObject; readonly revision: string }
  | { readonly type: "delete"; readonly object: RawObject; readonly revision: string }
  | { readonly type: "bookmark"; readonly revision: string; readonly endsInitialEvents: boolean }
  | { readonly type: "error"; readonly refusal: Refusal };

const INITIAL_EVENTS_END = "k8s.io/initial-events-end";

/**
 * Read one line of a watch of `kind`.
 *
 * @throws {ProxyError} `feed_lost` for anything that isn't a watch event: the stream can't be trusted from there on.
 */
export function parseWatchEvent(line: string, kind: ObjectKind): WatchEvent {
  let event: unknown;
  try {
    event = parseJSON(line);
  } catch (error) {
    throw ProxyError.from(error, "feed_lost", "the watch sent a line that is not JSON");
  }
  if (!isRecord(event)) throw new ProxyError("feed_lost", "the watch sent a line that is not an event");
  const { type, object } = event;
  if (type === "ERROR") return { type: "error", refusal: refusalOf(object) };
  if (type === "BOOKMARK") return bookmark(object);
  if (!isRawObject(object)) throw new ProxyError("feed_lost", "the watch sent an event without a named object");
  if (object.kind !== kind) throw new ProxyError("feed_lost", `the watch sent an object that is no ${kind}`);
  const revision = object.metadata.resourceVersion;
  if (typeof revision !== "string" || revision === "")
    throw new ProxyError("feed_lost", "the watch sent an object without resourceVersion");
  if (type === "ADDED" || type === "MODIFIED") return { type: "put", isAdded: type === "ADDED", object, revision };
  if (type === "DELETED") return { type: "delete", object, revision };
  throw new ProxyError("feed_lost", "the watch sent an event of a type that Kubernetes doesn't have");
}

function bookmark(object: unknown): WatchEvent {
  const metadata = isRecord(object) && isRecord(object["metadata"]) ? object["metadata"] : {};
  const revision = metadata["resourceVersion"];
  if (typeof revision !== "string" || revision === "")
    throw new ProxyError("feed_lost", "the watch sent a bookmark without resourceVersion");
  const { annotations } = metadata;
  const endsInitialEvents = isRecord(annotations) && annotations[INITIAL_EVENTS_END] === "true";
  return { type: "bookmark", revision, endsInitialEvents };
}
