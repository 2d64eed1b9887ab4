/**
 * What a process needs around its backend: configuration as kube-proxy's, sync loops, health and metrics servers,
 * health check node ports, signals, logs.
 *
 * @packageDocumentation
 */
export { cleanBackend } from "./program/clean-backend.ts";
export type { Cleaned, CleanupScope, CleanupWork } from "./program/clean-backend.ts";
export { optionsFromFlags, typedOption } from "./config/backend-options.ts";
export type { BackendOptions, TypedOption } from "./config/backend-options.ts";
export { ALLOWED_ADDRESS_FLAGS } from "./config/allowed-addresses.ts";
export { parseBindAddress } from "./config/bind-address.ts";
export type { BindAddress } from "./config/bind-address.ts";
export { CONFIG_FLAGS } from "./config/config-flags.ts";
export type { ConfigFlag, FlagText, RawFlags } from "./config/config-flags.ts";
export type { ConfigPath, ConfigValues, GivenValues } from "./config/config-values.ts";
export { switchOf } from "./config/config-kinds.ts";
export { servesExternalIPs } from "./config/gates/feature-gates.ts";
export { isFeatureOn, loadConfig } from "./config/loaded-config.ts";
export { refuseAllowOptions } from "./config/refuse-limits.ts";
export { runConfig } from "./config/run-config.ts";
export type { ConfigInput, FileText, LoadedConfig, LoggingSettings } from "./config/loaded-config.ts";
export type { BackendFound, RunConfig } from "./config/run-config.ts";
export { parseDuration } from "./config/duration.ts";
export { issueEvents, STARTING } from "./events/proxy-events.ts";
export type { EventKind, EventReason, ProxyEvent } from "./events/proxy-events.ts";
export type { HostAccess, ProcessRights } from "./host/give-up-rights.ts";
export type { ProcessMemory } from "./host/process-memory.ts";
export type { HostFiles } from "./host/host-files.ts";
export type { ConntrackSettings, HostSettings } from "./host/host-settings.ts";
export type { TurnoutGateName } from "./config/gates/turnout-gates.ts";
export { reportedObjects } from "./health/not-in-force.ts";
export type { NotInForce } from "./health/not-in-force.ts";
export { jsonReply, probe } from "./health/health.ts";
export type { Reply, Verdict } from "./health/health.ts";
export { routes, serveHttp } from "./health/http.ts";
export type { Handler, HttpOptions } from "./health/http.ts";
export type { FamilyView, ExternalChange, ProxyView } from "./insight/proxy-view.ts";
export type { CountedRows, RowCounts } from "./insight/service-counts.ts";
export type { LatencySummary } from "./insight/recent-latencies.ts";
export { whySocketPaths } from "./insight/why-socket.ts";
export { forThisHost } from "./insight/host-only.ts";
export type { RuleSettings } from "./insight/rule-settings.ts";
export { distinctIssues } from "./insight/status.ts";
export { hostAddresses } from "./health/host-addresses.ts";
export type { Bounded, CountedStatus, FamilyStatus, ProxyStatus, RefusalStatus } from "./insight/status.ts";
export type { WhyHelp } from "./insight/why-help.ts";
export { registerHeard } from "./metrics/heard-metrics.ts";
export { registerIssues } from "./metrics/issue-metrics.ts";
export type { MetricSet, Readings } from "./metrics/metric-set.ts";
export { Metrics } from "./metrics/metrics.ts";
export { registerNotInForce } from "./metrics/not-in-force-metrics.ts";
export { registerSource } from "./metrics/source-metrics.ts";
export { SourceProblems } from "./metrics/source-problems.ts";
export { processMetrics } from "./metrics/process-metrics.ts";
export { registerRestClient } from "./metrics/rest-client-metrics.ts";
export type { ExecPluginCallStatus, RestClientMetrics, RestRequest } from "./metrics/rest-client-metrics.ts";
export { backendMain } from "./program/backend-main.ts";
export type { BackendMainOptions } from "./program/backend-main.ts";
export { createCommand, runCommandLine } from "./program/command-line.ts";
export { processEnvironment } from "./program/environment.ts";
export type { ProgramEnvironment, ProgramParts } from "./program/environment.ts";
export {
  addApiOptions,
  addConfigFlags,
  addLogOptions,
  addNodeOptions,
  addRuleOptions,
  addTimeout,
  addVerbose,
  apiTls,
  collect,
  configFor,
  isVerbose,
  logFor,
  OPTION_HELP,
  quietLogFor,
  timeoutMs,
  typedOptions,
} from "./program/options.ts";
export type { CommonOptions } from "./program/options.ts";
export { addProxyOptions, runProxy } from "./program/run-proxy.ts";
export type { OpenSource, ProxyOptions, ProxyProgram, SourceParts } from "./program/run-proxy.ts";
export { otherDataplanes } from "./run/leftovers.ts";
export type { Dataplane, Finder, LeftoverOptions } from "./run/leftovers.ts";
export { optionsForBackend, ruleSettingsOf, withRuleSettings } from "./run/rule-settings.ts";
export { run } from "./run/main.ts";
export type { RunOptions } from "./run/main.ts";
export { createLog } from "../process/log.ts";
export { deepPositionOf, ifNotTooDeep, YAML_LEVELS_MAX } from "../process/yaml-depth.ts";
export type { LogLevel, LogOptions } from "../process/log.ts";
export { exitPrinted, guardOutput } from "../process/standard-output.ts";
export { withTimeout } from "../process/timeout.ts";
