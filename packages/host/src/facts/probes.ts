import { readFile } from "node:fs/promises";
import { ProxyError } from "@turnout/core";
import type { Exec } from "@turnout/core";

/** A version as numbers, for comparing; `text` is how it was written. */
export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
  readonly text: string;
}

/** What a probe of this host found. */
export interface HostProbe {
  readonly kernel: Version;
  readonly isRoot: boolean;
  /** CAP_NET_ADMIN is in force: what programming the network needs, root or not. */
  readonly hasNetAdmin: boolean;
  /** The kernel speaks IPv6 in this network namespace. */
  readonly hasIPv6: boolean;
}

/** Where a probe reads; the default is this machine's files. Rejects with `code: "ENOENT"` when there is no such file. */
export type ReadText = (path: string) => Promise<string>;

/** Bit of CAP_NET_ADMIN. @source linux/capability.h */
const CAP_NET_ADMIN = 12n;

/** Read `5.10`, `6.18.44-fc-v657`, `6.1.0+`: the number at the beginning. Undefined for anything else. */
export function parseKernelVersion(release: string): Version | undefined {
  return versionFrom(/^(\d+)\.(\d+)(?:\.(\d+))?/.exec(release.trim()), release.trim());
}

/** Read what `nft --version` says, e.g. `nftables v1.0.6 (Lester Gooch #5)`. Undefined for anything else. */
export function parseNftVersion(output: string): Version | undefined {
  const match = /^nftables v((\d+)\.(\d+)(?:\.(\d+))?)/.exec(output);
  return match === null ? undefined : versionFrom([match[0], match[2], match[3], match[4]], match[1] ?? "");
}

/** Tell whether `version` is `wanted` ("1.0.1", "5.8") or later; missing parts of `wanted` count as 0. @throws {ProxyError} `invalid_object` when `wanted` isn't a version. */
export function isAtLeast(version: Version, wanted: string): boolean {
  const least = parseKernelVersion(wanted);
  if (least === undefined) throw new ProxyError("invalid_object", "not a version", { object: wanted });
  return compare(version, least) >= 0;
}

/** Tell from the text of /proc/self/status whether a capability (its bit number) is in force. False when the text has no CapEff line. */
export function hasCapability(status: string, bit: bigint): boolean {
  const mask = /^CapEff:\s*([0-9a-fA-F]+)$/m.exec(status)?.[1];
  return mask !== undefined && ((BigInt(`0x${mask}`) >> bit) & 1n) === 1n;
}

/** Tell from the text of /proc/self/status whether CAP_NET_ADMIN is in force: what programming the network needs, root or not. */
export function hasNetAdmin(status: string): boolean {
  return hasCapability(status, CAP_NET_ADMIN);
}

/** Tell from the text of /proc/self/status whether the effective user is root. */
export function isRootStatus(status: string): boolean {
  return /^Uid:\s*\d+\s+0\s/m.test(status);
}

/**
 * Look at this host. Reads files, starts nothing.
 * @throws {ProxyError} `host_unsupported` when /proc is not Linux's.
 */
export async function probeHost(read: ReadText = readProc): Promise<HostProbe> {
  const release = await readRequired(read, "/proc/sys/kernel/osrelease");
  const kernel = parseKernelVersion(release);
  if (kernel === undefined) throw new ProxyError("host_unsupported", "not a Linux kernel", { object: release.trim() });
  const status = await readRequired(read, "/proc/self/status");
  return {
    kernel,
    isRoot: isRootStatus(status),
    hasNetAdmin: hasNetAdmin(status),
    // The file is there, empty or not, as long as the kernel has IPv6.
    hasIPv6: await exists(read, "/proc/net/if_inet6"),
  };
}

/** Ask nft for its version; undefined: it is not installed. @throws {ProxyError} what running it may throw, but for `tool_missing`. */
export async function nftVersion(exec: Exec, signal: AbortSignal, nft = "nft"): Promise<Version | undefined> {
  try {
    const { code, stdout, stderr } = await exec.run(nft, ["--version"], { timeoutMs: 10_000, signal });
    if (code === 0) return parseNftVersion(stdout);
    throw new ProxyError("tool_failed", `${nft} --version failed with code ${code}`, { object: stderr.trim().slice(0, 200) });
  } catch (error) {
    if (ProxyError.is(error, "tool_missing")) return undefined;
    throw error;
  }
}

function versionFrom(match: readonly (string | undefined)[] | null, text: string): Version | undefined {
  if (match === null) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3] ?? 0), text };
}

function compare(a: Version, b: Version): number {
  return a.major - b.major || a.minor - b.minor || a.patch - b.patch;
}

function readProc(path: string): Promise<string> {
  return readFile(path, "utf8");
}

async function readRequired(read: ReadText, path: string): Promise<string> {
  try {
    return await read(path);
  } catch (error) {
    throw ProxyError.from(error, "host_unsupported", "this host can't be probed", { object: path });
  }
}

async function exists(read: ReadText, path: string): Promise<boolean> {
  try {
    await read(path);
    return true;
  } catch (error) {
    if (typeof error === "object" && error !== null && "code" in error && error.code === "ENOENT") return false;
    throw ProxyError.from(error, "tool_failed", "this host can't be probed", { object: path });
  }
}
