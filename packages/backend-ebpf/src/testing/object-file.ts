import { invariant } from "@turnout/core";
import { ProxyError } from "@turnout/core/backend";
import { CGROUP_HOOK, MAP_TYPE } from "@turnout/host/bpf";
import type { CgroupHook, MapInfo, MapType } from "@turnout/host/bpf";
import { readBtf, sizeOf, variablesOf } from "./btf.ts";
import type { Btf } from "./btf.ts";
import { readElf } from "./elf.ts";
import type { Elf, ElfSection } from "./elf.ts";

/** A map as an object file wants it. */
export type WantedMap = Omit<MapInfo, "id" | "type"> & { readonly type: MapType };

/** What an instruction names beyond its own section. */
export type Reference =
  | { readonly to: "map"; readonly map: number }
  | { readonly to: "function"; readonly index: number }
  | { readonly to: "kfunc"; readonly name: string };

/** One instruction; one that is 16 bytes long is followed by a filler. @source linux/bpf.h struct bpf_insn */
export interface Instruction {
  readonly code: number;
  readonly to: number;
  readonly from: number;
  readonly offset: number;
  readonly immediate: number;
  readonly reference: Reference | undefined;
  /** Where it is, for error messages. */
  readonly place: string;
}

/** For what a program is made. */
export type ProgramKind = { readonly is: "tc" } | { readonly is: "cgroup"; readonly hook: CgroupHook };

/** A program of an object file. */
export interface ProgramEntry {
  readonly name: string;
  readonly kind: ProgramKind;
  /** The number of its first instruction. */
  readonly entry: number;
}

/** An object file, with all that its instructions name. */
export interface ObjectFile {
  readonly maps: readonly WantedMap[];
  readonly programs: readonly ProgramEntry[];
  /** Those of all sections, one section after another. */
  readonly instructions: readonly Instruction[];
}

const INSTRUCTION_BYTES = 8;
const LOAD_64 = 0x18;
const CALL = 0x85;
const LOCAL_CALL = 1;
/** @source linux/bpf.h enum bpf_core_relo_kind */
const FIELD_OFFSET = 0;
const ENUMERATOR_EXISTS = 10;

/**
 * Read an object file as libbpf does.
 * @param kernelFields where this kernel has the fields that programs may read, e.g. `nf_conn.proto.tcp.state`
 * @throws {ProxyError} `invalid_object` when it is none; `host_unsupported` for a field or a type of map that the kernel in memory doesn't have
 */
export function readObjectFile(file: Buffer, kernelFields: Readonly<Record<string, number>>): ObjectFile {
  const elf = readElf(file);
  const named = (name: string): Buffer | undefined => elf.sections.find((section) => section.name === name)?.bytes;
  const types = named(".BTF");
  invariant(types !== undefined, "an object file has types");
  const btf = readBtf(types, named(".BTF.ext"));
  const maps = readMaps(btf);
  const code = elf.sections.filter(({ name, bytes }) => bytes.length > 0 && (name === ".text" || kindOf(name) !== undefined));
  const bases = new Map<number, number>();
  let length = 0;
  for (const { index, bytes } of code) {
    bases.set(index, length);
    length += bytes.length / INSTRUCTION_BYTES;
  }
  const linker: Linker = { elf, btf, bases, maps: maps.map(({ name }) => name), kernelFields };
  return { maps, programs: readPrograms(elf, bases), instructions: code.flatMap((section) => readInstructions(section, linker)) };
}

interface Linker {
  readonly elf: Elf;
  readonly btf: Btf;
  /** The number of each section's first instruction, by the section's number. */
  readonly bases: ReadonlyMap<number, number>;
  readonly maps: readonly string[];
  readonly kernelFields: Readonly<Record<string, number>>;
}

/** The kind of the programs of a section, by its name; undefined: no programs are there. */
function kindOf(section: string): ProgramKind | undefined {
  if (section === "tc") return { is: "tc" };
  const hook = section.startsWith("cgroup/") ? section.slice("cgroup/".length) : "";
  return hook in CGROUP_HOOK ? { is: "cgroup", hook: hook as CgroupHook } : undefined;
}

function readPrograms({ symbols, sections }: Elf, bases: ReadonlyMap<number, number>): readonly ProgramEntry[] {
  return symbols.flatMap(({ name, section, value, kind }): readonly ProgramEntry[] => {
    const base = bases.get(section);
    const of = kindOf(sections[section]?.name ?? "");
    if (kind !== "function" || base === undefined || of === undefined) return [];
    return [{ name, kind: of, entry: base + value / INSTRUCTION_BYTES }];
  });
}

function readMaps(btf: Btf): readonly WantedMap[] {
  return [...variablesOf(btf, ".maps")].map(([name, members]): WantedMap => {
    const number = (member: string): number => {
      const value = members.get(member);
      return typeof value === "object" ? value.count : 0;
    };
    const size = (member: string): number => {
      const value = members.get(member);
      return typeof value === "number" ? sizeOf(btf.types, value) : number(`${member}_size`);
    };
    const type = Object.entries(MAP_TYPE).find(([, one]) => one === number("type"))?.[0];
    if (type === undefined) throw new ProxyError("host_unsupported", "the kernel in memory has no such type of map", { object: name });
    return {
      name,
      type: type as MapType,
      keySize: size("key"),
      valueSize: size("value"),
      maxEntries: number("max_entries"),
      flags: number("map_flags"),
    };
  });
}

function readInstructions({ index, name, bytes }: ElfSection, linker: Linker): readonly Instruction[] {
  const references = readReferences(index, bytes, linker);
  const fields = new Map(linker.btf.fields.filter(({ section }) => section === name).map((field) => [field.offset, field]));
  return Array.from({ length: bytes.length / INSTRUCTION_BYTES }, (_, number): Instruction => {
    const at = number * INSTRUCTION_BYTES;
    const registers = bytes.readUInt8(at + 1);
    const plain: Instruction = {
      code: bytes.readUInt8(at),
      to: registers & 15,
      from: registers >> 4,
      offset: bytes.readInt16LE(at + 2),
      immediate: bytes.readInt32LE(at + 4),
      reference: references.get(at),
      place: `${name} ${number}`,
    };
    const field = fields.get(at);
    return field === undefined ? plain : moved(plain, field.kind, field.path, linker.kernelFields);
  });
}

/** Have an instruction read a field where the kernel has it, or tell whether it has an enumerator (CO-RE). */
function moved(instruction: Instruction, kind: number, path: string, kernelFields: Readonly<Record<string, number>>): Instruction {
  if (kind === ENUMERATOR_EXISTS) return { ...instruction, immediate: path in kernelFields ? 1 : 0 };
  const offset = kind === FIELD_OFFSET ? kernelFields[path] : undefined;
  if (offset === undefined) throw new ProxyError("host_unsupported", "the kernel in memory has no such field", { object: path });
  const isArithmetic = [0x04, 0x07].includes(instruction.code & 7);
  return isArithmetic ? { ...instruction, immediate: offset } : { ...instruction, offset };
}

/** What the instructions of a section name, by their offsets. */
function readReferences(section: number, bytes: Buffer, { elf, bases, maps }: Linker): ReadonlyMap<number, Reference> {
  const base = bases.get(section) ?? 0;
  const references = new Map<number, Reference>();
  for (let at = 0; at < bytes.length; at += bytes.readUInt8(at) === LOAD_64 ? 2 * INSTRUCTION_BYTES : INSTRUCTION_BYTES) {
    const isLocal = bytes.readUInt8(at) === CALL && bytes.readUInt8(at + 1) >> 4 === LOCAL_CALL;
    if (isLocal) references.set(at, { to: "function", index: base + at / INSTRUCTION_BYTES + 1 + bytes.readInt32LE(at + 4) });
  }
  for (const { offset, symbol } of elf.relocations.get(section) ?? []) {
    if (bytes.readUInt8(offset) === LOAD_64) {
      const map = maps.indexOf(symbol.name);
      if (map < 0 && symbol.section !== 0)
        throw new ProxyError("host_unsupported", "the kernel in memory knows no data but maps", { object: symbol.name });
      references.set(offset, map < 0 ? { to: "kfunc", name: symbol.name } : { to: "map", map });
      continue;
    }
    invariant(bytes.readUInt8(offset) === CALL, "what is named is loaded or called");
    const home = bases.get(symbol.section);
    references.set(
      offset,
      home === undefined
        ? { to: "kfunc", name: symbol.name }
        : { to: "function", index: home + symbol.value / INSTRUCTION_BYTES + bytes.readInt32LE(offset + 4) + 1 },
    );
  }
  return references;
}
