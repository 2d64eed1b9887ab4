/**
 * A read-only look at a host: whatever decides about its packets but our own rules.
 *
 * @packageDocumentation
 */
export { diagnose } from "./diagnose.ts";
export type { Finding, KnownProxy } from "./finding.ts";
export { bySeverity } from "./finding.ts";
export { hostSurveyFiles } from "./files.ts";
export type { SurveyFiles } from "./files.ts";
export { targetOf } from "./listed-iptables.ts";
export type { IptablesChain, IptablesTable } from "./listed-iptables.ts";
export { targetsOf } from "./listed-nft.ts";
export type { ExternalChain, NftRule } from "./listed-nft.ts";
export { parameterName } from "./parameters.ts";
export type { DeviceParameters, KernelParameters } from "./parameters.ts";
export { surveyHost } from "./survey.ts";
export type { HostSurvey, OwnHook, SurveyOptions, Unseen } from "./survey.ts";
export type { Writer, WriterKind } from "./writers.ts";
export { turnoutCauses, turnoutProcesses } from "./turnout-processes.ts";
export type { TurnoutProcess } from "./turnout-processes.ts";
export { surveyPath } from "./path.ts";
export type { PathTools } from "./path.ts";
export type { PathQuestion } from "./path-question.ts";
export { routeFor } from "./route.ts";
export type { Route } from "./route.ts";
export { readLinks } from "./links.ts";
export { REJECT_COMMANDS } from "./reject-commands.ts";
export type { Link } from "./links.ts";
export { readExternalTables } from "./external-tables.ts";
export type { ExternalTables, ReadFile } from "./external-tables.ts";
