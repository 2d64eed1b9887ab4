import { readdirSync, readFileSync } from "node:fs";

/** Greatest value of an address space that Go's clients print for "unlimited": 2^64 - 1. */
const UNLIMITED = 2 ** 64;

/**
 * Read a field of a file with lines like `VmSize:   123 kB` or `Threads: 7`. Pure.
 * @returns the first number after the name, times 1024 where its unit is kB
 */
export function statusNumber(text: string, name: string): number | undefined {
  const found = new RegExp(`^${name}:\\s+(\\d+)( kB)?`, "m").exec(text);
  return found === null ? undefined : Number(found[1]) * (found[2] === undefined ? 1 : 1024);
}

/** Read a soft limit out of /proc/self/limits, e.g. `Max open files`. Pure. Edges: `unlimited` is 2^64 - 1, as in Go's clients. */
export function softLimit(text: string, name: string): number | undefined {
  const found = new RegExp(`^${name}\\s+(\\d+|unlimited)`, "m").exec(text)?.[1];
  return found === undefined ? undefined : found === "unlimited" ? UNLIMITED : Number(found);
}

/** Read a counter out of /proc/self/net/netstat, where a line of names is followed by a line of values. Pure. */
export function netstatNumber(text: string, group: string, name: string): number | undefined {
  const [names, values] = text.split("\n").filter((line) => line.startsWith(`${group}: `));
  const place = names?.split(" ").indexOf(name) ?? -1;
  const value = place < 0 ? undefined : values?.split(" ")[place];
  return value === undefined ? undefined : Number(value);
}

/** Numbers of this process that Linux tells, each read when it is asked for; undefined where there is no /proc, or it says nothing of the kind. */
export const PROC_NUMBERS = {
  openFiles: (): number | undefined => absent(() => readdirSync("/proc/self/fd").length),
  openFilesMax: (): number | undefined => softLimit(textOf("limits"), "Max open files"),
  virtualBytes: (): number | undefined => statusNumber(textOf("status"), "VmSize"),
  virtualBytesMax: (): number | undefined => softLimit(textOf("limits"), "Max address space"),
  threads: (): number | undefined => statusNumber(textOf("status"), "Threads"),
  receivedBytes: (): number | undefined => netstatNumber(textOf("net/netstat"), "IpExt", "InOctets"),
  sentBytes: (): number | undefined => netstatNumber(textOf("net/netstat"), "IpExt", "OutOctets"),
} as const;

function textOf(name: string): string {
  return absent(() => readFileSync(`/proc/self/${name}`, "utf8")) ?? "";
}

/** What can't be read isn't told: on Windows there is no /proc, and a container may hide parts of it. */
function absent<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}
