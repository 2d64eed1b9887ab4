import { closeSync, openSync } from "node:fs";
import { invariant, ProxyError } from "@turnout/core";
import { errno, kernelError } from "../../netlink/errno.ts";
import { loadLibc } from "../../netlink/libc.ts";
import { readSocketOption, SOL } from "../../netlink/socket.ts";
import { fileError } from "../errors.ts";
import { NEWER } from "../features.ts";

/** @source linux/sched.h CLONE_NEWNET */
const NETWORK = 0x4000_0000;

/** @source asm-generic/socket.h SO_NETNS_COOKIE, since Linux 5.14 */
const NAMESPACE_COOKIE = 71;

/**
 * Call `run` with this thread in another network namespace, and come back; what is opened in `run` stays in that one.
 *
 * Shape: `path` is e.g. `/proc/123/ns/net` or `/run/netns/pod`. `run` must do all it does before it returns: no promises.
 * @throws {ProxyError} `not_found` when the namespace is gone or was none, `permission_denied`, `host_unsupported`; what `run` throws.
 * @throws {Error} when there is no way back: the process can't go on then.
 */
export function inNetworkNamespace<T>(path: string, run: () => T): T {
  const { koffi, libc } = loadLibc();
  const setns = libc.func("int setns(int fd, int kind)") as (fd: number, kind: number) => number;
  const there = openNamespace(path);
  try {
    const home = openNamespace("/proc/thread-self/ns/net");
    try {
      if (setns(there, NETWORK) !== 0) throw refusal(koffi.errno(), path);
      try {
        return run();
      } finally {
        invariant(setns(home, NETWORK) === 0, "a thread can go back to the network namespace it came from");
      }
    } finally {
      closeSync(home);
    }
  } finally {
    closeSync(there);
  }
}

/**
 * Tell the cookie of this thread's network namespace, which BPF programs get from bpf_get_netns_cookie.
 *
 * Edges: unlike its inode number no other namespace gets it again before the next boot. Of another namespace: call it by {@link inNetworkNamespace}.
 * @throws {ProxyError} `host_unsupported` before Linux 5.14, `permission_denied`, `tool_failed`.
 */
export function networkNamespaceCookie(): bigint {
  const cookie = Buffer.alloc(8);
  const error = readSocketOption("IPv4", NAMESPACE_COOKIE, cookie, SOL.socket);
  if (error !== 0) throw cookieRefusal(error);
  return cookie.readBigUInt64LE();
}

/** Before Linux 5.14 the option is unknown. */
function cookieRefusal(errorNumber: number): ProxyError {
  if (errorNumber !== errno("ENOPROTOOPT")) return kernelError(errorNumber, "the cookie of a network namespace can't be read");
  const hint = `${NEWER}: Linux 5.14 for this, and 5.18 for all that eBPF needs`;
  return new ProxyError("host_unsupported", "this kernel has no cookies of network namespaces (ENOPROTOOPT)", { hint });
}

/** In /run/netns there may be a file that is no namespace: of one that is just being made, or was mounted elsewhere. */
function refusal(errorNumber: number, path: string): ProxyError {
  const what = "a network namespace can't be entered";
  return errorNumber === errno("EINVAL")
    ? new ProxyError("not_found", `${what}, this is none (EINVAL)`, { object: path })
    : kernelError(errorNumber, what, { object: path });
}

function openNamespace(path: string): number {
  try {
    return openSync(path, "r");
  } catch (error) {
    throw fileError(error, "a network namespace can't be opened", path);
  }
}
