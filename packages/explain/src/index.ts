/**
 * A read-only look at a host: whatever decides about its packets but our own rules.
 *
 * @packageDocumentation
 */
export { externalTables, surveyPacket } from "./why/host-survey.ts";
export type { RulePlaces } from "./why/host-survey.ts";
export { locatePacket } from "./why/locate-packet.ts";
export { probeEndpoints, withProbe } from "./why/probe.ts";
export { diagnose } from "./findings/diagnose.ts";
export type { Finding, KnownProxy } from "./findings/finding.ts";
export { bySeverity } from "./findings/finding.ts";
export { hostSurveyFiles } from "./readings/files.ts";
export { printedSurvey, surveyHost } from "./readings/survey.ts";
export type { HostSurvey, PrintedSurvey } from "./readings/survey.ts";
export type { Writer } from "./readings/writers.ts";
export { turnoutProcesses } from "./readings/turnout-processes.ts";
