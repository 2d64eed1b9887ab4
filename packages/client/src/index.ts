/**
 * What a process needs around its backend: configuration as kube-proxy's, sync loops, health and metrics servers,
 * health check node ports, signals, logs.
 *
 * @packageDocumentation
 */
export { createLog } from "./process/log.ts";
export type { LogLevel, LogOptions } from "./process/log.ts";
export { bindAddressText, parseBindAddress } from "./daemon/config/bind-address.ts";
export type { BindAddress } from "./daemon/config/bind-address.ts";
export { CONFIG_FLAGS } from "./daemon/config/config-flags.ts";
export type { ConfigFlag, RawFlags } from "./daemon/config/config-flags.ts";
export type { ConfigPath, ConfigValues, GivenValues } from "./daemon/config/config-values.ts";
export { backendOf, loadConfig, modeOf, runConfig } from "./daemon/config/config.ts";
export type { ConfigInput, FileText, LoadedConfig, RunConfig } from "./daemon/config/config.ts";
export { formatDuration, parseDuration } from "./daemon/config/duration.ts";
export { eligibilityOf, isNodeKnown } from "./api/eligibility.ts";
export type { Eligibility } from "./api/eligibility.ts";
export { jsonReply, probe } from "./daemon/health/health.ts";
export type { Reply, Verdict } from "./daemon/health/health.ts";
export { routes, serveHttp } from "./daemon/health/http.ts";
export type { Handler, HttpOptions } from "./daemon/health/http.ts";
export { IssueLog } from "./process/issue-log.ts";
export type { IssueLogOptions } from "./process/issue-log.ts";
export { registerIssues } from "./daemon/metrics/issue-metrics.ts";
export { run } from "./daemon/run/main.ts";
export type { RunOptions } from "./daemon/run/main.ts";
export type { LeftoverOptions } from "./daemon/run/leftovers.ts";
export type { MetricSet, Readings } from "./daemon/metrics/metric-set.ts";
export { processMetrics } from "./daemon/metrics/process-metrics.ts";
export { Metrics } from "./daemon/metrics/metrics.ts";
export { terminationSignal } from "./process/signals.ts";
export type { SignalSource } from "./process/signals.ts";
export { withTimeout } from "./process/timeout.ts";
export type { NodeLink, NodeLinkOptions } from "./api/watch/node-link.ts";
export { createStatePoll } from "./api/watch/state-poll.ts";
export type { StatePoll } from "./api/watch/state-poll.ts";
export { DEFAULT_TARGET, parseApiTarget, parseTarget, tlsFiles } from "./api/watch/target.ts";
export type { Target, TlsFiles } from "./api/watch/target.ts";
export { NODE_WAIT_MS, NO_NODE_KNOWN } from "./api/watch/node-wait.ts";
export { fetchFullState, openNodeLink, watchFullState, watchNodeState } from "./api/watch/watch-node-state.ts";
export type { FullState, WatchOptions } from "./api/watch/watch-node-state.ts";
export { backendMain } from "./daemon/program/backend-main.ts";
export type { BackendMainOptions } from "./daemon/program/backend-main.ts";
export { exitPrinted, guardOutput } from "./process/standard-output.ts";
export { runBackendProgram } from "./daemon/program/backend-program.ts";
export type { ProgramEnvironment, ProgramWorld } from "./daemon/program/backend-program.ts";
