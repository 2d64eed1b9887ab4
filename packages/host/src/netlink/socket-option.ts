import { closeSync } from "node:fs";
import type { IPFamily } from "@turnout/core";
import { kernelError } from "./errno.ts";
import { loadLibc } from "./libc.ts";

// @source bits/socket.h; SOCK_DGRAM and SOCK_CLOEXEC
const ADDRESS_FAMILY: Readonly<Record<IPFamily, number>> = { IPv4: 2, IPv6: 10 };
const DATAGRAMS = 0x8_0002;
/** @source linux/in.h SOL_IP, SOL_IPV6 */
const LEVEL: Readonly<Record<IPFamily, number>> = { IPv4: 0, IPv6: 41 };

interface Calls {
  readonly socket: (family: number, type: number, protocol: number) => number;
  readonly ask: (fd: number, level: number, name: number, value: Uint8Array, length: Uint32Array) => number;
  readonly errno: () => number;
}

let calls: Calls | undefined;

/**
 * Ask the kernel's network code by getsockopt, as old tools do: one call, some microseconds. What is asked for is in `value`, and then the answer.
 *
 * Shape: resolves to the error's number, 0 for success.
 * @throws {ProxyError} `host_unsupported` without glibc, `tool_failed` without a socket.
 */
export function readSocketOption(family: IPFamily, name: number, value: Uint8Array): number {
  const { socket, ask, errno } = (calls ??= loadCalls());
  const fd = socket(ADDRESS_FAMILY[family], DATAGRAMS, 0);
  if (fd < 0) throw kernelError(errno(), "a socket can't be opened");
  try {
    return ask(fd, LEVEL[family], name, value, Uint32Array.of(value.length)) === 0 ? 0 : errno();
  } finally {
    closeSync(fd);
  }
}

function loadCalls(): Calls {
  const { koffi, libc } = loadLibc();
  return {
    socket: libc.func("int socket(int family, int type, int protocol)"),
    ask: libc.func("int getsockopt(int fd, int level, int name, _Inout_ uint8_t *value, _Inout_ uint32_t *length)"),
    errno: () => koffi.errno(),
  };
}
