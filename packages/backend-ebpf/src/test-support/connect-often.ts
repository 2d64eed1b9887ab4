// Calls of connect right behind one another, with nothing of Node's in between.
import koffi from "koffi";

/** @source bits/socket.h, bits/socket_type.h */
const [AF_INET, SOCK_STREAM, SOCK_DGRAM, SOCK_NONBLOCK] = [2, 1, 2, 0o4000];

const libc = koffi.load("libc.so.6");
const open = libc.func("int socket(int family, int type, int protocol)") as (...args: readonly number[]) => number;
const connect = libc.func("int connect(int fd, void *name, int length)") as (fd: number, name: Buffer, length: number) => number;
const close = libc.func("int close(int fd)") as (fd: number) => number;

/**
 * Connect one UDP socket over IPv4 again and again: a program and a change of its maps meet within nanoseconds, or never.
 * Gives the numbers of errors, each once; it stops at the first of them.
 */
export function connectOften(address: string, port: number, times: number): { readonly errors: readonly number[] } {
  const name = nameOf(address, port);
  const fd = openSocket(SOCK_DGRAM);
  for (let time = 0; time < times; time += 1) if (connect(fd, name, name.length) !== 0) return { errors: [koffi.errno()] };
  return { errors: [] };
}

/** Have so many sockets of TCP ask over IPv4. None waits for its answer. */
export function askByCrowd(address: string, port: number, sockets: number): void {
  const name = nameOf(address, port);
  for (let count = 0; count < sockets; count += 1) {
    const fd = openSocket(SOCK_STREAM | SOCK_NONBLOCK);
    connect(fd, name, name.length);
    close(fd);
  }
}

function openSocket(type: number): number {
  const fd = open(AF_INET, type, 0);
  if (fd < 0) throw new Error(`no socket: errno ${koffi.errno()}`);
  return fd;
}

/** struct sockaddr_in. */
function nameOf(address: string, port: number): Buffer {
  const name = Buffer.alloc(16);
  name.writeUInt16LE(AF_INET, 0);
  name.writeUInt16BE(port, 2);
  name.set(address.split(".").map(Number), 4);
  return name;
}
