import type { Register } from "./cpu.ts";

/** What an operation does to 32 bits. */
export type Operator32 = (a: number, b: number) => number;
/** What an operation does to a register of 64 bits, with the two halves of its operand. */
export type Operator64 = (to: Register, low: number, high: number) => void;

/** One operation of the arithmetic unit, in both widths. */
export interface Operator {
  readonly narrow: Operator32;
  readonly wide: Operator64;
}

/** A register's 64 bits as a number without sign. */
export function unsigned64(low: number, high: number): bigint {
  return (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);
}

function put(to: Register, value: bigint): void {
  to.set(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
}

/** For what is rare: by way of bigint. */
function slow(operate: (a: bigint, b: bigint) => bigint): Operator64 {
  return (to, low, high) => put(to, operate(unsigned64(to.low, to.high), unsigned64(low, high)));
}

/** Each half for itself. */
function halves(operate: Operator32): Operator {
  return { narrow: operate, wide: (to, low, high) => to.set(operate(to.low, low), operate(to.high, high)) };
}

function add64(to: Register, low: number, high: number): void {
  const sum = (to.low >>> 0) + (low >>> 0);
  to.high = (to.high + high + (sum > 0xffff_ffff ? 1 : 0)) | 0;
  to.low = sum | 0;
}

function subtract64(to: Register, low: number, high: number): void {
  const borrow = to.low >>> 0 < low >>> 0 ? 1 : 0;
  to.high = (to.high - high - borrow) | 0;
  to.low = (to.low - low) | 0;
}

function shiftLeft64(to: Register, low: number): void {
  const by = low & 63;
  if (by === 0) return;
  to.high = by >= 32 ? to.low << (by - 32) : (to.high << by) | (to.low >>> (32 - by));
  to.low = by >= 32 ? 0 : to.low << by;
}

function shiftRight64(to: Register, low: number): void {
  const by = low & 63;
  if (by === 0) return;
  to.low = by >= 32 ? to.high >>> (by - 32) : (to.low >>> by) | (to.high << (32 - by));
  to.high = by >= 32 ? 0 : to.high >>> by;
  to.low |= 0;
  to.high |= 0;
}

function shiftRightSigned64(to: Register, low: number): void {
  const by = low & 63;
  if (by === 0) return;
  to.low = by >= 32 ? to.high >> (by - 32) : (to.low >>> by) | (to.high << (32 - by));
  to.high = by >= 32 ? to.high >> 31 : to.high >> by;
}

/**
 * The operations by their codes.
 *
 * Edges: a number divided by 0 is 0, and modulo 0 it stays.
 * @source linux/bpf_common.h, linux/bpf.h
 */
export const OPERATORS: Readonly<Record<number, Operator>> = {
  0x00: { narrow: (a, b) => a + b, wide: add64 },
  0x10: { narrow: (a, b) => a - b, wide: subtract64 },
  0x20: { narrow: Math.imul, wide: slow((a, b) => a * b) },
  0x30: { narrow: (a, b) => (b === 0 ? 0 : (a >>> 0) / (b >>> 0)), wide: slow((a, b) => (b === 0n ? 0n : a / b)) },
  0x40: halves((a, b) => a | b),
  0x50: halves((a, b) => a & b),
  0x60: { narrow: (a, b) => a << (b & 31), wide: shiftLeft64 },
  0x70: { narrow: (a, b) => a >>> (b & 31), wide: shiftRight64 },
  0x80: { narrow: (a) => -a, wide: (to) => put(to, -unsigned64(to.low, to.high)) },
  0x90: { narrow: (a, b) => (b === 0 ? a : (a >>> 0) % (b >>> 0)), wide: slow((a, b) => (b === 0n ? a : a % b)) },
  0xa0: halves((a, b) => a ^ b),
  0xb0: { narrow: (_, b) => b, wide: (to, low, high) => to.set(low, high) },
  0xc0: { narrow: (a, b) => a >> (b & 31), wide: shiftRightSigned64 },
};

/** What a jump asks of two registers; the narrow form of 32 bits alone. */
export interface Condition {
  readonly narrow: (a: number, b: number) => boolean;
  readonly wide: (aLow: number, aHigh: number, bLow: number, bHigh: number) => boolean;
}

function ordered(narrow: Condition["narrow"], isSigned: boolean): Condition {
  // Below the high halves, the low ones have no sign.
  return {
    narrow: isSigned ? narrow : (a, b) => narrow(a >>> 0, b >>> 0),
    wide: (aLow, aHigh, bLow, bHigh) =>
      aHigh === bHigh ? narrow(aLow >>> 0, bLow >>> 0) : isSigned ? narrow(aHigh, bHigh) : narrow(aHigh >>> 0, bHigh >>> 0),
  };
}

/** The jumps' conditions by their codes. @source linux/bpf_common.h, linux/bpf.h */
export const CONDITIONS: Readonly<Record<number, Condition>> = {
  0x10: { narrow: (a, b) => a === b, wide: (a, b, c, d) => a === c && b === d },
  0x20: ordered((a, b) => a > b, false),
  0x30: ordered((a, b) => a >= b, false),
  0x40: { narrow: (a, b) => (a & b) !== 0, wide: (a, b, c, d) => (a & c) !== 0 || (b & d) !== 0 },
  0x50: { narrow: (a, b) => a !== b, wide: (a, b, c, d) => a !== c || b !== d },
  0x60: ordered((a, b) => a > b, true),
  0x70: ordered((a, b) => a >= b, true),
  0xa0: ordered((a, b) => a < b, false),
  0xb0: ordered((a, b) => a <= b, false),
  0xc0: ordered((a, b) => a < b, true),
  0xd0: ordered((a, b) => a <= b, true),
};

/** Turn the bytes of 16, 32 or 64 bits around, and cut off the rest; `isToBig`: for this machine's order is little-endian. */
export function changeByteOrder(to: Register, bits: number, isToBig: boolean): void {
  if (isToBig) {
    if (bits === 64) to.set(swap32(to.high), swap32(to.low));
    else to.set(bits === 32 ? swap32(to.low) : swap32(to.low) >>> 16, 0);
  } else if (bits < 64) to.set(bits === 32 ? to.low : to.low & 0xffff, 0);
}

function swap32(value: number): number {
  return ((value & 0xff) << 24) | ((value & 0xff00) << 8) | ((value >>> 8) & 0xff00) | (value >>> 24);
}
