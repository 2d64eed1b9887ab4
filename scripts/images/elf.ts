/** What the dynamic linker reads of a program or library. */
export interface ElfFacts {
  /** `e_machine`. */
  readonly machine: number;
  /** The dynamic linker that the kernel starts; undefined for libraries. */
  readonly interpreter: string | undefined;
  /** The libraries it is linked with, by file name, in the file's order. */
  readonly needed: readonly string[];
}

const PT_LOAD = 1n;
const PT_DYNAMIC = 2n;
const PT_INTERP = 3n;
const DT_NEEDED = 1n;
const DT_STRTAB = 5n;
const DYNAMIC_ENTRY = 16;

interface Segment {
  readonly type: bigint;
  readonly offset: number;
  readonly address: bigint;
  readonly size: number;
}

function segmentsOf(file: Buffer): readonly Segment[] {
  const [start, size, count] = [Number(file.readBigUInt64LE(32)), file.readUInt16LE(54), file.readUInt16LE(56)];
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * size;
    return {
      type: BigInt(file.readUInt32LE(at)),
      offset: Number(file.readBigUInt64LE(at + 8)),
      address: file.readBigUInt64LE(at + 16),
      size: Number(file.readBigUInt64LE(at + 32)),
    };
  });
}

function textAt(file: Buffer, offset: number): string {
  return file.toString("latin1", offset, file.indexOf(0, offset));
}

function neededOf(file: Buffer, segments: readonly Segment[], dynamic: Segment): readonly string[] {
  const entries = Array.from({ length: Math.floor(dynamic.size / DYNAMIC_ENTRY) }, (_, index) => {
    const at = dynamic.offset + index * DYNAMIC_ENTRY;
    return { tag: file.readBigUInt64LE(at), value: file.readBigUInt64LE(at + 8) };
  });
  const end = entries.findIndex(({ tag }) => tag === 0n);
  const used = end === -1 ? entries : entries.slice(0, end);
  const names = used.find(({ tag }) => tag === DT_STRTAB)?.value ?? 0n;
  const holder = segments.find(({ type, address, size }) => type === PT_LOAD && names >= address && names < address + BigInt(size));
  if (holder === undefined) return [];
  const table = holder.offset + Number(names - holder.address);
  return used.filter(({ tag }) => tag === DT_NEEDED).map(({ value }) => textAt(file, table + Number(value)));
}

/**
 * Read what the dynamic linker needs of an ELF file; undefined for any other file. Pure.
 *
 * Edges: of 64-bit little-endian files, which is what all our machines have; object files that are not linked (BPF programs) need nothing.
 * @throws {RangeError} when the file ends early.
 * @source man 5 elf
 */
export function readElf(file: Buffer): ElfFacts | undefined {
  if (file.length < 64 || file.readUInt32BE(0) !== 0x7f454c46 || file[4] !== 2 || file[5] !== 1) return undefined;
  const segments = segmentsOf(file);
  const interpreter = segments.find(({ type }) => type === PT_INTERP);
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC);
  return {
    machine: file.readUInt16LE(18),
    interpreter: interpreter === undefined ? undefined : textAt(file, interpreter.offset),
    needed: dynamic === undefined ? [] : neededOf(file, segments, dynamic),
  };
}
