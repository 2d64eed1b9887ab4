import { closeSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import { ProxyError } from "@turnout/core";
import { hasCapability } from "../facts/probes.ts";
import type { ReadText } from "../facts/probes.ts";
import { errno, errnoName } from "../netlink/errno.ts";
import { BTF_KIND, CGROUP_HOOK, MAP_TYPE, PROGRAM_TYPE, programTypeAt, TCX } from "./constants.ts";
import type { CgroupHook } from "./constants.ts";
import { missingFeatures } from "./features.ts";
import type { BpfFeature, Found } from "./features.ts";
import type { Libbpf } from "./libbpf-calls.ts";
import { loadLibbpf } from "./libbpf.ts";
import { bpfMountsIn } from "./mounts.ts";
import { canDestroySockets } from "./sockets/sockets.ts";

/** What a probe of this host found. */
export interface BpfProbe {
  /** E.g. `1.1`; undefined: libbpf isn't there. */
  readonly libbpf: string | undefined;
  /** Where a bpffs is mounted. */
  readonly bpffs: string | undefined;
  /** Where cgroup v2 is mounted: often /sys/fs/cgroup, beside version 1 /sys/fs/cgroup/unified. */
  readonly cgroup2: string | undefined;
  /** Hooks of cgroups that this kernel lacks. */
  readonly missingHooks: readonly CgroupHook[];
  /** Functions of {@link CONNTRACK_KFUNCS} that this kernel lacks. */
  readonly missingKfuncs: readonly string[];
  /** What is missing, as one line each. A feature that could not be tried, because of another that is missing, is among them. */
  readonly missing: ReadonlyMap<BpfFeature, ProxyError>;
}

/** Functions of conntrack that tc programs call. @source Linux net/netfilter/nf_conntrack_bpf.c, nf_nat_bpf.c */
export const CONNTRACK_KFUNCS: readonly string[] = [
  "bpf_skb_ct_lookup",
  "bpf_skb_ct_alloc",
  "bpf_ct_insert_entry",
  "bpf_ct_release",
  "bpf_ct_set_timeout",
  "bpf_ct_change_timeout",
  "bpf_ct_set_nat_info",
];

/** Modules that may have them. */
const MODULES = ["nf_conntrack", "nf_nat"] as const;

/** Bits of capabilities. @source linux/capability.h */
const CAPABILITY = { CAP_NET_ADMIN: 12n, CAP_SYS_ADMIN: 21n, CAP_PERFMON: 38n, CAP_BPF: 39n } as const;

/** `r0 = 1; exit`: a program that every hook takes. @source linux/bpf_common.h */
const TRIVIAL = Buffer.from([0xb7, 0, 0, 0, 1, 0, 0, 0, 0x95, 0, 0, 0, 0, 0, 0, 0]);

/**
 * `bpf_get_netns_cookie(ctx); bpf_set_retval(-ECONNREFUSED); return 0`: what a hook needs to know who asks, and to refuse.
 * @source linux/bpf.h: functions 122 and 187
 */
const REFUSAL = Buffer.from("850000007a000000b701000091ffffff85000000bb000000b7000000000000009500000000000000", "hex");

/**
 * Tell from the text of /proc/self/status which rights are missing for loading programs of the network; "" when none is. Pure.
 *
 * Edges: CAP_SYS_ADMIN stands for CAP_BPF and CAP_PERFMON, as it does for the kernel.
 */
export function missingRights(status: string): string {
  const has = (name: keyof typeof CAPABILITY): boolean => hasCapability(status, CAPABILITY[name]);
  const wanted = has("CAP_SYS_ADMIN") ? (["CAP_NET_ADMIN"] as const) : (["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"] as const);
  return wanted.filter((name) => !has(name)).join(", ");
}

/**
 * Look which features for eBPF this kernel has, by trying them and not by its version.
 *
 * Edges: leaves nothing behind: what it loads is attached to nothing and closed at once. Takes some 50 ms, most of it on another thread, for the kernel's types.
 * @throws {ProxyError} `host_unsupported` when /proc is not Linux's.
 */
export async function probeBpf(read: ReadText = (path) => readFile(path, "utf8")): Promise<BpfProbe> {
  const { bpffs, cgroup2 } = bpfMountsIn(await readRequired(read, "/proc/self/mountinfo"));
  const rights = missingRights(await readRequired(read, "/proc/self/status"));
  const library = tryLibbpf();
  const lib = "missing" in library ? undefined : library;
  const able = lib !== undefined && rights === "" ? lib : undefined;
  const untried: Found = { untriedFor: lib === undefined ? "libbpf" : "rights" };
  const missingHooks = able === undefined ? [] : await hooksMissing(able);
  const types = lib === undefined ? undefined : await kfuncsMissing(lib);
  const found: Record<BpfFeature, Found> = {
    libbpf: "missing" in library ? library : true,
    rights: foundUnless(rights === "" ? "" : `without ${rights}`),
    bpffs: bpffs === undefined ? { missing: "" } : true,
    cgroup2: cgroup2 === undefined ? { missing: "" } : true,
    btf: lib === undefined ? untried : types === undefined ? { missing: "" } : true,
    batches: able === undefined ? untried : await tryBatches(able),
    "cgroup-hooks": able === undefined ? untried : foundUnless(missingHooks.join(", ")),
    refusals:
      able === undefined ? untried : foundUnless(withProgram(able, PROGRAM_TYPE.socketAddress, CGROUP_HOOK.connect4, () => "", REFUSAL)),
    links: able === undefined ? untried : tryLinks(able),
    tc: able === undefined ? untried : foundUnless(withProgram(able, PROGRAM_TYPE.tc, 0, () => "")),
    tcx: able === undefined ? untried : tryTcx(able),
    conntrack: types === undefined ? { untriedFor: "btf" } : foundUnless(types.join(", ")),
    "socket-destroy": await canDestroySockets(),
  };
  return {
    libbpf: lib?.version().replace(/^v/, ""),
    bpffs,
    cgroup2,
    missingHooks,
    missingKfuncs: types ?? CONNTRACK_KFUNCS,
    missing: missingFeatures(found),
  };
}

function foundUnless(missing: string): Found {
  return missing === "" ? true : { missing };
}

function tryLibbpf(): Libbpf | { readonly missing: string } {
  try {
    return loadLibbpf();
  } catch (error) {
    if (ProxyError.is(error)) return { missing: error.what };
    throw error;
  }
}

/** What `use` says of a program, by default of one that does nothing; or why it can't be loaded. */
function withProgram(lib: Libbpf, type: number, attachType: number, use: (fd: number) => string, program: Buffer = TRIVIAL): string {
  // @source bpf/bpf.h struct bpf_prog_load_opts, up to expected_attach_type
  const options = Buffer.alloc(16);
  options.writeBigUInt64LE(BigInt(options.length), 0);
  options.writeUInt32LE(attachType, 12);
  const fd = lib.loadProgram(type, "turnout_probe", "GPL", program, program.length / 8, options);
  if (fd < 0) return errnoName(-fd);
  try {
    return use(fd);
  } finally {
    closeSync(fd);
  }
}

async function hooksMissing(lib: Libbpf): Promise<readonly CgroupHook[]> {
  const missing: CgroupHook[] = [];
  for (const hook of Object.keys(CGROUP_HOOK) as CgroupHook[]) {
    if (withProgram(lib, programTypeAt(hook), CGROUP_HOOK[hook], () => "") !== "") missing.push(hook);
    await nextTurn();
  }
  return missing;
}

/** To what isn't there nothing can be attached, but the kernel looks for it only if it knows the command: then it says `known`. */
function expectRefusal(result: number, known: "EBADF" | "ENODEV"): string {
  return result === -errno(known) ? "" : errnoName(Math.abs(result));
}

function tryLinks(lib: Libbpf): Found {
  const hook = CGROUP_HOOK.connect4;
  const answer = withProgram(lib, PROGRAM_TYPE.socketAddress, hook, (fd) => {
    const created = expectRefusal(lib.createLink(fd, -1, hook, undefined), "EBADF");
    return created === "" ? expectRefusal(lib.updateLink(-1, fd, undefined), "EBADF") : created;
  });
  return foundUnless(answer);
}

function tryTcx(lib: Libbpf): Found {
  const nowhere = 0x7fff_ffff;
  return foundUnless(
    withProgram(lib, PROGRAM_TYPE.tc, 0, (fd) => expectRefusal(lib.createLink(fd, nowhere, TCX.ingress, undefined), "ENODEV")),
  );
}

async function tryBatches(lib: Libbpf): Promise<Found> {
  const fd = lib.createMap(MAP_TYPE.hash, "turnout_probe", 4, 4, 1, undefined);
  if (fd < 0) return { missing: errnoName(-fd) };
  try {
    const result = await lib.updateBatch(fd, Buffer.alloc(4), Buffer.alloc(4), Uint32Array.of(1), undefined);
    return result < 0 ? { missing: errnoName(-result) } : true;
  } finally {
    closeSync(fd);
  }
}

/** Undefined where the kernel doesn't tell its types. */
async function kfuncsMissing(lib: Libbpf): Promise<readonly string[] | undefined> {
  const kernel = await lib.kernelBtf();
  if (kernel === undefined) return undefined;
  const all = [kernel];
  try {
    for (const name of MODULES) {
      const module = await lib.moduleBtf(name, kernel);
      if (module !== undefined) all.push(module);
    }
    const missing: string[] = [];
    for (const name of CONNTRACK_KFUNCS) {
      const ids = await Promise.all(all.map((btf) => lib.findType(btf, name, BTF_KIND.function)));
      if (ids.every((id) => id < 0)) missing.push(name);
    }
    return missing;
  } finally {
    for (const btf of all.toReversed()) lib.freeBtf(btf);
  }
}

async function readRequired(read: ReadText, path: string): Promise<string> {
  try {
    return await read(path);
  } catch (error) {
    throw ProxyError.from(error, "host_unsupported", "this host can't be probed", { object: path });
  }
}
