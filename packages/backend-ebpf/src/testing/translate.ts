import { CONDITIONS, OPERATORS, changeByteOrder } from "./arithmetic.ts";
import { outside, ProgramFault, Register } from "./cpu.ts";
import type { Cpu, KernelFunction, Operation } from "./cpu.ts";
import type { Instruction } from "./object-file.ts";

/** The kernel's functions that programs may call: helpers by their numbers, kfuncs by their names. */
export interface KernelFunctions {
  readonly helpers: Readonly<Record<number, KernelFunction>>;
  readonly kfuncs: Readonly<Record<string, KernelFunction>>;
}

// Classes of instructions. @source linux/bpf_common.h, linux/bpf.h
const CLASS = { load: 0, loadFrom: 1, store: 2, storeFrom: 3, narrow: 4, jump: 5, jumpNarrow: 6, wide: 7 } as const;
const LOAD_64 = 0x18;
const BYTE_ORDER = 0xd0;
const MOVE = 0xb0;
const MODE = { memory: 0x60, atomic: 0xc0 } as const;
const JUMP = { always: 0x00, call: 0x80, exit: 0x90 } as const;
const SIZES: Readonly<Record<number, number>> = { 0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8 };

/**
 * Translate instructions into one operation each, once for all runs.
 * @throws {ProgramFault} for an instruction or a function that the kernel in memory doesn't know
 */
export function translate(instructions: readonly Instruction[], cpu: Cpu, functions: KernelFunctions): readonly Operation[] {
  return instructions.map((instruction, index) => {
    const [next, filler] = [index + 1, instructions[index + 1]];
    // The second half of a long one.
    if (instruction.code === 0) return unknown(instruction);
    switch (instruction.code & 7) {
      case CLASS.load:
        return instruction.code === LOAD_64 ? loadLong(instruction, filler?.immediate ?? 0, cpu, next + 1, functions) : refuse(instruction);
      case CLASS.loadFrom:
        return load(instruction, cpu, next);
      case CLASS.store:
      case CLASS.storeFrom:
        return store(instruction, cpu, next);
      case CLASS.narrow:
      case CLASS.wide:
        return arithmetic(instruction, cpu, next);
      default:
        return jump(instruction, cpu, next, functions);
    }
  });
}

function refuse({ code, place }: Instruction): never {
  throw new ProgramFault(`${place}: instruction 0x${code.toString(16)} is unknown`);
}

/** Not to be reached. */
function unknown({ place }: Instruction): Operation {
  return () => {
    throw new ProgramFault(`${place}: a jump leads into an instruction`);
  };
}

/** Whether a kfunc is there is asked by its address, whose number nobody needs. */
function loadLong(instruction: Instruction, high: number, cpu: Cpu, next: number, { kfuncs }: KernelFunctions): Operation {
  const { to: number, immediate, reference } = instruction;
  const to = cpu.register(number);
  const [low, upper] =
    reference?.to === "map"
      ? [0, cpu.pointerToMap(reference.map)]
      : reference?.to === "kfunc"
        ? [reference.name in kfuncs ? 1 : 0, 0]
        : [immediate, high];
  return () => {
    to.set(low, upper);
    return next;
  };
}

/** The memory that a pointer leads to; an offset beyond its end is a RangeError of the view. */
function readable(cpu: Cpu, { low, high }: Register): DataView {
  const region = cpu.regions[high];
  if (region === undefined) throw outside(low, high);
  return region.view;
}

/** As {@link readable}. A field of the context that may not be written is refused. */
function writable(cpu: Cpu, { low, high }: Register, offset: number): DataView {
  const region = cpu.regions[high];
  if (region === undefined) throw outside(low, high);
  if (region.writable !== undefined && !region.writable.has((low + offset) & ~3)) throw new ProgramFault("this may not be written");
  return region.view;
}

function load(instruction: Instruction, cpu: Cpu, next: number): Operation {
  const { code, offset } = instruction;
  if ((code & 0xe0) !== MODE.memory) return refuse(instruction);
  const [to, from] = [cpu.register(instruction.to), cpu.register(instruction.from)];
  switch (SIZES[code & 0x18]) {
    case 1:
      return () => (to.set(readable(cpu, from).getUint8(from.low + offset), 0), next);
    case 2:
      return () => (to.set(readable(cpu, from).getUint16(from.low + offset, true), 0), next);
    case 4:
      return () => (to.set(readable(cpu, from).getInt32(from.low + offset, true), 0), next);
    default:
      return () => {
        const [memory, at] = [readable(cpu, from), from.low + offset];
        to.set(memory.getInt32(at, true), memory.getInt32(at + 4, true));
        return next;
      };
  }
}

function store(instruction: Instruction, cpu: Cpu, next: number): Operation {
  const { code, offset } = instruction;
  const to = cpu.register(instruction.to);
  if ((code & 0xe0) === MODE.atomic && (code & 7) === CLASS.storeFrom) return atomic(instruction, cpu, next);
  if ((code & 0xe0) !== MODE.memory) return refuse(instruction);
  const from = (code & 7) === CLASS.storeFrom ? cpu.register(instruction.from) : constant(instruction.immediate);
  switch (SIZES[code & 0x18]) {
    case 1:
      return () => (writable(cpu, to, offset).setUint8(to.low + offset, from.low), next);
    case 2:
      return () => (writable(cpu, to, offset).setUint16(to.low + offset, from.low, true), next);
    case 4:
      return () => (writable(cpu, to, offset).setInt32(to.low + offset, from.low, true), next);
    default:
      return () => {
        const [memory, at] = [writable(cpu, to, offset), to.low + offset];
        memory.setInt32(at + 4, from.high, true);
        memory.setInt32(at, from.low, true);
        return next;
      };
  }
}

/** A number of the instruction itself, with its sign. */
function constant(immediate: number): Register {
  const register = new Register();
  register.set(immediate, immediate >> 31);
  return register;
}

const EXCHANGE = 0xe1;
const COMPARE_EXCHANGE = 0xf1;
const FETCH = 1;
const ATOMIC_OPERATORS: readonly number[] = [0x00, 0x40, 0x50, 0xa0];

/** @source Linux Documentation/bpf/standardization/instruction-set.rst, atomic operations */
function atomic(instruction: Instruction, cpu: Cpu, next: number): Operation {
  const { code, offset, place, immediate } = instruction;
  const [to, from, zero] = [cpu.register(instruction.to), cpu.register(instruction.from), cpu.register(0)];
  const isWide = SIZES[code & 0x18] === 8;
  const operator = OPERATORS[immediate & ~FETCH];
  const isPlain = ATOMIC_OPERATORS.includes(immediate & ~FETCH);
  if (!isPlain && immediate !== EXCHANGE && immediate !== COMPARE_EXCHANGE) return refuse(instruction);
  const width = isWide ? 8 : 4;
  const [before, after] = [new Register(), new Register()];
  return () => {
    const [memory, at] = [writable(cpu, to, offset), to.low + offset];
    if (at % width !== 0) throw new ProgramFault(`${place}: an atomic access is not aligned`);
    before.set(memory.getInt32(at, true), isWide ? memory.getInt32(at + 4, true) : 0);
    after.set(from.low, from.high);
    if (isPlain && operator !== undefined) {
      after.set(before.low, before.high);
      operator.wide(after, from.low, from.high);
    }
    const isEqual = before.low === zero.low && (!isWide || before.high === zero.high);
    if (immediate !== COMPARE_EXCHANGE || isEqual) {
      memory.setInt32(at, after.low, true);
      if (isWide) memory.setInt32(at + 4, after.high, true);
    }
    if (immediate === COMPARE_EXCHANGE) zero.set(before.low, before.high);
    else if ((immediate & FETCH) !== 0) from.set(before.low, before.high);
    return next;
  };
}

function arithmetic(instruction: Instruction, cpu: Cpu, next: number): Operation {
  const { code, immediate } = instruction;
  const to = cpu.register(instruction.to);
  const isWide = (code & 7) === CLASS.wide;
  const isOfRegister = (code & 0x08) !== 0;
  if ((code & 0xf0) === BYTE_ORDER && !isWide) return () => (changeByteOrder(to, immediate, isOfRegister), next);
  const operator = OPERATORS[code & 0xf0];
  // Later instruction sets give the offset a meaning.
  if (operator === undefined || instruction.offset !== 0) return refuse(instruction);
  const { narrow, wide } = operator;
  const from = isOfRegister ? cpu.register(instruction.from) : constant(immediate);
  // The most frequent ones, for speed.
  if ((code & 0xf0) === MOVE) return isWide ? () => (to.set(from.low, from.high), next) : () => (to.set(from.low, 0), next);
  if (isWide) return () => (wide(to, from.low, from.high), next);
  return () => (to.set(narrow(to.low, from.low) | 0, 0), next);
}

function jump(instruction: Instruction, cpu: Cpu, next: number, functions: KernelFunctions): Operation {
  const { code, immediate, offset } = instruction;
  const isNarrow = (code & 7) === CLASS.jumpNarrow;
  const kind = code & 0xf0;
  const target = next + offset;
  if (kind === JUMP.always && !isNarrow) return () => target;
  if (kind === JUMP.call) return call(instruction, cpu, next, functions);
  if (kind === JUMP.exit) return () => cpu.leave();
  const condition = CONDITIONS[kind];
  if (condition === undefined) return refuse(instruction);
  const { narrow, wide } = condition;
  const a = cpu.register(instruction.to);
  const b = (code & 0x08) !== 0 ? cpu.register(instruction.from) : constant(immediate);
  if (isNarrow) return () => (narrow(a.low, b.low) ? target : next);
  return () => (wide(a.low, a.high, b.low, b.high) ? target : next);
}

function call({ reference, immediate, place }: Instruction, cpu: Cpu, next: number, { helpers, kfuncs }: KernelFunctions): Operation {
  if (reference?.to === "function") {
    const { index } = reference;
    return () => cpu.enter(index, next);
  }
  const name = reference?.to === "kfunc" ? reference.name : undefined;
  const callee = name === undefined ? helpers[immediate] : kfuncs[name];
  if (callee === undefined) throw new ProgramFault(`${place}: function ${name ?? immediate} is unknown`);
  return () => {
    callee(cpu);
    return next;
  };
}
