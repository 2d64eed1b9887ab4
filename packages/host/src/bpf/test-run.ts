import { ProxyError } from "@turnout/core";
import { checked } from "./errors.ts";
import { whileHeld } from "./held.ts";
import type { Libbpf } from "./libbpf-calls.ts";

/** What a tc program sees of a packet beside its bytes, and may set. Numbers are the kernel's own. */
export interface SkbFields {
  readonly mark?: number;
  readonly priority?: number;
  /** The device it came in by, and the one it is on; 0 is the loopback device of this network namespace. */
  readonly ingressIfindex?: number;
  readonly ifindex?: number;
}

/** What is given to a program. */
export interface TestInput {
  /** From the Ethernet header on, at least 14 bytes. */
  readonly packet: Uint8Array;
  readonly fields?: SkbFields;
  /** How often the program is run on the same packet, one run after another; for measuring. */
  readonly repeat?: number;
}

/** What a program made of it. */
export interface TestOutcome {
  /** What the program returned, e.g. 0 for TC_ACT_OK, 2 for TC_ACT_SHOT; -1 (TC_ACT_UNSPEC) comes as that. */
  readonly code: number;
  /** The packet as the program left it. */
  readonly packet: Buffer;
  readonly fields: Required<SkbFields>;
  /** Of one run, on average. */
  readonly durationNs: number;
}

/** Where the fields lie. @source linux/bpf.h struct __sk_buff */
const FIELD: Readonly<Record<keyof SkbFields, number>> = { mark: 8, priority: 32, ingressIfindex: 36, ifindex: 40 };
const SKB_BYTES = 192;
/** How much longer than it was a program may make a packet. */
const HEADROOM = 512;

// Where the options lie. @source bpf/bpf.h struct bpf_test_run_opts
const OPTIONS_BYTES = 80;
const AT = {
  dataIn: 8,
  dataOut: 16,
  dataSizeIn: 24,
  dataSizeOut: 28,
  contextIn: 32,
  contextOut: 40,
  contextSizeIn: 48,
  contextSizeOut: 52,
  code: 56,
  repeat: 60,
  duration: 64,
} as const;

/** Write the fields as the kernel reads them. */
export function writeSkb(fields: SkbFields): Buffer {
  const bytes = Buffer.alloc(SKB_BYTES);
  for (const key of Object.keys(FIELD) as (keyof SkbFields)[]) bytes.writeUInt32LE(fields[key] ?? 0, FIELD[key]);
  return bytes;
}

/** Read them. */
export function readSkb(bytes: Buffer): Required<SkbFields> {
  const field = (key: keyof SkbFields): number => bytes.readUInt32LE(FIELD[key]);
  return { mark: field("mark"), priority: field("priority"), ingressIfindex: field("ingressIfindex"), ifindex: field("ifindex") };
}

/** See `testRun` of {@link BpfProgram}. */
export function testRun(lib: Libbpf, fd: number, label: string, { packet, fields = {}, repeat = 1 }: TestInput): TestOutcome {
  if (packet.length < 14) throw new ProxyError("invalid_object", "a packet has at least an Ethernet header", { object: label });
  const dataIn = Buffer.from(packet);
  const dataOut = Buffer.alloc(packet.length + HEADROOM);
  const contextIn = writeSkb(fields);
  const contextOut = Buffer.alloc(SKB_BYTES);
  const options = Buffer.alloc(OPTIONS_BYTES);
  options.writeBigUInt64LE(BigInt(OPTIONS_BYTES), 0);
  options.writeBigUInt64LE(lib.addressOf(dataIn), AT.dataIn);
  options.writeBigUInt64LE(lib.addressOf(dataOut), AT.dataOut);
  options.writeUInt32LE(dataIn.length, AT.dataSizeIn);
  options.writeUInt32LE(dataOut.length, AT.dataSizeOut);
  options.writeBigUInt64LE(lib.addressOf(contextIn), AT.contextIn);
  options.writeBigUInt64LE(lib.addressOf(contextOut), AT.contextOut);
  options.writeUInt32LE(contextIn.length, AT.contextSizeIn);
  options.writeUInt32LE(contextOut.length, AT.contextSizeOut);
  options.writeInt32LE(repeat, AT.repeat);
  const result = whileHeld([dataIn, dataOut, contextIn, contextOut], () => lib.testRun(fd, options));
  checked(result, "a BPF program can't be tried", {
    object: label,
    hint: "only programs for tc can, and not those for cgroup hooks",
  });
  return {
    code: options.readInt32LE(AT.code),
    packet: dataOut.subarray(0, options.readUInt32LE(AT.dataSizeOut)),
    fields: readSkb(contextOut),
    durationNs: options.readUInt32LE(AT.duration),
  };
}
