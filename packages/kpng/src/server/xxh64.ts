const MASK = 0xffff_ffff_ffff_ffffn;
const P1 = 0x9e37_79b1_85eb_ca87n;
const P2 = 0xc2b2_ae3d_27d4_eb4fn;
const P3 = 0x1656_67b1_9e37_79f9n;
const P4 = 0x85eb_ca77_c2b2_ae63n;
const P5 = 0x27d4_eb2f_1656_67c5n;
const STRIPE = 32;

function rotate(value: bigint, bits: bigint): bigint {
  return ((value << bits) | (value >> (64n - bits))) & MASK;
}

function round(lane: bigint, input: bigint): bigint {
  return (rotate((lane + input * P2) & MASK, 31n) * P1) & MASK;
}

function merge(hash: bigint, lane: bigint): bigint {
  return ((hash ^ round(0n, lane)) * P1 + P4) & MASK;
}

/**
 * Compute the XXH64 of some bytes, with seed 0.
 * @source xxHash fast digest algorithm, "XXH64 algorithm description" (github.com/Cyan4973/xxHash)
 */
export function xxh64(bytes: Uint8Array): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let at = 0;
  let hash = P5;
  if (bytes.length >= STRIPE) {
    let [a, b, c, d] = [(P1 + P2) & MASK, P2, 0n, -P1 & MASK];
    for (; at + STRIPE <= bytes.length; at += STRIPE) {
      a = round(a, view.getBigUint64(at, true));
      b = round(b, view.getBigUint64(at + 8, true));
      c = round(c, view.getBigUint64(at + 16, true));
      d = round(d, view.getBigUint64(at + 24, true));
    }
    hash = (rotate(a, 1n) + rotate(b, 7n) + rotate(c, 12n) + rotate(d, 18n)) & MASK;
    for (const lane of [a, b, c, d]) hash = merge(hash, lane);
  }
  return avalanche(tail(view, at, (hash + BigInt(bytes.length)) & MASK));
}

/** Take in what is shorter than a stripe: by eights, a four, and ones. */
function tail(view: DataView, from: number, start: bigint): bigint {
  let at = from;
  let hash = start;
  for (; at + 8 <= view.byteLength; at += 8) hash = (rotate(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4) & MASK;
  if (at + 4 <= view.byteLength) {
    hash = (rotate(hash ^ ((BigInt(view.getUint32(at, true)) * P1) & MASK), 23n) * P2 + P3) & MASK;
    at += 4;
  }
  for (; at < view.byteLength; at++) hash = (rotate(hash ^ ((BigInt(view.getUint8(at)) * P5) & MASK), 11n) * P1) & MASK;
  return hash;
}

function avalanche(start: bigint): bigint {
  let hash = start;
  hash = ((hash ^ (hash >> 33n)) * P2) & MASK;
  hash = ((hash ^ (hash >> 29n)) * P3) & MASK;
  return hash ^ (hash >> 32n);
}
