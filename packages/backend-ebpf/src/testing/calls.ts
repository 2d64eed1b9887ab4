// Calls of the kernel that have to be over before they return, as the kit's questions are.
import koffi from "koffi";

type Bytes = Uint8Array;

const libc = koffi.load("libc.so.6");
const libbpf = koffi.load("libbpf.so.1");

/** Calls of libc: a negative result is a failure, and `errno()` says which. */
export const c = {
  socket: libc.func("int socket(int family, int type, int protocol)") as (family: number, type: number, protocol: number) => number,
  bind: libc.func("int bind(int fd, const void *address, uint32_t length)") as (fd: number, address: Bytes, length: number) => number,
  connect: libc.func("int connect(int fd, const void *address, uint32_t length)") as (fd: number, address: Bytes, length: number) => number,
  sendto: libc.func("long sendto(int fd, const void *bytes, size_t length, int flags, const void *address, uint32_t addressLength)") as (
    fd: number,
    bytes: Bytes,
    length: number,
    flags: number,
    address: Bytes | null,
    addressLength: number,
  ) => number,
  recv: libc.func("long recv(int fd, _Out_ uint8_t *bytes, size_t length, int flags)") as (
    fd: number,
    bytes: Bytes,
    length: number,
    flags: number,
  ) => number,
  recvfrom: libc.func(
    "long recvfrom(int fd, _Out_ uint8_t *bytes, size_t length, int flags, _Out_ uint8_t *address, _Inout_ uint32_t *addressLength)",
  ) as (fd: number, bytes: Bytes, length: number, flags: number, address: Bytes, addressLength: Uint32Array) => number,
  poll: libc.func("int poll(void *polled, unsigned long count, int timeoutMs)") as (
    polled: Bytes,
    count: number,
    timeoutMs: number,
  ) => number,
  getpeername: libc.func("int getpeername(int fd, _Out_ uint8_t *address, _Inout_ uint32_t *length)") as (
    fd: number,
    address: Bytes,
    length: Uint32Array,
  ) => number,
  setsockopt: libc.func("int setsockopt(int fd, int level, int name, const void *value, uint32_t length)") as (
    fd: number,
    level: number,
    name: number,
    value: Bytes,
    length: number,
  ) => number,
  getsockopt: libc.func("int getsockopt(int fd, int level, int name, _Out_ uint8_t *value, _Inout_ uint32_t *length)") as (
    fd: number,
    level: number,
    name: number,
    value: Bytes,
    length: Uint32Array,
  ) => number,
  setns: libc.func("int setns(int fd, int kind)") as (fd: number, kind: number) => number,
  deviceNumber: libc.func("unsigned int if_nametoindex(const char *name)") as (name: string) => number,
  close: libc.func("int close(int fd)") as (fd: number) => number,
};

/** Calls of libbpf: a negative result is the failure's number. */
export const bpfCalls = {
  openMap: libbpf.func("int bpf_map_get_fd_by_id(uint32_t id)") as (id: number) => number,
  nextKey: libbpf.func("int bpf_map_get_next_key(int fd, const void *key, _Out_ uint8_t *next)") as (
    fd: number,
    key: Bytes | null,
    next: Bytes,
  ) => number,
  query: libbpf.func("int bpf_prog_query_opts(int ifindex, int type, void *options)") as (
    ifindex: number,
    type: number,
    options: Bytes,
  ) => number,
};

/** Wait until there is something to be read. */
export function awaitInput(fd: number, timeoutMs: number): void {
  // struct pollfd, for POLLIN
  const polled = Buffer.alloc(8);
  polled.writeInt32LE(fd, 0);
  polled.writeInt16LE(1, 4);
  c.poll(polled, 1, timeoutMs);
}

/** The number of what failed last. */
export function errno(): number {
  return koffi.errno();
}

/** Where a buffer lies, for structs that point to others. */
export function addressOf(bytes: Bytes): bigint {
  return koffi.address(bytes);
}

/** A result that is no failure. @throws {Error} for one that is. */
export function sure(result: number, what: string): number {
  if (result < 0) throw new Error(`${what}: errno ${errno()}`);
  return result;
}

/** @source linux/socket.h */
export const AF = { inet: 2, netlink: 16, packet: 17, inet6: 10 } as const;
/** @source asm-generic/socket.h, bits/socket_type.h: closed by exec, and never waiting. */
export const SOCKET = { stream: 0x8_0801, datagram: 0x8_0802, raw: 0x8_0803 } as const;
/** @source asm-generic/errno.h */
export const ERRNO = { refused: 111, inProgress: 115 } as const;
/** @source linux/sched.h CLONE_NEWNET */
export const NETWORK = 0x4000_0000;
