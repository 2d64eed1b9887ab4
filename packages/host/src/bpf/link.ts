import { closeSync, constants, openSync } from "node:fs";
import { CGROUP_HOOK, TCX } from "./constants.ts";
import type { CgroupHook, Direction } from "./constants.ts";
import { checked, fileError } from "./errors.ts";
import { infoOf, KernelHandle, takenAs } from "./handle.ts";
import type { BpfHandle } from "./handle.ts";
import { readLinkInfo } from "./info.ts";
import type { LinkInfo } from "./info.ts";
import type { Libbpf } from "./libbpf-calls.ts";
import type { BpfProgram, KernelProgram } from "./program.ts";

/**
 * A program's attachment to a cgroup or a device (bpf_link).
 *
 * Edges: when the last one who has it open closes it, it ends, unless it is pinned.
 */
export interface BpfLink extends BpfHandle {
  /** As the kernel says now. */
  info(): LinkInfo;
  /** Put another program in the place of the one that is attached, in one step: every call goes to one of them. @throws {ProxyError} `tool_failed` for a program of another type. */
  update(program: BpfProgram): void;
  /** End it now, also where others have it open or pinned; a pin stays, of a link that is attached to nothing. @throws {ProxyError} */
  detach(): void;
}

/** {@link BpfLink} over libbpf. */
export class KernelLink extends KernelHandle implements BpfLink {
  info(): LinkInfo {
    return infoOf(this.lib, this.fd, readLinkInfo);
  }

  update(program: BpfProgram): void {
    const result = this.lib.updateLink(this.fd, fdOf(program), undefined);
    checked(result, `${this.label} can't be given another program`, { object: program.label });
  }

  detach(): void {
    checked(this.lib.detachLink(this.fd), `${this.label} can't be detached`);
  }
}

/** The file descriptor of a program; only this package makes them. */
export function fdOf(program: BpfProgram): number {
  return (program as KernelProgram).fd;
}

/** Attach a program to a hook of a cgroup, beside those that are there (BPF_F_ALLOW_MULTI). @throws {ProxyError} `not_found`, `invalid_object`, `permission_denied`. */
export function attachToCgroup(lib: Libbpf, program: BpfProgram, cgroup: string, hook: CgroupHook): KernelLink {
  const folder = openFolder(cgroup);
  try {
    const object = `${program.label} at ${hook} of ${cgroup}`;
    const fd = lib.createLink(fdOf(program), folder, CGROUP_HOOK[hook], undefined);
    return new KernelLink(lib, checked(fd, "a program can't be attached to a cgroup", { object }), `link of ${object}`);
  } finally {
    closeSync(folder);
  }
}

function openFolder(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch (error) {
    throw fileError(error, "a cgroup can't be opened", path);
  }
}

/**
 * Attach a program to a device by tcx, after those that are there.
 *
 * Shape: below 0 the kernel's refusal: EINVAL before Linux 6.6.
 */
export function attachByTcx(lib: Libbpf, program: BpfProgram, ifindex: number, direction: Direction): KernelLink | number {
  const fd = lib.createLink(fdOf(program), ifindex, TCX[direction], undefined);
  return fd < 0 ? fd : new KernelLink(lib, fd, `link of ${program.label} at ${direction} of device ${ifindex}`);
}

/** Take over a file descriptor that should be a link's. @throws {ProxyError} `invalid_object` when it isn't. */
export function linkFrom(lib: Libbpf, fd: number, object: string): KernelLink {
  return takenAs("link", fd, object, (one) => new KernelLink(lib, one, `link ${object}`));
}
