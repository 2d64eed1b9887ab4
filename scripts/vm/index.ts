/**
 * A kernel that this machine lacks: programs and tests under user-mode Linux.
 *
 * @packageDocumentation
 */
export { runVmChecks } from "./checks.ts";
export type { VmCheckReport, VmChecks } from "./checks.ts";
export { describeVm } from "./describe-vm.ts";
export type { DescribeVmOptions } from "./describe-vm.ts";
export { IPVS_MODULES } from "./modules.ts";
export { jsonFromVm, nodeCommand, runAgainInVm, runInVm } from "./run-in-vm.ts";
export type { VmOptions, VmResult } from "./run-in-vm.ts";
export { attempt, connectToEcho } from "./client.ts";
export type { Attempt, EchoClient } from "./client.ts";
export { linesOf, sh } from "./shell.ts";
