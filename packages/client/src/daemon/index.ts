/**
 * What a process needs around its backend: configuration as kube-proxy's, sync loops, health and metrics servers,
 * health check node ports, signals, logs.
 *
 * @packageDocumentation
 */
export { parseBindAddress } from "./config/bind-address.ts";
export type { BindAddress } from "./config/bind-address.ts";
export { CONFIG_FLAGS } from "./config/config-flags.ts";
export type { ConfigFlag, RawFlags } from "./config/config-flags.ts";
export type { ConfigPath, ConfigValues, GivenValues } from "./config/config-values.ts";
export { loadConfig, runConfig } from "./config/config.ts";
export type { ConfigInput, FileText, LoadedConfig, RunConfig } from "./config/config.ts";
export { parseDuration } from "./config/duration.ts";
export { jsonReply, probe } from "./health/health.ts";
export type { Reply, Verdict } from "./health/health.ts";
export { routes, serveHttp } from "./health/http.ts";
export type { Handler, HttpOptions } from "./health/http.ts";
export { registerIssues } from "./metrics/issue-metrics.ts";
export type { MetricSet, Readings } from "./metrics/metric-set.ts";
export { Metrics } from "./metrics/metrics.ts";
export { processMetrics } from "./metrics/process-metrics.ts";
export { backendMain } from "./program/backend-main.ts";
export type { BackendMainOptions } from "./program/backend-main.ts";
export { runBackendProgram } from "./program/backend-program.ts";
export type { ProgramEnvironment } from "./program/backend-program.ts";
export type { LeftoverOptions } from "./run/leftovers.ts";
export { run } from "./run/main.ts";
export type { RunOptions } from "./run/main.ts";
export { createLog } from "../process/log.ts";
export type { LogLevel, LogOptions } from "../process/log.ts";
export { terminationSignal } from "../process/signals.ts";
export type { SignalSource } from "../process/signals.ts";
export { exitPrinted, guardOutput } from "../process/standard-output.ts";
export { withTimeout } from "../process/timeout.ts";
