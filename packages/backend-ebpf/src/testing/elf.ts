import { invariant } from "@turnout/core";

/** A section of an ELF file. */
export interface ElfSection {
  readonly index: number;
  readonly name: string;
  readonly bytes: Buffer;
}

/** A name in an ELF file. `section` is 0 for what another file has. */
export interface ElfSymbol {
  readonly name: string;
  readonly section: number;
  /** Offset in its section. */
  readonly value: number;
  readonly kind: "object" | "function" | "section" | "other";
}

/** A place in a section that names a symbol. */
export interface ElfRelocation {
  readonly offset: number;
  readonly type: number;
  readonly symbol: ElfSymbol;
}

/** What an object file has. */
export interface Elf {
  readonly sections: readonly ElfSection[];
  readonly symbols: readonly ElfSymbol[];
  /** By the number of the section that they are in. */
  readonly relocations: ReadonlyMap<number, readonly ElfRelocation[]>;
}

interface Header {
  readonly nameAt: number;
  readonly type: number;
  readonly link: number;
  readonly info: number;
  readonly bytes: Buffer;
}

// @source elf.h
const MACHINE_BPF = 247;
const TYPE = { symbols: 2, noBits: 8, relocations: 9 } as const;
const SECTION_BYTES = 64;
const SYMBOL_BYTES = 24;
const RELOCATION_BYTES = 16;
const KINDS: Readonly<Record<number, ElfSymbol["kind"]>> = { 1: "object", 2: "function", 3: "section" };

/** Read an object file of BPF, 64 bits and little-endian. @throws {Error} for another file. */
export function readElf(file: Buffer): Elf {
  invariant(file.length > 64 && file.readUInt32BE(0) === 0x7f454c46, "an object file is of ELF");
  invariant(file[4] === 2 && file[5] === 1 && file.readUInt16LE(18) === MACHINE_BPF, "an object file is of BPF, little-endian");
  const headers = readHeaders(file);
  const names = headers[file.readUInt16LE(62)];
  invariant(names !== undefined, "sections have names");
  const sections = headers.map(({ nameAt, bytes }, index): ElfSection => ({ index, name: textAt(names.bytes, nameAt), bytes }));
  const table = headers.find(({ type }) => type === TYPE.symbols);
  const strings = table === undefined ? undefined : headers[table.link]?.bytes;
  const symbols = table === undefined || strings === undefined ? [] : readSymbols(table.bytes, strings);
  const relocations = headers
    .filter(({ type }) => type === TYPE.relocations)
    .map(({ info, bytes }) => [info, readRelocations(bytes, symbols)] as const);
  return { sections, symbols, relocations: new Map(relocations) };
}

function readHeaders(file: Buffer): readonly Header[] {
  const at = Number(file.readBigUInt64LE(40));
  return Array.from({ length: file.readUInt16LE(60) }, (_, index): Header => {
    const header = file.subarray(at + index * SECTION_BYTES, at + (index + 1) * SECTION_BYTES);
    const type = header.readUInt32LE(4);
    const [begin, size] = [Number(header.readBigUInt64LE(24)), Number(header.readBigUInt64LE(32))];
    return {
      nameAt: header.readUInt32LE(0),
      type,
      link: header.readUInt32LE(40),
      info: header.readUInt32LE(44),
      bytes: type === TYPE.noBits ? Buffer.alloc(size) : file.subarray(begin, begin + size),
    };
  });
}

function readSymbols(table: Buffer, strings: Buffer): readonly ElfSymbol[] {
  return Array.from({ length: table.length / SYMBOL_BYTES }, (_, index): ElfSymbol => {
    const at = index * SYMBOL_BYTES;
    return {
      name: textAt(strings, table.readUInt32LE(at)),
      section: table.readUInt16LE(at + 6),
      value: Number(table.readBigUInt64LE(at + 8)),
      kind: KINDS[table.readUInt8(at + 4) & 15] ?? "other",
    };
  });
}

function readRelocations(table: Buffer, symbols: readonly ElfSymbol[]): readonly ElfRelocation[] {
  return Array.from({ length: table.length / RELOCATION_BYTES }, (_, index): ElfRelocation => {
    const at = index * RELOCATION_BYTES;
    const symbol = symbols[table.readUInt32LE(at + 12)];
    invariant(symbol !== undefined, "a relocation names a symbol");
    return { offset: Number(table.readBigUInt64LE(at)), type: table.readUInt32LE(at + 8), symbol };
  });
}

/** Read a text that ends with a zero. */
export function textAt(strings: Buffer, at: number): string {
  return strings.toString("utf8", at, strings.indexOf(0, at));
}
