/**
 * A kernel that this machine lacks: programs and tests under user-mode Linux.
 *
 * @packageDocumentation
 */
export { playGuestChecks } from "./checks.ts";
export type { GuestCheckReport, GuestChecks } from "./checks.ts";
export { describeGuest } from "./describe-guest.ts";
export type { DescribeGuestOptions } from "./describe-guest.ts";
export { GuestError } from "./guest-error.ts";
export type { GuestErrorCode } from "./guest-error.ts";
export { IPVS_MODULES } from "./modules.ts";
export { playInGuest } from "./play-in-guest.ts";
export { jsonFromGuest, nodeCommand, runInGuest } from "./run-in-guest.ts";
export type { GuestOptions, GuestResult } from "./run-in-guest.ts";
