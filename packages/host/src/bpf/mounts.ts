import { readFileSync } from "node:fs";

/** A file system that is mounted. */
export interface Mount {
  readonly path: string;
  readonly type: string;
}

/** Read /proc/self/mountinfo, oldest mount first. Pure. */
export function parseMounts(mountinfo: string): readonly Mount[] {
  return mountinfo.split("\n").flatMap((line) => {
    const fields = line.split(" ");
    const dash = fields.indexOf("-");
    const path = fields[4];
    const type = dash < 0 ? undefined : fields[dash + 1];
    return path === undefined || type === undefined ? [] : [{ path: unescaped(path), type }];
  });
}

/**
 * Find where a file system of a type is mounted: at the usual place if it is there, otherwise where it was mounted first. Pure.
 *
 * Edges: undefined when it isn't mounted, or another file system lies over it.
 */
export function findMount(mounts: readonly Mount[], type: string, usual: string): string | undefined {
  const seen = new Map(mounts.map((mount) => [mount.path, mount.type]));
  const paths = [...seen].filter(([, found]) => found === type).map(([path]) => path);
  return paths.includes(usual) ? usual : paths[0];
}

/** The kernel writes a space as \040. */
function unescaped(path: string): string {
  return path.replaceAll(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));
}

/** Where file systems for eBPF are mounted; undefined: nowhere. */
export interface BpfMounts {
  readonly bpffs: string | undefined;
  /** Of cgroup v2. */
  readonly cgroup2: string | undefined;
}

/** Find them among the mounts of a process. Pure. */
export function bpfMountsIn(mountinfo: string): BpfMounts {
  const mounts = parseMounts(mountinfo);
  return { bpffs: findMount(mounts, "bpf", "/sys/fs/bpf"), cgroup2: findMount(mounts, "cgroup2", "/sys/fs/cgroup") };
}

/** Find them as this process sees them. @throws an error of node:fs where /proc is not Linux's. */
export function findBpfMounts(): BpfMounts {
  return bpfMountsIn(readFileSync("/proc/self/mountinfo", "utf8"));
}
