import type { Protocol } from "@turnout/core/backend";
import { ProgramFault, Value } from "./cpu.ts";
import type { Cpu, KernelFunction } from "./cpu.ts";
import { errno } from "./errno.ts";
import { hold, isHeld, release } from "./held.ts";
import type { Conntrack, TrackedFlow, Tuple } from "./conntrack.ts";
import { aboutOf } from "./run-about.ts";

/** Where the kernel in memory has the fields that programs read of its structs: not where programs/conntrack.h declares them. */
export const KERNEL_FIELDS: Readonly<Record<string, number>> = { "nf_conn.status": 128, "nf_conn.proto.tcp.state": 184 };

/** @source net/netfilter/nf_conntrack_bpf.c struct bpf_ct_opts */
const OPTIONS = { namespace: 0, error: 4, protocol: 8, direction: 9, reserved: 10, bytes: 12 } as const;
const CURRENT_NAMESPACE = -1;
const FLOW_BYTES = 256;
/** @source linux/netfilter/nf_conntrack_common.h IPS_DST_NAT */
const DESTINATION_NAT = 1n << 5n;
const UNWRITABLE: ReadonlySet<number> = new Set();
const PROTOCOLS: Readonly<Record<number, Protocol>> = { 6: "TCP", 17: "UDP" };
const MANIPULATION = { source: 0, destination: 1 } as const;
/** What a flow begins with. @source net/netfilter/nf_conntrack_bpf.c */
const FIRST_MS = 10;

/** A flow as a program has it: found, or not inserted yet. */
class FlowValue extends Value {
  readonly flow: TrackedFlow;
  readonly isInserted: boolean;
  timeoutMs: number = FIRST_MS;

  constructor(flow: TrackedFlow, isInserted: boolean) {
    super(Buffer.allocUnsafe(FLOW_BYTES).fill(0xa5), UNWRITABLE);
    this.flow = flow;
    this.isInserted = isInserted;
    const isRewritten = flow.reply.source !== flow.original.destination || flow.reply.sourcePort !== flow.original.port;
    this.bytes.writeBigUInt64LE(isRewritten ? DESTINATION_NAT : 0n, KERNEL_FIELDS["nf_conn.status"]);
    this.bytes.writeUInt8(flow.tcpState, KERNEL_FIELDS["nf_conn.proto.tcp.state"]);
  }
}

/** Kfuncs of conntrack, as in Linux 6.18. */
export const CONNTRACK_FUNCTIONS: Readonly<Record<string, KernelFunction>> = {
  bpf_skb_ct_lookup: (cpu) =>
    withTuple(cpu, (tuple, conntrack, options) => {
      const flow = conntrack.find(tuple);
      if (flow === undefined) return "ENOENT";
      options.writeUInt8(flow.original.source === tuple.source && flow.original.sourcePort === tuple.sourcePort ? 0 : 1, OPTIONS.direction);
      return hold(cpu, new FlowValue(flow, true));
    }),
  bpf_skb_ct_alloc: (cpu) => withTuple(cpu, (tuple, conntrack) => hold(cpu, new FlowValue(conntrack.begin(tuple), false))),
  bpf_ct_set_nat_info: (cpu) => {
    const { flow } = heldAt(cpu, false);
    const isIPv4 = isMapped(flow.original.source);
    const address = cpu.bytesAt(2, 16);
    const text = isIPv4 ? MAPPED + address.toString("latin1", 0, 4) : address.toString("latin1");
    const port = cpu.register(3).low;
    const { conntrack } = packetAbout(cpu);
    if (cpu.register(4).low === MANIPULATION.source) {
      if (port > 0) throw new ProgramFault("the kernel in memory chooses the source port itself");
      conntrack.setSource(flow, text);
    } else conntrack.setDestination(flow, text, port > 0 ? port : flow.reply.sourcePort);
    cpu.answer(0);
  },
  bpf_ct_set_timeout: (cpu) => {
    heldAt(cpu, false).timeoutMs = cpu.register(2).low >>> 0;
  },
  bpf_ct_insert_entry: (cpu) => {
    const value = heldAt(cpu, false);
    release(cpu, value);
    const isInserted = packetAbout(cpu).conntrack.insert(value.flow, value.timeoutMs);
    cpu.giveBack(isInserted ? hold(cpu, new FlowValue(value.flow, true)) : undefined);
  },
  bpf_ct_change_timeout: (cpu) => {
    const { flow } = heldAt(cpu, true);
    const timeoutMs = cpu.register(2).low >>> 0;
    if (timeoutMs === 0) packetAbout(cpu).conntrack.remove(flow);
    else flow.endsMs = Number(aboutOf(cpu).nowNs() / 1_000_000n) + timeoutMs;
    cpu.answer(0);
  },
  bpf_ct_release: (cpu) => release(cpu, heldAt(cpu, true)),
};

const MAPPED = `${"\0".repeat(10)}\xff\xff`;

function isMapped(address: string): boolean {
  return address.startsWith(MAPPED);
}

function packetAbout(cpu: Cpu): { readonly conntrack: Conntrack } {
  const { packet } = aboutOf(cpu);
  if (packet === undefined) throw new ProgramFault("no packet is here");
  return packet;
}

function heldAt(cpu: Cpu, isInserted: boolean): FlowValue {
  const value = cpu.valueAt(1);
  if (!(value instanceof FlowValue) || !isHeld(cpu, value) || value.isInserted !== isInserted)
    throw new ProgramFault(`this is no flow of conntrack that ${isInserted ? "was found" : "is to be inserted"}`);
  return value;
}

/** Look at the arguments that the first two functions share: skb, tuple, its size, options, their size. */
function withTuple(cpu: Cpu, work: (tuple: Tuple, conntrack: Conntrack, options: Buffer) => FlowValue | "ENOENT"): void {
  if (cpu.valueAt(1) !== cpu.setting.context) throw new ProgramFault("this is not the context");
  const length = cpu.register(5).low;
  const options = cpu.writableAt(4, length);
  const result = tryTuple(cpu, options, work);
  if (typeof result === "string") options.writeInt32LE(-errno(result), OPTIONS.error);
  cpu.giveBack(typeof result === "string" ? undefined : result);
}

type Refusal = "EINVAL" | "EPROTO" | "EAFNOSUPPORT" | "ENOENT";

function tryTuple(
  cpu: Cpu,
  options: Buffer,
  work: (tuple: Tuple, conntrack: Conntrack, options: Buffer) => FlowValue | "ENOENT",
): FlowValue | Refusal {
  if (options.length < OPTIONS.bytes) throw new ProgramFault("the options of conntrack are too short for an error");
  if (options.length !== OPTIONS.bytes || options.readUInt16LE(OPTIONS.reserved) !== 0) return "EINVAL";
  if (options.readInt32LE(OPTIONS.namespace) !== CURRENT_NAMESPACE) return "EINVAL";
  const protocol = PROTOCOLS[options.readUInt8(OPTIONS.protocol)];
  if (protocol === undefined) return "EPROTO";
  const size = cpu.register(3).low;
  if (size !== 12 && size !== 36) return "EAFNOSUPPORT";
  const bytes = cpu.bytesAt(2, size);
  const width = size === 12 ? 4 : 16;
  const prefix = size === 12 ? MAPPED : "";
  const tuple: Tuple = {
    protocol,
    source: prefix + bytes.toString("latin1", 0, width),
    destination: prefix + bytes.toString("latin1", width, 2 * width),
    sourcePort: bytes.readUInt16BE(2 * width),
    port: bytes.readUInt16BE(2 * width + 2),
  };
  return work(tuple, packetAbout(cpu).conntrack, options);
}
