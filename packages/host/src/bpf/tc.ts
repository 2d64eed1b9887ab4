import { ProxyError } from "@turnout/core";
import { errno } from "../netlink/errno.ts";
import { CLSACT } from "./constants.ts";
import type { Direction } from "./constants.ts";
import { bpfError, checked } from "./errors.ts";
import type { Libbpf } from "./libbpf-calls.ts";
import { attachByTcx, fdOf } from "./link.ts";
import type { BpfLink } from "./link.ts";
import type { BpfProgram } from "./program.ts";

/** A side of a device, in this network namespace. */
export interface TcPlace {
  readonly ifindex: number;
  readonly direction: Direction;
}

/** The filter's own place within clsact: whoever names the same two means the same filter. The priority is from 1 to 65535, the lowest comes first. */
export interface TcFilterName {
  readonly priority: number;
  readonly handle: number;
}

/** A filter of clsact, which lives until it is detached or its device goes. */
export interface TcFilter {
  /** Put another program in the place of this one, in one step. @throws {ProxyError} */
  update(program: BpfProgram): void;
  /** Take it away; the qdisc stays, as others may use it. Nothing happens when it is gone. @throws {ProxyError} */
  detach(): void;
}

/** How a program came to a device: a link can be pinned, a filter stays by itself. */
export type TcAttachment = { readonly kind: "tcx"; readonly link: BpfLink } | { readonly kind: "clsact"; readonly filter: TcFilter };

// @source bpf/libbpf.h struct bpf_tc_hook, struct bpf_tc_opts
const HOOK_BYTES = 24;
const OPTIONS_BYTES = 32;
const REPLACE = 1;

function hookOf({ ifindex, direction }: TcPlace): Buffer {
  const hook = Buffer.alloc(HOOK_BYTES);
  hook.writeBigUInt64LE(BigInt(HOOK_BYTES), 0);
  hook.writeInt32LE(ifindex, 8);
  hook.writeUInt32LE(CLSACT[direction], 12);
  return hook;
}

function optionsOf({ priority, handle }: TcFilterName, programFd = 0, flags = 0): Buffer {
  const options = Buffer.alloc(OPTIONS_BYTES);
  options.writeBigUInt64LE(BigInt(OPTIONS_BYTES), 0);
  options.writeInt32LE(programFd, 8);
  options.writeUInt32LE(flags, 12);
  options.writeUInt32LE(handle, 20);
  options.writeUInt32LE(priority, 24);
  return options;
}

function objectOf({ ifindex, direction }: TcPlace, { priority, handle }: TcFilterName): string {
  return `${direction} of device ${ifindex}, priority ${priority}, handle ${handle}`;
}

/** Attach by a link where the kernel has tcx, and as a filter of clsact otherwise. @throws {ProxyError} `not_found` without the device, `permission_denied`. */
export function attachTc(lib: Libbpf, program: BpfProgram, place: TcPlace, name: TcFilterName): TcAttachment {
  const link = attachByTcx(lib, program, place.ifindex, place.direction);
  if (typeof link !== "number") return { kind: "tcx", link };
  if (link === -errno("EINVAL")) return { kind: "clsact", filter: attachClsact(lib, program, place, name) };
  throw deviceError(link, `${program.label} at ${objectOf(place, name)}`);
}

/** Attach as a filter of clsact, in place of one of the same name. @throws {ProxyError} as {@link attachTc}. */
export function attachClsact(lib: Libbpf, program: BpfProgram, place: TcPlace, name: TcFilterName): TcFilter {
  const object = `${program.label} at ${objectOf(place, name)}`;
  const made = lib.createTcHook(hookOf(place));
  if (made < 0 && made !== -errno("EEXIST")) throw deviceError(made, object);
  const put = (one: BpfProgram): void => {
    checked(lib.attachTc(hookOf(place), optionsOf(name, fdOf(one), REPLACE)), "a program can't be attached to a device", { object });
  };
  put(program);
  return { update: put, detach: () => detachClsact(lib, place, name) };
}

/** Take a filter of clsact away by its name, whoever made it; nothing happens when there is none. @throws {ProxyError} */
export function detachClsact(lib: Libbpf, place: TcPlace, name: TcFilterName): void {
  const result = lib.detachTc(hookOf(place), optionsOf(name));
  if (result < 0 && !isNone(result)) throw bpfError(result, "a filter of tc can't be taken away", { object: objectOf(place, name) });
}

/** The id of the program of a filter of clsact; undefined when there is none of this name. @throws {ProxyError} */
export function clsactProgram(lib: Libbpf, place: TcPlace, name: TcFilterName): number | undefined {
  const options = optionsOf(name);
  const result = lib.queryTc(hookOf(place), options);
  if (isNone(result)) return undefined;
  checked(result, "a filter of tc can't be looked up", { object: objectOf(place, name) });
  return options.readUInt32LE(16);
}

/** Without the filter it is ENOENT, without clsact EINVAL, without the device ENODEV. */
function isNone(result: number): boolean {
  return [-errno("ENOENT"), -errno("EINVAL"), -errno("ENODEV")].includes(result);
}

function deviceError(result: number, object: string): ProxyError {
  const what = "a program can't be attached to a device";
  return result === -errno("ENODEV")
    ? new ProxyError("not_found", `${what}, there is none of this number (ENODEV)`, { object })
    : bpfError(result, what, { object });
}
