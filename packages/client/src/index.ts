/**
 * What a process needs around its backend: configuration as kube-proxy's, sync loops, health and metrics servers,
 * health check node ports, signals, logs.
 *
 * @packageDocumentation
 */
export { createLog } from "./log.ts";
export type { LogLevel, LogOptions } from "./log.ts";
export { bindAddressText, parseBindAddress } from "./run/bind-address.ts";
export type { BindAddress } from "./run/bind-address.ts";
export { CONFIG_FLAGS } from "./run/config-flags.ts";
export type { ConfigFlag, RawFlags } from "./run/config-flags.ts";
export type { ConfigPath, ConfigValues, GivenValues } from "./run/config-values.ts";
export { backendOf, loadConfig, modeOf, runConfig } from "./run/config.ts";
export type { ConfigInput, FileText, LoadedConfig, RunConfig } from "./run/config.ts";
export { formatDuration, parseDuration } from "./run/duration.ts";
export { eligibilityOf, isNodeKnown, jsonReply, probe } from "./run/health.ts";
export type { Eligibility, Reply, Verdict } from "./run/health.ts";
export { routes, serveHttp } from "./run/http.ts";
export type { Handler, HttpOptions } from "./run/http.ts";
export { IssueLog } from "./run/issue-log.ts";
export type { IssueLogOptions } from "./run/issue-log.ts";
export { registerIssues } from "./run/issue-metrics.ts";
export { run } from "./run/main.ts";
export type { RunOptions } from "./run/main.ts";
export type { LeftoverOptions } from "./run/leftovers.ts";
export { MetricSet } from "./run/metric-set.ts";
export type { Readings } from "./run/metric-set.ts";
export { Metrics } from "./run/metrics.ts";
export { terminationSignal } from "./run/signals.ts";
export type { SignalSource } from "./run/signals.ts";
export { withTimeout } from "./run/timeout.ts";
export { systemClock } from "./clock.ts";
export type { NodeLink, NodeLinkOptions } from "./watch/node-link.ts";
export { createStatePoll } from "./watch/state-poll.ts";
export type { StatePoll } from "./watch/state-poll.ts";
export { DEFAULT_TARGET, parseApiTarget, parseTarget, tlsFiles } from "./watch/target.ts";
export type { Target, TlsFiles } from "./watch/target.ts";
export { NODE_WAIT_MS, NO_NODE_KNOWN } from "./watch/node-wait.ts";
export { fetchFullState, openNodeLink, watchFullState, watchNodeState } from "./watch/watch-node-state.ts";
export type { FullState, WatchOptions } from "./watch/watch-node-state.ts";
export { backendMain } from "./program/backend-main.ts";
export type { BackendMainOptions } from "./program/backend-main.ts";
export { exitPrinted, guardOutput } from "./program/standard-output.ts";
export { runBackendProgram } from "./program/backend-program.ts";
export type { ProgramEnvironment, ProgramWorld } from "./program/backend-program.ts";
