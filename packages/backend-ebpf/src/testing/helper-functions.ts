import { ProgramFault } from "./cpu.ts";
import type { Cpu, KernelFunction } from "./cpu.ts";
import { KernelMap } from "./kernel-maps.ts";
import { LISTENER_FUNCTIONS } from "./listener-functions.ts";
import { aboutOf } from "./run-about.ts";
import type { AskingSocket, PacketAbout } from "./run-about.ts";
import { errno } from "./errno.ts";
import type { UpdateMode } from "@turnout/host/bpf";

const MODES: readonly UpdateMode[] = ["any", "create", "replace"];
const FROM_NETWORK_HEADER = 1;

/** @source linux/bpf.h struct bpf_fib_lookup, flags and results of bpf_fib_lookup */
const ROUTE = { bytes: 64, family: 0, source: 16, destination: 32 } as const;
const ROUTE_FLAGS = { skipNeighbour: 4, source: 16 } as const;
const NO_SOURCE = 9;
const AF_INET = 2;

/**
 * The helpers that programs of this backend call, by their numbers.
 * @source linux/bpf.h ___BPF_FUNC_MAPPER
 */
export const HELPERS: Readonly<Record<number, KernelFunction>> = {
  ...LISTENER_FUNCTIONS,
  // bpf_map_lookup_elem
  1: (cpu) => {
    const map = mapOf(cpu);
    cpu.giveBack(map.find(keyOf(cpu, map)));
  },
  // bpf_map_update_elem
  2: (cpu) => {
    const map = mapOf(cpu);
    const key = keyOf(cpu, map);
    const value = cpu.bytesAt(3, map.shape.valueSize);
    const mode = MODES[cpu.register(4).low];
    const refusal = mode === undefined ? "EINVAL" : map.write(key, value, mode);
    cpu.answer(refusal === undefined ? 0 : -errno(refusal));
  },
  // bpf_map_delete_elem
  3: (cpu) => {
    const map = mapOf(cpu);
    const refusal = map.delete(keyOf(cpu, map));
    cpu.answer(refusal === undefined ? 0 : -errno(refusal));
  },
  // bpf_ktime_get_ns
  5: (cpu) => giveNumber(cpu, aboutOf(cpu).nowNs()),
  // bpf_get_prandom_u32
  7: (cpu) => cpu.register(0).set((aboutOf(cpu).random() * 2 ** 32) | 0, 0),
  // bpf_redirect
  23: () => {
    throw new ProgramFault("no packet of the kernel in memory goes another way");
  },
  // bpf_get_socket_cookie
  46: (cpu) => {
    requireContext(cpu);
    giveNumber(cpu, socketOf(cpu).cookie);
  },
  // bpf_skb_load_bytes_relative
  68: (cpu) => cpu.answer(loadBytes(cpu, packetOf(cpu))),
  // bpf_fib_lookup
  69: (cpu) => cpu.answer(lookUpRoute(cpu, packetOf(cpu))),
  // bpf_get_netns_cookie
  122: (cpu) => {
    requireContext(cpu);
    giveNumber(cpu, socketOf(cpu).namespace);
  },
  // bpf_set_retval
  187: (cpu) => {
    const socket = socketOf(cpu);
    socket.result = cpu.register(1).low;
    cpu.answer(0);
  },
};

function mapOf(cpu: Cpu): KernelMap {
  const map = cpu.mapAt(1);
  if (!(map instanceof KernelMap)) throw new ProgramFault("this is no map");
  return map;
}

function keyOf(cpu: Cpu, map: KernelMap): string {
  return cpu.bytesAt(2, map.shape.keySize).toString("latin1");
}

function giveNumber(cpu: Cpu, value: bigint): void {
  cpu.register(0).set(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
}

/** But for bpf_set_retval, helpers take the context first. */
function requireContext(cpu: Cpu): void {
  if (cpu.valueAt(1) !== cpu.setting.context) throw new ProgramFault("this is not the context");
}

function socketOf(cpu: Cpu): AskingSocket {
  const { socket } = aboutOf(cpu);
  if (socket === undefined) throw new ProgramFault("no socket asks here");
  return socket;
}

function packetOf(cpu: Cpu): PacketAbout {
  requireContext(cpu);
  const { packet } = aboutOf(cpu);
  if (packet === undefined) throw new ProgramFault("no packet is here");
  return packet;
}

function loadBytes(cpu: Cpu, { bytes }: PacketAbout): number {
  const [at, length] = [cpu.register(2).low, cpu.register(4).low];
  const to = cpu.writableAt(3, length);
  if (cpu.register(5).low !== FROM_NETWORK_HEADER) throw new ProgramFault("packets of the kernel in memory are read from the IP header on");
  if (at < 0 || at + length > bytes.length) {
    to.fill(0);
    return -errno("EFAULT");
  }
  bytes.copy(to, 0, at, at + length);
  return 0;
}

/** Linux 6.7 and later. What the neighbours are nobody knows here. */
function lookUpRoute(cpu: Cpu, { sourceTowards }: PacketAbout): number {
  const length = cpu.register(3).low;
  const flags = cpu.register(4).low;
  const wanted = ROUTE_FLAGS.skipNeighbour | ROUTE_FLAGS.source;
  if (length < ROUTE.bytes || flags !== wanted) return -errno("EINVAL");
  const route = cpu.writableAt(2, length);
  const isIPv4 = route[ROUTE.family] === AF_INET;
  const width = isIPv4 ? 4 : 16;
  const destination = Buffer.alloc(16);
  if (isIPv4) destination.writeUInt16BE(0xffff, 10);
  route.copy(destination, 16 - width, ROUTE.destination, ROUTE.destination + width);
  const source = sourceTowards(destination);
  if (source === undefined) return NO_SOURCE;
  source.copy(route, ROUTE.source, 16 - width, 16);
  return 0;
}
