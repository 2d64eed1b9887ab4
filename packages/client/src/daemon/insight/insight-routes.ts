import type { IPFamily } from "@turnout/core";
import { jsonReply } from "../health/health.ts";
import { forThisHost, type Route } from "./host-only.ts";
import type { InsightRoute } from "./insight-route.ts";
import { PAGE_ROUTES } from "./page.ts";
import type { ProxyView } from "./proxy-view.ts";
import { statusOf } from "./status.ts";

/** What a proxy tells of itself, by path. Each is for this host alone, and changes nothing. */
const INSIGHT_ROUTES: Readonly<Record<string, InsightRoute>> = {
  "/turnout/status": async (_request, proxy, signal) => jsonReply(200, await statusOf(proxy, signal)),
};

/** What the routes are answered from. */
export interface InsightOptions {
  /** The proxy as it is when this is called. */
  readonly proxy: () => ProxyView;
  readonly hostAddresses: (family: IPFamily) => readonly string[];
  readonly signal: AbortSignal;
  /** The page for people is asked for. */
  readonly hasPage: boolean;
}

/** Make the routes of `/turnout/…` for a server: only for requests from this host, and GET alone. */
export function insightRoutes({ proxy, hostAddresses, signal, hasPage }: InsightOptions): Readonly<Record<string, Route>> {
  const routes = Object.entries({ ...INSIGHT_ROUTES, ...(hasPage ? PAGE_ROUTES : {}) });
  return Object.fromEntries(
    routes.map(([path, route]) => [path, forThisHost((request) => route(request, proxy(), signal), hostAddresses)]),
  );
}
