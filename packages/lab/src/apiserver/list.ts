import { objectKey, type ApiObject } from "./api-object.ts";
import type { ObjectStore } from "./object-store.ts";
import { apiVersionOf, type Route } from "./resources.ts";
import { parseFieldSelector, parseLabelSelector, type Matcher } from "./selectors.ts";
import { expired, refuse, Refusal } from "./status.ts";

/** The body of a list; its items carry no kind and apiVersion of their own, as in Kubernetes. */
export interface ListBody {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly unknown[];
}

interface Position {
  readonly revision: number;
  /** Key of the last object that was sent. */
  readonly after: string;
}

/** Make the predicate of a request: its namespace, name, and both selectors. @throws {Refusal} */
export function matcherFor(route: Route, query: URLSearchParams): Matcher {
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "", route.resource);
  return (object) => {
    if (route.namespace !== "" && object.metadata.namespace !== route.namespace) return false;
    if (route.name !== undefined && object.metadata.name !== route.name) return false;
    return labels(object) && fields(object);
  };
}

/**
 * Answer a list.
 *
 * Shape: pages of `limit` from one revision; a token that can't be read is a 400, one of a compacted revision a 410.
 * Edges: resourceVersion=0 is served whole, whatever the limit, as the watch cache does it.
 * @throws {Refusal}
 */
export function listObjects(store: ObjectStore, route: Route, query: URLSearchParams): ListBody {
  const matches = matcherFor(route, query);
  const { revision, after } = startOf(store, query);
  const all = store.listAt(route.resource.kind, revision);
  if (all === undefined) throw new Refusal(expired("The provided continue parameter is too old"));
  const rest = all.filter((object) => keyOf(object) > after && matches(object));
  const limit = query.get("resourceVersion") === "0" ? 0 : Number(query.get("limit") ?? "0");
  const page = limit > 0 ? rest.slice(0, limit) : rest;
  const last = page.at(-1);
  const more = last !== undefined && page.length < rest.length;
  const token = more ? { continue: encodePosition({ revision, after: keyOf(last) }) } : {};
  return {
    kind: `${route.resource.kind}List`,
    apiVersion: apiVersionOf(route.resource),
    metadata: { resourceVersion: String(revision), ...token },
    items: page.map(({ kind: _kind, apiVersion: _apiVersion, ...item }) => item),
  };
}

/** Read a revision that a client names. @throws {Refusal} 400 when it is none, 504 when it lies in the future. */
export function revisionOf(text: string, current: number): number {
  const revision = Number(text);
  if (!Number.isSafeInteger(revision) || revision < 0) refuse(400, `resourceVersion: Invalid value: "${text}"`);
  const details = { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }], retryAfterSeconds: 1 };
  if (revision > current) refuse(504, `Too large resource version: ${revision}, current: ${current}`, { details });
  return revision;
}

function startOf(store: ObjectStore, query: URLSearchParams): Position {
  const token = query.get("continue") ?? "";
  const wanted = query.get("resourceVersion") ?? "";
  if (token === "") {
    revisionOf(wanted, store.revision);
    return { revision: store.revision, after: "" };
  }
  if (wanted !== "" && wanted !== "0") refuse(400, "specifying resource version is not allowed when using continue");
  return decodePosition(token) ?? refuse(400, "continue key is not valid");
}

function keyOf(object: ApiObject): string {
  return objectKey(object.metadata.namespace ?? "", object.metadata.name);
}

function encodePosition(position: Position): string {
  return Buffer.from(JSON.stringify(position)).toString("base64url");
}

function decodePosition(token: string): Position | undefined {
  const match = /^\{"revision":(\d+),"after":"([^"]*)"\}$/.exec(Buffer.from(token, "base64url").toString());
  return match === null ? undefined : { revision: Number(match[1]), after: match[2] ?? "" };
}
