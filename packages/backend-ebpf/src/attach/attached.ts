import { basename, join } from "node:path";
import { ProxyError } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import type { Bpf, BpfLink, BpfProgram, CgroupHook, LinkInfo, Pin, TcFilterName, TcPlace } from "@turnout/host/bpf";
import { familiesOf, HOOKS, placeOf } from "../hooks.ts";
import type { ProgramFile } from "../hooks.ts";
import { LINK_FOLDER } from "../names.ts";
import type { PinFiles } from "../pins/pin-files.ts";
import type { AttachedObject, DeviceObject } from "../objects.ts";
import type { ProgramPin } from "../observe.ts";

/** Our place among filters of clsact, which serve where the kernel has no tcx. */
export const FILTER: TcFilterName = { priority: 29_813, handle: 0x7475 };

/** The families whose services are asked for where an object is attached. */
export function familiesAt(object: AttachedObject): readonly IPFamily[] {
  const hook = object.kind === "link" ? HOOKS[object.key] : undefined;
  return hook === undefined ? ["IPv4", "IPv6"] : familiesOf(hook);
}

/** The program of an attached object, and its file. */
export function programOf(object: AttachedObject): { readonly file: ProgramFile; readonly name: string } {
  return object.kind === "link" ? { file: "sockets", name: object.key } : { file: "packets", name: object.value.program };
}

/** A pinned link, and where its program is pinned. */
export interface PinnedLink extends ProgramPin {
  readonly path: string;
  readonly info: LinkInfo;
}

/** Where programs are pinned, by their numbers. Pure. */
export function programPins(pins: readonly Pin[], root: string): ReadonlyMap<number, ProgramPin> {
  return new Map(
    pins.flatMap((pin): readonly (readonly [number, ProgramPin])[] =>
      pin.kind === "program"
        ? [[pin.info.id, { programs: pin.path.slice(root.length + 1, pin.path.lastIndexOf("/")), program: basename(pin.path) }]]
        : [],
    ),
  );
}

/** A program that is pinned nowhere. */
export const NOWHERE: ProgramPin = { programs: "", program: "" };

/** Find the links of ours among pins, and where their programs are pinned. Pure. */
export function linksIn(pins: readonly Pin[], root: string): readonly PinnedLink[] {
  const programs = programPins(pins, root);
  return pins.flatMap((pin) =>
    pin.kind === "link" ? [{ path: pin.path, info: pin.info, ...(programs.get(pin.info.programId) ?? NOWHERE) }] : [],
  );
}

/** What attaching takes. */
export interface AttachTools {
  readonly bpf: Bpf;
  readonly pinFiles: PinFiles;
  /** The folder of all pins. */
  readonly root: string;
  /** The cgroup's folder. @throws {ProxyError} where there is none. */
  cgroup(): string;
}

/**
 * Bring a program to where an object says, in one step where another one of ours is there, and pin the link.
 * @throws {ProxyError} `not_found` when the device or cgroup is gone, `tool_failed`.
 */
export function bring(object: AttachedObject, program: BpfProgram, { bpf, pinFiles, root, cgroup }: AttachTools): void {
  const pin = join(root, LINK_FOLDER, object.key);
  const existing = pinFiles.exists(pin) ? bpf.openLink(pin) : undefined;
  try {
    if (existing !== undefined && isAt(existing.info(), object)) return existing.update(program);
    const link = object.kind === "link" ? bpf.attachToCgroup(program, cgroup(), hookOf(object.key)) : attachToDevice(object, program, bpf);
    try {
      link?.pin(pin, "replace");
    } finally {
      link?.close();
    }
    // Only now: for a moment both are there, and what one has sent to an endpoint the other leaves alone.
    existing?.detach();
  } finally {
    existing?.close();
  }
}

/** Take programs of ours from a side of a device; nothing happens where there is none. */
export function take({ key }: DeviceObject, { bpf, pinFiles, root }: Pick<AttachTools, "bpf" | "pinFiles" | "root">): void {
  const pin = join(root, LINK_FOLDER, key);
  const place = placeOf(key);
  if (pinFiles.exists(pin)) {
    const link = bpf.openLink(pin);
    try {
      link.detach();
    } finally {
      link.close();
    }
    pinFiles.remove(pin);
  } else if (place !== undefined) bpf.detachClsact(place, FILTER);
}

/** Undefined: a filter of clsact, which stays by itself. */
function attachToDevice({ key }: DeviceObject, program: BpfProgram, bpf: Bpf): BpfLink | undefined {
  const attachment = bpf.attachTc(program, demandPlace(key), FILTER);
  return attachment.kind === "tcx" ? attachment.link : undefined;
}

function isAt(info: LinkInfo, object: AttachedObject): boolean {
  if (object.kind === "link")
    return info.kind === "cgroup" && info.hook === HOOKS[object.key] && info.cgroupId.toString() === object.value.cgroup;
  const { ifindex, direction } = demandPlace(object.key);
  return info.kind === "tcx" && info.ifindex === ifindex && info.direction === direction;
}

function hookOf(name: string): CgroupHook {
  const hook = HOOKS[name];
  if (hook === undefined) throw new ProxyError("not_found", "there is no such hook", { object: name });
  return hook;
}

function demandPlace(key: string): TcPlace {
  const place = placeOf(key);
  if (place === undefined) throw new ProxyError("not_found", "there is no such side of a device", { object: key });
  return place;
}
