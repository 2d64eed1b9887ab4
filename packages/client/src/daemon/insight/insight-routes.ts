import { FAMILIES, type IPFamily } from "@turnout/core";
import { jsonReply, type HttpRequest, type Reply } from "../health/health.ts";
import { reasonToRefuse, refusal } from "./host-only.ts";
import type { ProxyView } from "./proxy-view.ts";
import { statusOf } from "./status.ts";

/** Answers one request about a running proxy; `signal` aborts when the process ends. */
export type InsightRoute = (request: HttpRequest, proxy: ProxyView, signal: AbortSignal) => Reply | Promise<Reply>;

/** What a proxy tells of itself, by path. Each is for this host alone, and changes nothing. */
const INSIGHT_ROUTES: Readonly<Record<string, InsightRoute>> = {
  "/turnout/status": (_request, proxy) => jsonReply(200, statusOf(proxy)),
};

/** What the routes are answered from. */
export interface InsightOptions {
  /** The proxy as it is when this is called. */
  readonly proxy: () => ProxyView;
  readonly hostAddresses: (family: IPFamily) => readonly string[];
  readonly signal: AbortSignal;
}

/** Make the routes of `/turnout/…` for a server: only for requests from this host, and GET alone. */
export function insightRoutes({
  proxy,
  hostAddresses,
  signal,
}: InsightOptions): Readonly<Record<string, (request: HttpRequest) => Reply | Promise<Reply>>> {
  const guarded = (path: string, route: InsightRoute): [string, (request: HttpRequest) => Reply | Promise<Reply>] => [
    path,
    (request) => {
      const reason = reasonToRefuse(request, FAMILIES.flatMap(hostAddresses));
      if (reason !== undefined) return refusal(403, reason);
      if (request.method !== "GET" && request.method !== "HEAD") return refusal(405, "nothing can be changed here: use GET");
      return route(request, proxy(), signal);
    },
  ];
  return Object.fromEntries(Object.entries(INSIGHT_ROUTES).map(([path, route]) => guarded(path, route)));
}
