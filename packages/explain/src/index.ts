/**
 * A read-only look at a host: whatever decides about its packets but our own rules.
 *
 * @packageDocumentation
 */
export { externalTables, surveyPacket } from "./why/host-survey.ts";
export type { RulePlaces, SurveyedNode, SurveyTools } from "./why/host-survey.ts";
export { locatePacket } from "./why/locate-packet.ts";
export { probeEndpoints, withProbe } from "./why/probe.ts";
export { diagnose } from "./findings/diagnose.ts";
export type { Finding, KnownProxy } from "./findings/finding.ts";
export { bySeverity } from "./findings/finding.ts";
export { hostSurveyFiles } from "./readings/files.ts";
export type { SurveyFiles } from "./readings/files.ts";
export type { IptablesChain, IptablesTable } from "./tables/listed-iptables.ts";
export { targetsOf } from "./tables/listed-nft.ts";
export type { ExternalChain, NftRule } from "./tables/listed-nft.ts";
export { parameterName } from "./readings/parameters.ts";
export type { DeviceParameters, KernelParameters } from "./readings/parameters.ts";
export { surveyHost } from "./readings/survey.ts";
export type { HostSurvey, OwnHook, SurveyOptions, Unseen } from "./readings/survey.ts";
export type { Writer, WriterKind } from "./readings/writers.ts";
export { turnoutCauses, turnoutProcesses } from "./readings/turnout-processes.ts";
export type { TurnoutProcess } from "./readings/turnout-processes.ts";
export { surveyPath } from "./why/path.ts";
export type { PathTools } from "./why/path.ts";
export type { PathQuestion } from "./ways/path-question.ts";
export { routeFor } from "./readings/route.ts";
export type { Route } from "./readings/route.ts";
export { readLinks } from "./readings/links.ts";
export { REJECT_COMMANDS } from "./causes/reject-commands.ts";
export type { Link } from "./readings/links.ts";
export { readExternalTables } from "./tables/external-tables.ts";
export type { ExternalTables, ReadFile } from "./tables/external-tables.ts";
