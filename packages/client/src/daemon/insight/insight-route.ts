import type { HttpRequest, Reply } from "../health/health.ts";
import type { ProxyView } from "./proxy-view.ts";

/** Answers one request about a running proxy; `signal` aborts when the process ends. */
export type InsightRoute = (request: HttpRequest, proxy: ProxyView, signal: AbortSignal) => Reply | Promise<Reply>;
