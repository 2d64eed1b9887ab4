import koffi from "koffi";

/** @source bits/socket.h */
const [AF_INET, SOCK_DGRAM] = [2, 2];

/**
 * Connect one UDP socket over IPv4 again and again, with nothing in between: a program and a change of its maps meet within nanoseconds, or never.
 * Gives the numbers of errors, each once; it stops at the first of them.
 */
export function connectOften(address: string, port: number, times: number): { readonly errors: readonly number[] } {
  const libc = koffi.load("libc.so.6");
  const open = libc.func("int socket(int family, int type, int protocol)") as (...args: readonly number[]) => number;
  const connect = libc.func("int connect(int fd, void *name, int length)") as (fd: number, name: Buffer, length: number) => number;
  const name = Buffer.alloc(16);
  name.writeUInt16LE(AF_INET, 0);
  name.writeUInt16BE(port, 2);
  name.set(address.split(".").map(Number), 4);
  const fd = open(AF_INET, SOCK_DGRAM, 0);
  if (fd < 0) throw new Error(`no socket: errno ${koffi.errno()}`);
  for (let time = 0; time < times; time += 1) if (connect(fd, name, name.length) !== 0) return { errors: [koffi.errno()] };
  return { errors: [] };
}
