/** Types of maps, as the kernel numbers them. @source linux/bpf.h enum bpf_map_type */
export const MAP_TYPE = {
  hash: 1,
  array: 2,
  "per-cpu-hash": 5,
  "per-cpu-array": 6,
  "lru-hash": 9,
  "lru-per-cpu-hash": 10,
  "lpm-trie": 11,
  "array-of-maps": 12,
  "hash-of-maps": 13,
} as const;

/** A type of map that this package knows. */
export type MapType = keyof typeof MAP_TYPE;

/** What an update of one element may do. @source linux/bpf.h BPF_ANY, BPF_NOEXIST, BPF_EXIST */
export const UPDATE = { any: 0, create: 1, replace: 2 } as const;

/** Types of programs. @source linux/bpf.h enum bpf_prog_type */
export const PROGRAM_TYPE = { tc: 3, socket: 9, socketAddress: 18 } as const;

/** Where in a cgroup a program may be called. The number is the attach type. @source linux/bpf.h enum bpf_attach_type */
export const CGROUP_HOOK = {
  connect4: 10,
  connect6: 11,
  sendmsg4: 14,
  sendmsg6: 15,
  recvmsg4: 19,
  recvmsg6: 20,
  getpeername4: 29,
  getpeername6: 30,
  getsockname4: 31,
  getsockname6: 32,
  sock_release: 34,
} as const;

/** A hook of a cgroup. */
export type CgroupHook = keyof typeof CGROUP_HOOK;

/** The type of the programs that a hook of a cgroup calls. */
export function programTypeAt(hook: CgroupHook): number {
  return hook === "sock_release" ? PROGRAM_TYPE.socket : PROGRAM_TYPE.socketAddress;
}

/** Attach types of tcx, since Linux 6.6. @source linux/bpf.h BPF_TCX_INGRESS */
export const TCX = { ingress: 46, egress: 47 } as const;

/** Places of clsact. @source bpf/libbpf.h enum bpf_tc_attach_point */
export const CLSACT = { ingress: 1, egress: 2 } as const;

/** Which way packets go that a tc program sees. */
export type Direction = keyof typeof TCX;

/** Types of links. @source linux/bpf.h enum bpf_link_type */
export const LINK_TYPE = { cgroup: 3, tcx: 11 } as const;

/** Kinds of types in BTF. @source linux/btf.h */
export const BTF_KIND = { function: 12 } as const;

/** What a map without an operation answers; no libc has a name for it. @source Linux include/linux/errno.h ENOTSUPP */
export const ENOTSUPP = 524;
