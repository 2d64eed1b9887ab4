import type { Clock } from "@turnout/core";
import { TimeBudget } from "../../process/time-budget.ts";
import { jsonReply } from "../health/health.ts";
import { routes as handlerOf, type Handler } from "../health/http.ts";
import { forThisHost, refusal, type Route } from "./host-only.ts";
import type { InsightOptions, InsightRoute } from "./insight-route.ts";
import { PAGE_ROUTES } from "./page.ts";
import { statusOf } from "./status.ts";
import { whyReply } from "./why.ts";

/** What a proxy tells of itself, by path. Each is for this host alone, and changes nothing. */
const INSIGHT_ROUTES: Readonly<Record<string, InsightRoute>> = {
  "/turnout/status": async (_request, proxy, { signal }) => jsonReply(200, await statusOf(proxy, signal)),
};

/** Make the routes of `/turnout/…` for a server: only for requests from this host, and GET alone. */
export function insightRoutes(options: InsightOptions): Readonly<Record<string, Route>> {
  const { proxy, hostAddresses, hasPage } = options;
  const ofPage = { ...PAGE_ROUTES, [WHY_PATH]: withinBudget(answerWhy, options.clock) };
  const routes = Object.entries({ ...INSIGHT_ROUTES, ...(hasPage ? ofPage : {}) });
  return Object.fromEntries(
    routes.map(([path, route]) => [path, forThisHost((request) => route(request, proxy(), options), hostAddresses)]),
  );
}

/** Make what answers the socket of `turnout why`, whose mode says who may ask. */
export function whyHandler(options: InsightOptions): Handler {
  return handlerOf({ [WHY_PATH]: (request) => answerWhy(request, options.proxy(), options) });
}

const WHY_PATH = "/turnout/why";
const answerWhy: InsightRoute = (request, proxy, { signal }) => whyReply(request, proxy, signal);

/** What an answer that has programs list rules costs at least. */
const QUESTION_MS = 500;

/** Have a route take a tenth of the time at most, and answer one request at a time: whoever is on this host may ask. */
function withinBudget(route: InsightRoute, clock: Clock): InsightRoute {
  const budget = new TimeBudget({ share: 0.1, creditMaxMs: 5_000, waitMaxMs: 60_000 }, clock);
  let isBusy = false;
  return async (request, proxy, options) => {
    if (isBusy || budget.waitMs > 0) {
      const when = isBusy ? "when this one is answered" : `in ${Math.ceil(budget.waitMs / 1_000)} s`;
      return refusal(429, `too many questions: ask again ${when}, or ask on the node itself, as root: turnout why FROM TO:PORT`);
    }
    isBusy = true;
    const startMs = clock.nowMs();
    try {
      return await route(request, proxy, options);
    } finally {
      isBusy = false;
      budget.spend(Math.max(QUESTION_MS, clock.nowMs() - startMs));
    }
  };
}
