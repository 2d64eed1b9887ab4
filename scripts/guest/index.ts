/**
 * A kernel that this machine lacks: programs and tests under user-mode Linux.
 *
 * @packageDocumentation
 */
export { runVmChecks } from "./checks.ts";
export type { VmCheckReport, VmChecks } from "./checks.ts";
export { describeVm } from "./describe-guest.ts";
export type { DescribeVmOptions } from "./describe-guest.ts";
export { VmError } from "./guest-error.ts";
export type { VmErrorCode } from "./guest-error.ts";
export { IPVS_MODULES } from "./modules.ts";
export { playInVm } from "./play-in-guest.ts";
export { jsonFromVm, nodeCommand, runInVm } from "./run-in-guest.ts";
export type { VmOptions, VmResult } from "./run-in-guest.ts";
