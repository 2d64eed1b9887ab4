import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { changeByteOrder, CONDITIONS, OPERATORS, unsigned64 } from "./arithmetic.ts";
import { Register } from "./cpu.ts";

const MASK = 2n ** 64n - 1n;
const wide = fc.bigInt({ min: 0n, max: MASK });
/** Small ones, and those near the edges of 32 bits, are where carries are. */
const operand = fc.oneof(wide, fc.bigInt({ min: 0n, max: 70n }), fc.bigInt({ min: 2n ** 32n - 3n, max: 2n ** 32n + 3n }));

function register(value: bigint): Register {
  const one = new Register();
  one.set(Number(BigInt.asIntN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
  return one;
}

function valueOf({ low, high }: Register): bigint {
  return unsigned64(low, high);
}

const EXPECTED: Readonly<Record<string, readonly [code: number, of: (a: bigint, b: bigint, bits: bigint) => bigint]>> = {
  add: [0x00, (a, b) => a + b],
  subtract: [0x10, (a, b) => a - b],
  multiply: [0x20, (a, b) => a * b],
  divide: [0x30, (a, b) => (b === 0n ? 0n : a / b)],
  or: [0x40, (a, b) => a | b],
  and: [0x50, (a, b) => a & b],
  "shift left": [0x60, (a, b, bits) => a << (b % bits)],
  "shift right": [0x70, (a, b, bits) => a >> (b % bits)],
  negate: [0x80, (a) => -a],
  modulo: [0x90, (a, b) => (b === 0n ? a : a % b)],
  xor: [0xa0, (a, b) => a ^ b],
  move: [0xb0, (_, b) => b],
  "shift right with sign": [0xc0, (a, b, bits) => BigInt.asIntN(Number(bits), a) >> (b % bits)],
};

describe("the arithmetic of 64 and of 32 bits", () => {
  it("is looked at as a whole", () => expect(Object.values(EXPECTED).map(([code]) => code)).toEqual(Object.keys(OPERATORS).map(Number)));

  it.each(Object.entries(EXPECTED))("%s", (_, [code, of]) => {
    const operator = OPERATORS[code];
    fc.assert(
      fc.property(operand, operand, (a, b) => {
        const [to, from] = [register(a), register(b)];
        operator?.wide(to, from.low, from.high);
        expect(valueOf(to)).toBe(BigInt.asUintN(64, of(a, b, 64n)));
        const [low, other] = [BigInt.asUintN(32, a), BigInt.asUintN(32, b)];
        const narrow = operator?.narrow(register(a).low, from.low) ?? 0;
        expect(BigInt((narrow | 0) >>> 0)).toBe(BigInt.asUintN(32, of(low, other, 32n)));
      }),
    );
  });
});

const signed = (value: bigint, bits: number): bigint => BigInt.asIntN(bits, value);
const JUMPS: Readonly<Record<string, readonly [code: number, of: (a: bigint, b: bigint, bits: number) => boolean]>> = {
  "==": [0x10, (a, b) => a === b],
  ">": [0x20, (a, b) => a > b],
  ">=": [0x30, (a, b) => a >= b],
  "&": [0x40, (a, b) => (a & b) !== 0n],
  "!=": [0x50, (a, b) => a !== b],
  "> with sign": [0x60, (a, b, bits) => signed(a, bits) > signed(b, bits)],
  ">= with sign": [0x70, (a, b, bits) => signed(a, bits) >= signed(b, bits)],
  "<": [0xa0, (a, b) => a < b],
  "<=": [0xb0, (a, b) => a <= b],
  "< with sign": [0xc0, (a, b, bits) => signed(a, bits) < signed(b, bits)],
  "<= with sign": [0xd0, (a, b, bits) => signed(a, bits) <= signed(b, bits)],
};

describe("the conditions of jumps", () => {
  it("are looked at as a whole", () => expect(Object.values(JUMPS).map(([code]) => code)).toEqual(Object.keys(CONDITIONS).map(Number)));

  it.each(Object.entries(JUMPS))("%s", (_, [code, of]) => {
    const condition = CONDITIONS[code];
    const like = fc.tuple(operand, operand, fc.boolean()).map(([a, b, isSame]) => [a, isSame ? a : b] as const);
    fc.assert(
      fc.property(like, ([a, b]) => {
        const [left, right] = [register(a), register(b)];
        expect(condition?.wide(left.low, left.high, right.low, right.high)).toBe(of(a, b, 64));
        expect(condition?.narrow(left.low, right.low)).toBe(of(BigInt.asUintN(32, a), BigInt.asUintN(32, b), 32));
      }),
    );
  });
});

describe("the order of bytes", () => {
  it.each([
    [16, true, 0x8877n],
    [32, true, 0x88776655n],
    [64, true, 0x8877665544332211n],
    [16, false, 0x7788n],
    [32, false, 0x55667788n],
    [64, false, 0x1122334455667788n],
  ])("of %i bits, to the network's: %s", (bits, isToBig, expected) => {
    const one = register(0x1122334455667788n);
    changeByteOrder(one, bits, isToBig);
    expect(valueOf(one)).toBe(expected);
  });
});
