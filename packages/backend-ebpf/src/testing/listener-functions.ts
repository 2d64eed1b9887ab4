import type { Protocol } from "@turnout/core/backend";
import { ProgramFault, Value } from "./cpu.ts";
import type { Cpu, KernelFunction } from "./cpu.ts";
import { hold, isHeld, release } from "./held.ts";
import { aboutOf } from "./run-about.ts";

const SOCKET_BYTES = 80;
const UNWRITABLE: ReadonlySet<number> = new Set();
const CURRENT_NAMESPACE = -1;
const IPV4_TUPLE = 12;
const IPV6_TUPLE = 36;

/** A socket that listens, as a program has it. */
class ListenerValue extends Value {
  constructor() {
    super(Buffer.alloc(SOCKET_BYTES), UNWRITABLE);
  }
}

/**
 * Functions that look for sockets of the network namespace in which a program runs, by their numbers. Only listeners are there.
 * @source linux/bpf.h ___BPF_FUNC_MAPPER
 */
export const LISTENER_FUNCTIONS: Readonly<Record<number, KernelFunction>> = {
  // bpf_sk_lookup_udp
  85: (cpu) => lookUp(cpu, "UDP"),
  // bpf_sk_release
  86: (cpu) => {
    const value = cpu.valueAt(1);
    if (!(value instanceof ListenerValue) || !isHeld(cpu, value)) throw new ProgramFault("this is no socket that was found");
    release(cpu, value);
    cpu.answer(0);
  },
  // bpf_skc_lookup_tcp
  99: (cpu) => lookUp(cpu, "TCP"),
};

function lookUp(cpu: Cpu, protocol: Protocol): void {
  if (cpu.valueAt(1) !== cpu.setting.context) throw new ProgramFault("this is not the context");
  const length = cpu.register(3).low;
  if (length !== IPV4_TUPLE && length !== IPV6_TUPLE) throw new ProgramFault("the kernel in memory knows tuples of IPv4 and IPv6");
  if (cpu.register(4).low !== CURRENT_NAMESPACE || cpu.register(5).low !== 0)
    throw new ProgramFault("the kernel in memory looks in the own network namespace, without flags");
  const bytes = cpu.bytesAt(2, length);
  const width = length === IPV4_TUPLE ? 4 : 16;
  const address = Buffer.alloc(16);
  if (width === 4) address.writeUInt16BE(0xffff, 10);
  bytes.copy(address, 16 - width, width, 2 * width);
  const isThere = aboutOf(cpu).listens(protocol, address, bytes.readUInt16BE(2 * width + 2));
  cpu.giveBack(isThere ? hold(cpu, new ListenerValue()) : undefined);
}
