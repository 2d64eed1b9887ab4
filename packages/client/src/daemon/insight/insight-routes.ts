import { jsonReply } from "../health/health.ts";
import { forThisHost, type Route } from "./host-only.ts";
import type { InsightOptions, InsightRoute } from "./insight-route.ts";
import { PAGE_ROUTES } from "./page.ts";
import { statusOf } from "./status.ts";
import { whyReply } from "./why.ts";

/** What a proxy tells of itself, by path. Each is for this host alone, and changes nothing. */
const INSIGHT_ROUTES: Readonly<Record<string, InsightRoute>> = {
  "/turnout/why": (request, proxy, { signal }) => whyReply(request, proxy, signal),
  "/turnout/status": async (_request, proxy, { signal }) => jsonReply(200, await statusOf(proxy, signal)),
};

/** Make the routes of `/turnout/…` for a server: only for requests from this host, and GET alone. */
export function insightRoutes(options: InsightOptions): Readonly<Record<string, Route>> {
  const { proxy, hostAddresses, hasPage } = options;
  const routes = Object.entries({ ...INSIGHT_ROUTES, ...(hasPage ? PAGE_ROUTES : {}) });
  return Object.fromEntries(
    routes.map(([path, route]) => [path, forThisHost((request) => route(request, proxy(), options), hostAddresses)]),
  );
}
