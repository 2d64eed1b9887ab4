import type { Clock, IPFamily } from "@turnout/core";
import type { HttpRequest, Reply } from "../health/health.ts";
import type { ProxyView } from "./proxy-view.ts";

/** Answers one request about a running proxy. */
export type InsightRoute = (request: HttpRequest, proxy: ProxyView, options: InsightOptions) => Reply | Promise<Reply>;

/** What the routes are answered from. */
export interface InsightOptions {
  /** The proxy as it is when this is called. */
  readonly proxy: () => ProxyView;
  readonly hostAddresses: (family: IPFamily) => readonly string[];
  /** Aborts when the process ends. */
  readonly signal: AbortSignal;
  /** The page for people is asked for. */
  readonly hasPage: boolean;
  readonly clock: Clock;
}
