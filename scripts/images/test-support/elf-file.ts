interface ElfOptions {
  readonly machine: number;
  readonly interpreter?: string;
  readonly needed?: readonly string[];
}

const HEADER = 64;
const SEGMENT = 56;
/** Where the only loaded segment is in memory: elsewhere than in the file, as in real ones. */
const BASE = 0x40_0000;

/** Make an ELF file that has what the dynamic linker reads, and nothing else. */
export function elfFile({ machine, interpreter, needed = [] }: ElfOptions): Buffer {
  const strings = Buffer.from(["", ...needed, ""].join("\0"), "latin1");
  const linker = Buffer.from(`${interpreter ?? ""}\0`, "latin1");
  const entries = [
    ...needed.map((name): [number, number] => [1, strings.indexOf(`${name}\0`)]),
    [5, 0] as [number, number],
    [0, 0] as [number, number],
  ];
  const count = interpreter === undefined ? 2 : 3;
  const stringsAt = HEADER + count * SEGMENT;
  const linkerAt = stringsAt + strings.length;
  const dynamicAt = linkerAt + linker.length;
  const file = Buffer.alloc(dynamicAt + entries.length * 16);
  file.writeUInt32BE(0x7f454c46);
  file.set([2, 1, 1], 4);
  file.writeUInt16LE(machine, 18);
  file.writeBigUInt64LE(BigInt(HEADER), 32);
  file.writeUInt16LE(SEGMENT, 54);
  file.writeUInt16LE(count, 56);
  const segments: [type: number, offset: number, size: number][] = [
    [1, 0, file.length],
    [2, dynamicAt, entries.length * 16],
    [3, linkerAt, linker.length],
  ];
  for (const [index, [type, offset, size]] of segments.slice(0, count).entries()) {
    const at = HEADER + index * SEGMENT;
    file.writeUInt32LE(type, at);
    file.writeBigUInt64LE(BigInt(offset), at + 8);
    file.writeBigUInt64LE(BigInt(BASE + offset), at + 16);
    file.writeBigUInt64LE(BigInt(size), at + 32);
  }
  file.set(strings, stringsAt);
  file.set(linker, linkerAt);
  for (const [index, [tag, value]] of entries.entries()) {
    const at = dynamicAt + index * 16;
    file.writeBigUInt64LE(BigInt(tag), at);
    file.writeBigUInt64LE(BigInt(tag === 5 ? BASE + stringsAt : value), at + 8);
  }
  return file;
}
