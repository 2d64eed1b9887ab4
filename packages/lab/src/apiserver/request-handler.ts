import type { IncomingMessage, ServerResponse } from "node:http";
import { buffer } from "node:stream/consumers";
import { objectKey } from "./api-object.ts";
import type { Faults, Misbehaviour, Verb } from "./faults.ts";
import { listObjects, matcherFor, revisionOf } from "./list.ts";
import type { ObjectStore } from "./object-store.ts";
import { routeFor, type Route, type ServedKind } from "./resources.ts";
import { expired, failure, refuse, Refusal, type StatusBody } from "./status.ts";
import { WatchStream } from "./watch-stream.ts";
import { create } from "./writes.ts";

/** What a request is answered from. */
export interface HandlerContext {
  readonly store: ObjectStore;
  readonly faults: Faults;
  readonly nowMs: () => number;
  /** Kinds that are not served at all. */
  readonly without: readonly ServedKind[];
  /** What `/version` says. */
  readonly version: string;
  /** The token asked for at this moment; undefined: none. */
  readonly token: () => string | undefined;
  readonly onWatch: (stream: WatchStream, response: ServerResponse) => void;
}

/** Answer one request. Resolves when the answer is under way. */
export async function handleRequest(context: HandlerContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    await answerRequest(context, request, response);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    answer(response, error.status);
  }
}

async function answerRequest(context: HandlerContext, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://emulator");
  const route = routeFor(url.pathname);
  const wanted = context.token();
  if (wanted !== undefined && request.headers.authorization !== `Bearer ${wanted}`) refuse(401, "Unauthorized");
  if (route === undefined || context.without.includes(route.resource.kind)) return answerOther(context.version, url, response);
  const { resource, namespace, name } = route;
  const verb = verbOf(request.method ?? "GET", route, url.searchParams);
  if (await misbehaves(context.faults, verb, resource.kind, response)) return;
  if (verb === "write") return answerWrite(context, route, request, response);
  if (verb === "watch") return answerWatch(context, route, url.searchParams, response);
  if (verb === "list") return answerList(context, route, url.searchParams, response);
  const plural = resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
  const found = context.store.get(resource.kind, objectKey(namespace, name ?? ""));
  return answer(response, found ?? refuse(404, `${plural} "${name}" not found`), 200);
}

function verbOf(method: string, route: Route, query: URLSearchParams): Verb {
  if (method !== "GET") return "write";
  if (query.get("watch") === "true" || query.get("watch") === "1") return "watch";
  return route.name === undefined ? "list" : "get";
}

async function misbehaves(faults: Faults, verb: Verb, kind: ServedKind, response: ServerResponse): Promise<boolean> {
  const delay = faults.strike("delayMs", verb, kind)?.delayMs;
  if (delay !== undefined) await new Promise((resolve) => setTimeout(resolve, delay));
  if (faults.strike("hang", verb, kind) !== undefined) return true;
  const fault = faults.strike("status", verb, kind);
  if (fault?.status === undefined) return false;
  answerStatus(response, fault.status, fault);
  return true;
}

function answerStatus(response: ServerResponse, status: number, { retryAfterSeconds }: Misbehaviour): void {
  if (retryAfterSeconds !== undefined) response.setHeader("retry-after", String(retryAfterSeconds));
  answer(response, failure(status, "the emulator misbehaves as told"));
}

function answerList(context: HandlerContext, route: Route, query: URLSearchParams, response: ServerResponse): void {
  const { kind } = route.resource;
  if ((query.get("continue") ?? "") !== "" && context.faults.strike("expireContinue", "list", kind) !== undefined) {
    throw new Refusal(expired("The provided continue parameter is too old"));
  }
  const list = listObjects(context.store, route, query);
  if (context.faults.strike("truncateLists", "list", kind) !== undefined) {
    const text = JSON.stringify(list);
    response.writeHead(200, { "content-type": "application/json" });
    response.write(text.slice(0, text.length / 2), () => response.destroy());
    return;
  }
  return answer(response, list, 200);
}

function answerWatch(context: HandlerContext, route: Route, query: URLSearchParams, response: ServerResponse): void {
  const { store, faults } = context;
  const matches = matcherFor(route, query);
  const isWatchList = query.get("sendInitialEvents") === "true";
  const fault = isWatchList ? faults.strike("watchList", "watch", route.resource.kind) : undefined;
  if (typeof fault?.watchList === "number") return answerStatus(response, fault.watchList, fault);
  if (fault?.watchList === "list") return answerList(context, route, new URLSearchParams(), response);
  if (fault?.watchList === "page") return void response.writeHead(200, { "content-type": "text/html" }).end("<html>Welcome</html>\n");
  if (isWatchList && query.get("resourceVersionMatch") !== "NotOlderThan") {
    refuse(422, "resourceVersionMatch: Forbidden: sendInitialEvents needs NotOlderThan");
  }
  const text = query.get("resourceVersion") ?? "";
  const revision = revisionOf(text, store.revision);
  const fromNow = isWatchList || revision === 0;
  const missed = fromNow ? [] : store.eventsAfter(revision);
  const tooOld = expired(`too old resource version: ${text}`);
  if (missed === undefined && faults.strike("expiredAsStatus", "watch", route.resource.kind) !== undefined) throw new Refusal(tooOld);
  const wantsBookmarks = query.get("allowWatchBookmarks") === "true";
  const stream = new WatchStream(response, { resource: route.resource, matches, wantsBookmarks }, faults);
  if (missed === undefined) return stream.fail(tooOld);
  const seconds = Number(query.get("timeoutSeconds") ?? "1800");
  const timer = setTimeout(() => stream.end(), seconds * 1000);
  response.on("close", () => clearTimeout(timer));
  if (fromNow) stream.sendInitial(store, isWatchList && fault === undefined);
  if (fault?.watchList === "ends") return stream.end();
  if (fault?.watchList === "cut") return stream.drop();
  if (fault?.watchList === "silent") stream.silence();
  for (const event of missed) stream.deliver(event);
  context.onWatch(stream, response);
}

async function answerWrite(context: HandlerContext, route: Route, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== "POST" || route.name !== undefined) refuse(405, "the emulator takes POST only");
  const body = await buffer(request);
  let object: unknown;
  try {
    object = JSON.parse(body.toString());
  } catch (error) {
    refuse(400, `the object could not be read: ${String(error)}`);
  }
  return answer(response, create(context.store, route, object, context.nowMs()), 201);
}

function answerOther(version: string, url: URL, response: ServerResponse): void {
  if (["/healthz", "/livez", "/readyz"].includes(url.pathname)) {
    response.writeHead(200, { "content-type": "text/plain" }).end("ok");
    return;
  }
  if (url.pathname === "/version") {
    const [, major, minor] = /^v(\d+)\.(\d+)/.exec(version) ?? [];
    return answer(response, { major, minor, gitVersion: version }, 200);
  }
  refuse(404, "the server could not find the requested resource");
}

function answer(response: ServerResponse, body: object, status = (body as StatusBody).code): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json" }).end(text);
}
