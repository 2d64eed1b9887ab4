// Which programs are really attached to a device.
import type { Direction } from "@turnout/host/bpf";
import { addressOf, bpfCalls } from "./calls.ts";

/** @source linux/bpf.h enum bpf_attach_type */
const TCX = { ingress: 46, egress: 47 } as const;
/** Where struct bpf_prog_query_opts has the programs' numbers and how many there are. @source bpf/bpf.h */
const OPTIONS_BYTES = 64;
const AT = { ids: 16, count: 24 } as const;
const PROGRAMS_MAX = 16;

/** The numbers of the programs of tcx at a device of this network namespace, in their order. */
export function programsAt(ifindex: number, direction: Direction): readonly number[] {
  const ids = Buffer.alloc(4 * PROGRAMS_MAX);
  const options = Buffer.alloc(OPTIONS_BYTES);
  options.writeBigUInt64LE(BigInt(OPTIONS_BYTES), 0);
  options.writeBigUInt64LE(addressOf(ids), AT.ids);
  options.writeUInt32LE(PROGRAMS_MAX, AT.count);
  const result = bpfCalls.query(ifindex, TCX[direction], options);
  // ENOENT: nothing was ever attached there.
  if (result < 0 && result !== -2) throw new Error(`the programs of a device can't be told: ${result}`);
  const count = result < 0 ? 0 : options.readUInt32LE(AT.count);
  return Array.from({ length: count }, (_, index) => ids.readUInt32LE(index * 4));
}
