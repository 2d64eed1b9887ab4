import { closeSync, openSync } from "node:fs";
import { invariant, ProxyError } from "@turnout/core";
import { errno, kernelError } from "../../netlink/errno.ts";
import { loadLibc } from "../../netlink/libc.ts";
import { fileError } from "../errors.ts";
import { NEWER } from "../features.ts";

/** @source linux/sched.h CLONE_NEWNET */
const NETWORK = 0x4000_0000;

/** @source asm-generic/socket.h SO_NETNS_COOKIE, since Linux 5.14 */
const SOCKET_LEVEL = 1;
const NAMESPACE_COOKIE = 71;

/** A socket of UDP over IPv4 that is closed by exec. @source bits/socket.h */
const UDP_SOCKET = [2, 0x8_0002, 0] as const;

interface Entry {
  readonly setns: (fd: number, kind: number) => number;
  readonly errno: () => number;
}

/**
 * Call `run` with this thread in another network namespace, and come back; what is opened in `run` stays in that one.
 *
 * Shape: `path` is e.g. `/proc/123/ns/net` or `/run/netns/pod`. `run` must do all it does before it returns: no promises.
 * @throws {ProxyError} `not_found` when the namespace is gone or was none, `permission_denied`, `host_unsupported`; what `run` throws.
 * @throws {Error} when there is no way back: the process can't go on then.
 */
export function inNetworkNamespace<T>(path: string, run: () => T): T {
  const entry = loadEntry();
  const there = openNamespace(path);
  try {
    const home = openNamespace("/proc/thread-self/ns/net");
    try {
      if (entry.setns(there, NETWORK) !== 0) throw refusal(entry.errno(), path);
      try {
        return run();
      } finally {
        invariant(entry.setns(home, NETWORK) === 0, "a thread can go back to the network namespace it came from");
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
  const { koffi, libc } = loadLibc();
  const fd = (libc.func("int socket(int family, int type, int protocol)") as (...args: readonly number[]) => number)(...UDP_SOCKET);
  if (fd < 0) throw kernelError(koffi.errno(), "a socket can't be opened");
  try {
    const cookie = Buffer.alloc(8);
    const ask = libc.func("int getsockopt(int fd, int level, int name, void *value, _Inout_ uint32_t *length)") as (
      ...args: readonly unknown[]
    ) => number;
    if (ask(fd, SOCKET_LEVEL, NAMESPACE_COOKIE, cookie, Uint32Array.of(cookie.length)) !== 0) throw cookieRefusal(koffi.errno());
    return cookie.readBigUInt64LE();
  } finally {
    closeSync(fd);
  }
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

function loadEntry(): Entry {
  const { koffi, libc } = loadLibc();
  return { setns: libc.func("int setns(int fd, int kind)"), errno: () => koffi.errno() };
}
