import { ProxyError } from "@turnout/core";
import type { ErrorDetails } from "@turnout/core";
import { errno, errnoName, kernelError } from "../netlink/errno.ts";
import { ENOTSUPP } from "./constants.ts";
import type { MapInfo } from "./info.ts";

/** What eBPF takes, for hints. */
export const RIGHTS_HINT =
  "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; a container needs them too, and a seccomp profile that lets bpf(2) pass";

/** Put a refusal (`result` below 0) into an error. */
export function bpfError(result: number, what: string, details: ErrorDetails = {}): ProxyError {
  const value = Math.abs(result);
  if (value === ENOTSUPP) return new ProxyError("host_unsupported", `${what} (ENOTSUPP)`, details);
  const isDenied = value === errno("EPERM") || value === errno("EACCES");
  return kernelError(value, what, isDenied ? { hint: RIGHTS_HINT, ...details } : details);
}

/** Give back what a call of libbpf gave. @throws {ProxyError} when it is below 0. */
export function checked(result: number, what: string, details: ErrorDetails = {}): number {
  if (result < 0) throw bpfError(result, what, details);
  return result;
}

/** Put what node:fs throws into an error, with the code that its number stands for. */
export function fileError(error: unknown, what: string, object: string): ProxyError {
  const isSystems = error instanceof Error && "errno" in error && typeof error.errno === "number";
  return isSystems
    ? kernelError(Math.abs(error.errno as number), what, { object, cause: error })
    : ProxyError.from(error, "tool_failed", what, { object });
}

/** Say what a map is: its name, its type and its size. */
export function mapObject({ name, type, maxEntries }: Pick<MapInfo, "name" | "type" | "maxEntries">): string {
  return `map ${name} (${type}, ${maxEntries} entries)`;
}

/**
 * Put what the kernel has against one element of a map into an error.
 *
 * Edges: a hash that is full says E2BIG and a trie ENOSPC; an array's E2BIG means an index beyond its end.
 * @source Linux kernel/bpf/hashtab.c, lpm_trie.c, arraymap.c
 */
export function elementError(map: MapInfo, result: number): ProxyError {
  const value = Math.abs(result);
  const object = mapObject(map);
  const isArray = map.type === "array" || map.type === "per-cpu-array" || map.type === "array-of-maps";
  if (isArray && value === errno("E2BIG")) return new ProxyError("invalid_object", "an index is beyond the end of an array", { object });
  if (value === errno("E2BIG") || value === errno("ENOSPC"))
    return new ProxyError("limit_reached", `a BPF map is full (${errnoName(value)})`, {
      object,
      hint: "give it more entries, or let it have fewer",
    });
  if (value === errno("ENOMEM"))
    return new ProxyError("limit_reached", "the kernel has no memory for an element of a BPF map (ENOMEM)", { object });
  return bpfError(value, "an element of a BPF map can't be dealt with", { object });
}
