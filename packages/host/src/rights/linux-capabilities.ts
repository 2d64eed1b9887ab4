/** The kernel's capabilities, each at the place of its bit. @source linux/capability.h */
const NAMES: readonly string[] = [
  "CHOWN",
  "DAC_OVERRIDE",
  "DAC_READ_SEARCH",
  "FOWNER",
  "FSETID",
  "KILL",
  "SETGID",
  "SETUID",
  "SETPCAP",
  "LINUX_IMMUTABLE",
  "NET_BIND_SERVICE",
  "NET_BROADCAST",
  "NET_ADMIN",
  "NET_RAW",
  "IPC_LOCK",
  "IPC_OWNER",
  "SYS_MODULE",
  "SYS_RAWIO",
  "SYS_CHROOT",
  "SYS_PTRACE",
  "SYS_PACCT",
  "SYS_ADMIN",
  "SYS_BOOT",
  "SYS_NICE",
  "SYS_RESOURCE",
  "SYS_TIME",
  "SYS_TTY_CONFIG",
  "MKNOD",
  "LEASE",
  "AUDIT_WRITE",
  "AUDIT_CONTROL",
  "SETFCAP",
  "MAC_OVERRIDE",
  "MAC_ADMIN",
  "SYSLOG",
  "WAKE_ALARM",
  "BLOCK_SUSPEND",
  "AUDIT_READ",
  "PERFMON",
  "BPF",
  "CHECKPOINT_RESTORE",
];

/** The sets of a thread's capabilities, as bits. */
export interface CapabilitySets {
  readonly effective: bigint;
  readonly permitted: bigint;
  readonly inheritable: bigint;
  readonly bounding: bigint;
}

/** The bits of capabilities by name, e.g. `CAP_NET_ADMIN`; names that aren't known have none. */
export function bitsOf(names: Iterable<string>): bigint {
  let bits = 0n;
  for (const name of names) {
    const at = NAMES.indexOf(name.replace(/^CAP_/, ""));
    if (at >= 0) bits |= 1n << BigInt(at);
  }
  return bits;
}

/** The names of bits; one that is newer than this table is e.g. `CAP_63`. */
export function namesOf(bits: bigint): readonly string[] {
  return placesOf(bits).map((at) => `CAP_${NAMES[at] ?? at}`);
}

/** Which bits are set, from the lowest. */
export function placesOf(bits: bigint): readonly number[] {
  return Array.from({ length: bits.toString(2).length }, (_, at) => at).filter((at) => ((bits >> BigInt(at)) & 1n) === 1n);
}

/** Read the text of a thread's `status` in /proc; sets that it lacks are empty. */
export function parseCapabilities(status: string): CapabilitySets {
  const set = (name: string): bigint => BigInt(`0x${new RegExp(`^${name}:\\s*([0-9a-f]+)$`, "m").exec(status)?.[1] ?? "0"}`);
  return { effective: set("CapEff"), permitted: set("CapPrm"), inheritable: set("CapInh"), bounding: set("CapBnd") };
}
