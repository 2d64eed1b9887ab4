import { zeroTerminated } from "../netlink/message.ts";
import { CGROUP_HOOK, LINK_TYPE, MAP_TYPE, TCX } from "./constants.ts";
import type { CgroupHook, Direction, MapType } from "./constants.ts";

/** What the kernel tells of a map. Sizes are in bytes; `name` has at most 15 characters. */
export interface MapInfo {
  readonly id: number;
  readonly name: string;
  /** A type that this package doesn't know is `type` and its number. */
  readonly type: MapType | `type ${number}`;
  readonly keySize: number;
  /** Of one CPU's value, where each CPU has its own. */
  readonly valueSize: number;
  readonly maxEntries: number;
  readonly flags: number;
}

/** What the kernel tells of a program. `name` has at most 15 characters; `tag` is a digest of its instructions. */
export interface ProgramInfo {
  readonly id: number;
  readonly name: string;
  readonly type: number;
  readonly tag: string;
}

/** What the kernel tells of a link, and what it is attached to; once detached, the id of the cgroup or the number of the device is 0. */
export type LinkInfo = { readonly id: number; readonly programId: number } & (
  | { readonly kind: "cgroup"; readonly cgroupId: bigint; readonly hook: CgroupHook | undefined }
  | { readonly kind: "tcx"; readonly ifindex: number; readonly direction: Direction | undefined }
  | { readonly kind: "other"; readonly type: number }
);

/** Room for any of the kernel's answers. */
export const INFO_BYTES = 512;

function keyOf<K extends string>(table: Readonly<Record<K, number>>, value: number): K | undefined {
  return (Object.keys(table) as K[]).find((key) => table[key] === value);
}

/** @source linux/bpf.h struct bpf_map_info */
export function readMapInfo(bytes: Buffer): MapInfo {
  const type = bytes.readUInt32LE(0);
  return {
    id: bytes.readUInt32LE(4),
    name: zeroTerminated(bytes.subarray(24, 40)),
    type: keyOf(MAP_TYPE, type) ?? `type ${type}`,
    keySize: bytes.readUInt32LE(8),
    valueSize: bytes.readUInt32LE(12),
    maxEntries: bytes.readUInt32LE(16),
    flags: bytes.readUInt32LE(20),
  };
}

/** @source linux/bpf.h struct bpf_prog_info */
export function readProgramInfo(bytes: Buffer): ProgramInfo {
  return {
    id: bytes.readUInt32LE(4),
    name: zeroTerminated(bytes.subarray(64, 80)),
    type: bytes.readUInt32LE(0),
    tag: bytes.toString("hex", 8, 16),
  };
}

/** @source linux/bpf.h struct bpf_link_info */
export function readLinkInfo(bytes: Buffer): LinkInfo {
  const type = bytes.readUInt32LE(0);
  const base = { id: bytes.readUInt32LE(4), programId: bytes.readUInt32LE(8) };
  if (type === LINK_TYPE.cgroup)
    return { ...base, kind: "cgroup", cgroupId: bytes.readBigUInt64LE(16), hook: keyOf(CGROUP_HOOK, bytes.readUInt32LE(24)) };
  if (type === LINK_TYPE.tcx)
    return { ...base, kind: "tcx", ifindex: bytes.readUInt32LE(16), direction: keyOf(TCX, bytes.readUInt32LE(20)) };
  return { ...base, kind: "other", type };
}
