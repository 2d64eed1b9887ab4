import type { Random } from "./random.ts";

/** Numbers at which readers of lengths, counts and types go wrong. */
const EDGES = [
  0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff,
];
const PIECE_MAX = 64;

type Change = (input: Buffer, other: Buffer, random: Random) => Buffer;

const CHANGES: readonly Change[] = [
  (input, _, random) =>
    patched(input, random.below(input.length), Buffer.of((input[random.below(input.length)] ?? 0) ^ (1 << random.below(8)))),
  (input, _, random) => patched(input, random.below(input.length), Buffer.of(random.below(256))),
  // A length or a count, in either byte order; messages of netlink keep theirs at multiples of four.
  (input, _, random) => patched(input, random.below(input.length), number(random)),
  (input, _, random) => patched(input, random.below(Math.ceil(input.length / 4)) * 4, number(random)),
  (input, _, random) => input.subarray(0, random.below(input.length)),
  (input, _, random) => without(input, random.below(input.length), 1 + random.below(PIECE_MAX)),
  (input, _, random) => without(input, random.below(Math.ceil(input.length / 4)) * 4, 4 * (1 + random.below(4))),
  (input, other, random) => inserted(input, random.below(input.length + 1), piece(other, random)),
  (input, _, random) => inserted(input, random.below(input.length + 1), piece(input, random)),
  (input, other, random) => Buffer.concat([input.subarray(0, random.below(input.length)), other.subarray(random.below(other.length + 1))]),
];

/** Make other bytes of these. */
export function changeBytes(input: Buffer, other: Buffer, random: Random): Buffer {
  return input.length === 0 ? piece(other, random) : random.pick(CHANGES)(input, other, random);
}

function number(random: Random): Buffer {
  const bytes = Buffer.alloc(random.pick([1, 2, 4]));
  const value = random.pick(EDGES) % 2 ** (8 * bytes.length);
  if (random.below(2) === 0) bytes.writeUIntLE(value, 0, bytes.length);
  else bytes.writeUIntBE(value, 0, bytes.length);
  return bytes;
}

function piece(from: Buffer, random: Random): Buffer {
  const at = random.below(from.length + 1);
  return from.subarray(at, at + 1 + random.below(PIECE_MAX));
}

function patched(input: Buffer, at: number, patch: Buffer): Buffer {
  const copy = Buffer.from(input);
  patch.copy(copy, at);
  return copy;
}

function without(input: Buffer, at: number, length: number): Buffer {
  return Buffer.concat([input.subarray(0, at), input.subarray(at + length)]);
}

function inserted(input: Buffer, at: number, addition: Buffer): Buffer {
  return Buffer.concat([input.subarray(0, at), addition, input.subarray(at)]);
}
