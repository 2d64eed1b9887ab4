/**
 * The conformance kit: scenarios that prove the rules, an oracle that knows what must become of a packet, a reference backend,
 * and the checks that tell the author of a backend that it is done.
 *
 * @packageDocumentation
 */
export * from "./runner/fake-host.ts";
export { FaultSwitches } from "./runner/fault-switches.ts";
export * from "./checks/finding.ts";
export type { Checkpoint } from "./checks/findings.ts";
export * from "./runner/scenario.ts";
export * from "./runner/short.ts";
export * from "./runner/stage.ts";
export * from "./runner/words.ts";
export * from "./checks/check.ts";
export { mergeReports } from "./checks/merge-reports.ts";
export type { Examination, Examine } from "./checks/examine.ts";
export { referenceBackend } from "./reference/reference-backend.ts";
export { createReferenceHost } from "./reference/reference-host.ts";
export type { Subject } from "./runner/subject.ts";
export * from "./scenarios/index.ts";
export { BREAKAGES, catchBreakage } from "./breakages/breakages.ts";
export type { Breakage } from "./breakages/breakages.ts";
export { describeBackend } from "./describe/describe-backend.ts";
export type { DescribeOptions } from "./describe/describe-backend.ts";
export * from "./histories/histories.ts";
export type { HistoryOptions } from "./histories/history-options.ts";
export { packetOf, probeText, targetsOf } from "./runner/probe-packet.ts";
export type { PacketTarget } from "./runner/probe-packet.ts";
export { StageObjects } from "./checks/stage-objects.ts";
export type { Listener } from "./checks/stage-objects.ts";
export * from "./oracle/index.ts";
