import { invariant } from "@turnout/core";
import { textAt } from "./elf.ts";

/** A member of a struct or union, a variable of a section, or an enumerator. */
export interface BtfMember {
  readonly name: string;
  readonly type: number;
}

/** A type of BTF, as far as maps and fields need it. @source linux/btf.h */
export interface BtfType {
  readonly kind: number;
  readonly name: string;
  /** Bytes, or the type that it refers to: which of the two the kind tells. */
  readonly sizeOrType: number;
  /** Of structs, unions, sections and enums; an enumerator's type is 0. */
  readonly members: readonly BtfMember[];
  /** Of arrays. */
  readonly array: { readonly type: number; readonly count: number } | undefined;
}

/** A field that a program reads where this kernel has it. */
export interface FieldAccess {
  /** Of the section whose instruction is meant. */
  readonly section: string;
  /** Bytes from the section's beginning. */
  readonly offset: number;
  /** What is asked of the field; 0: its offset. @source linux/bpf.h enum bpf_core_relo_kind */
  readonly kind: number;
  /** E.g. `nf_conn.proto.tcp.state`. */
  readonly path: string;
}

/** What a file tells of its types. */
export interface Btf {
  /** By their numbers; 0 is void. */
  readonly types: readonly BtfType[];
  readonly fields: readonly FieldAccess[];
}

const MAGIC = 0xeb9f;
const KIND = {
  int: 1,
  pointer: 2,
  array: 3,
  struct: 4,
  union: 5,
  enum: 6,
  typedef: 8,
  volatile: 9,
  const: 10,
  restrict: 11,
  functionType: 13,
  variable: 14,
  section: 15,
  tag: 17,
  enum64: 19,
} as const;
const MODIFIERS: readonly number[] = [KIND.typedef, KIND.volatile, KIND.const, KIND.restrict];
const VOID: BtfType = { kind: 0, name: "void", sizeOrType: 0, members: [], array: undefined };

/** How many bytes follow a type of a kind, beside those of each of its members. */
const TAIL: Readonly<Record<number, readonly [once: number, each: number]>> = {
  [KIND.int]: [4, 0],
  [KIND.array]: [12, 0],
  [KIND.struct]: [0, 12],
  [KIND.union]: [0, 12],
  [KIND.enum]: [0, 8],
  [KIND.functionType]: [0, 8],
  [KIND.variable]: [4, 0],
  [KIND.section]: [0, 12],
  [KIND.tag]: [4, 0],
  [KIND.enum64]: [0, 12],
};

/** Read the sections `.BTF` and `.BTF.ext`. */
export function readBtf(bytes: Buffer, extension: Buffer | undefined): Btf {
  invariant(bytes.readUInt16LE(0) === MAGIC, "types are in BTF");
  const begin = bytes.readUInt32LE(4);
  const part = (at: number): Buffer => {
    const from = begin + bytes.readUInt32LE(at);
    return bytes.subarray(from, from + bytes.readUInt32LE(at + 4));
  };
  const strings = part(16);
  const types = readTypes(part(8), strings);
  return { types, fields: extension === undefined ? [] : readFields(extension, types, strings) };
}

function readTypes(bytes: Buffer, strings: Buffer): readonly BtfType[] {
  const types: BtfType[] = [VOID];
  for (let at = 0; at < bytes.length;) {
    const info = bytes.readUInt32LE(at + 4);
    const [kind, count] = [(info >>> 24) & 31, info & 0xffff];
    const [once, each] = TAIL[kind] ?? [0, 0];
    const tail = bytes.subarray(at + 12, at + 12 + once + each * count);
    const isOfVariables = kind === KIND.section;
    const isOfNames = kind === KIND.enum;
    const hasMembers = isOfVariables || isOfNames || kind === KIND.struct || kind === KIND.union;
    types.push({
      kind,
      name: textAt(strings, bytes.readUInt32LE(at)),
      sizeOrType: bytes.readUInt32LE(at + 8),
      members: Array.from({ length: hasMembers ? count : 0 }, (_, index): BtfMember => {
        const [first, second] = [tail.readUInt32LE(index * each), tail.readUInt32LE(index * each + 4)];
        return isOfVariables ? { name: "", type: first } : { name: textAt(strings, first), type: isOfNames ? 0 : second };
      }),
      array: kind === KIND.array ? { type: tail.readUInt32LE(0), count: tail.readUInt32LE(8) } : undefined,
    });
    at += 12 + tail.length;
  }
  return types;
}

/** @source linux/btf.h, libbpf's struct btf_ext_header */
function readFields(bytes: Buffer, types: readonly BtfType[], strings: Buffer): readonly FieldAccess[] {
  invariant(bytes.readUInt16LE(0) === MAGIC, "what belongs to BTF is in BTF");
  const begin = bytes.readUInt32LE(4);
  // Older compilers have no such part.
  if (begin < 32) return [];
  const from = begin + bytes.readUInt32LE(24);
  const records = bytes.subarray(from, from + bytes.readUInt32LE(28));
  const fields: FieldAccess[] = [];
  const size = records.length === 0 ? 0 : records.readUInt32LE(0);
  for (let at = 4; at < records.length;) {
    const section = textAt(strings, records.readUInt32LE(at));
    const count = records.readUInt32LE(at + 4);
    at += 8;
    for (let index = 0; index < count; index += 1, at += size) {
      fields.push({
        section,
        offset: records.readUInt32LE(at),
        kind: records.readUInt32LE(at + 12),
        path: pathOf(types, records.readUInt32LE(at + 4), textAt(strings, records.readUInt32LE(at + 8))),
      });
    }
  }
  return fields;
}

/**
 * Name what an access like `0:0:1` means: the first number is that of an array's element, or of an enumerator. A name's `___` and all after it mean
 * nothing.
 */
function pathOf(types: readonly BtfType[], root: number, access: string): string {
  let type = plainType(types, root);
  const names = [type.name.replace(/___.*$/, "")];
  for (const step of access.split(":").slice(type.kind === KIND.enum ? 0 : 1)) {
    const member = type.members[Number(step)];
    invariant(member !== undefined, "an access goes through members");
    names.push(member.name);
    type = plainType(types, member.type);
  }
  return names.join(".");
}

/** The type behind typedefs and the like. */
function plainType(types: readonly BtfType[], id: number): BtfType {
  const type = types[id];
  invariant(type !== undefined, "a type is there");
  return MODIFIERS.includes(type.kind) ? plainType(types, type.sizeOrType) : type;
}

/** How many bytes a value of a type takes. */
export function sizeOf(types: readonly BtfType[], id: number): number {
  const type = plainType(types, id);
  if (type.kind === KIND.pointer) return 8;
  return type.array === undefined ? type.sizeOrType : type.array.count * sizeOf(types, type.array.type);
}

/**
 * The members of each variable of a section, by the variables' names: for `__uint(name, 5)` the number, for `__type(name, struct x)` the type.
 * @source bpf/bpf_helpers.h
 */
export function variablesOf({ types }: Btf, section: string): ReadonlyMap<string, ReadonlyMap<string, BtfType["array"] | number>> {
  const variables = types.find(({ kind, name }) => kind === KIND.section && name === section)?.members ?? [];
  return new Map(
    variables.map(({ type }) => {
      const variable = types[type];
      invariant(variable !== undefined, "a section has variables");
      const members = plainType(types, variable.sizeOrType).members.map(({ name, type: member }) => {
        const target = plainType(types, member).sizeOrType;
        return [name, types[target]?.array ?? target] as const;
      });
      return [variable.name, new Map(members)];
    }),
  );
}
