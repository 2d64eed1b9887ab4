import { closeSync, openSync, readSync } from "node:fs";
import { setImmediate as others } from "node:timers/promises";
import type { IPFamily } from "@turnout/core";
import { mixed, partOfChecksum, PARTS } from "./model/parts.ts";

/** Of both families, with all real servers. @source Linux ip_vs_info_seq_show */
const PATH = "/proc/thread-self/net/ip_vs";
/** The kernel gives a page in one read, or what belongs to one virtual server. */
const SPACE_BYTES = 256 * 1024;
/** After so many reads others have their turn: some milliseconds. */
const READS_MAX = 64;
const [SPACE, NEW_LINE, COLON, OPEN, CLOSE] = [0x20, 0x0a, 0x3a, 0x5b, 0x5d];
/** Of which a virtual server's line begins with; a firewall mark's begins with F. */
const PROTOCOLS: ReadonlySet<number | undefined> = new Set(["T", "U", "S"].map((letter) => letter.charCodeAt(0)));
/** Address, way of forwarding, weight: connections change without anybody's doing. */
const SETTING_WORDS = 3;
const DIGITS_OF_WORD = 8;

/**
 * Digest the virtual servers of one family with their real servers and weights, part by part as of `partOf`, from what the kernel shows in one file: 1,000
 * with ten real servers each take some ten milliseconds.
 *
 * Edges: of `pagesMax` pages from the beginning only. Nothing but zeros where there is no IPVS. While somebody changes something, parts may be digested that never were so.
 * @throws an error of node:fs.
 */
export async function checksumIpvs(family: IPFamily, pagesMax: number = Number.POSITIVE_INFINITY): Promise<Int32Array> {
  const digest = new ContentChecksum(family);
  const file = openIfThere(PATH);
  if (file === undefined) return digest.parts;
  try {
    const space = Buffer.allocUnsafe(SPACE_BYTES);
    let kept = 0;
    for (let reads = 1; ; reads += 1) {
      const length = readSync(file, space, kept, space.length - kept, null);
      if (length === 0 || reads > pagesMax) return digest.parts;
      kept = digest.take(space, kept + length);
      if (reads % READS_MAX === 0) await others();
    }
  } finally {
    closeSync(file);
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Digests the lines of `/proc/net/ip_vs`, whatever their order. */
export class ContentChecksum {
  readonly parts: Int32Array = new Int32Array(PARTS);
  readonly #isWanted: (first: number | undefined) => boolean;
  /** The virtual server whose real servers come: its part, and its digest. Undefined: one that doesn't count. */
  #part: number | undefined;
  #server = 0;

  constructor(family: IPFamily) {
    this.#isWanted = family === "IPv6" ? (first) => first === OPEN : (first) => first !== OPEN;
  }

  /** Take in whole lines of the first `end` bytes, and move the rest to the beginning; gives how many bytes that are. */
  take(bytes: Buffer, end: number): number {
    let from = 0;
    for (let to = bytes.indexOf(NEW_LINE); to >= 0 && to < end; to = bytes.indexOf(NEW_LINE, from)) {
      if (bytes[from] === SPACE) this.#takeRealServer(bytes, from, to);
      else this.#takeVirtualServer(bytes, from, to);
      from = to + 1;
    }
    bytes.copyWithin(0, from, end);
    return end - from;
  }

  #takeVirtualServer(bytes: Buffer, from: number, to: number): void {
    this.#part = undefined;
    if (!PROTOCOLS.has(bytes[from])) return;
    let at = bytes.indexOf(SPACE, from);
    while (bytes[at] === SPACE) at += 1;
    if (!this.#isWanted(bytes[at])) return;
    this.#part = partOfText(bytes, at);
    this.#server = 0;
    for (let index = from; index < to; index += 1) this.#server = mixed(this.#server, bytes[index] ?? 0);
    this.#add(this.#server);
  }

  #takeRealServer(bytes: Buffer, from: number, to: number): void {
    if (this.#part === undefined) return;
    let digest = this.#server;
    let words = 0;
    // Behind the arrow.
    for (let at = from + "  -> ".length; at < to; at += 1) {
      const byte = bytes[at] ?? 0;
      if (byte !== SPACE) digest = mixed(digest, byte);
      else if (bytes[at - 1] !== SPACE) {
        words += 1;
        if (words === SETTING_WORDS) break;
        digest = mixed(digest, byte);
      }
    }
    this.#add(digest);
  }

  #add(digest: number): void {
    const part = this.#part ?? 0;
    this.parts[part] = (this.parts[part] ?? 0) + digest;
  }
}

/** The part of an address and port in hexadecimal digits: `0A600001:0050`, `[fd00:0000:…:0001]:0050`. */
function partOfText(bytes: Buffer, start: number): number {
  let [at, digest, word, digits] = [start, 0, 0, 0];
  const isLong = bytes[at] === OPEN;
  if (isLong) at += 1;
  for (; bytes[at] !== (isLong ? CLOSE : COLON) && at < bytes.length; at += 1) {
    if (bytes[at] === COLON) continue;
    word = (word << 4) | digitOf(bytes[at] ?? 0);
    digits += 1;
    if (digits % DIGITS_OF_WORD === 0) digest = mixed(digest, word);
  }
  let port = 0;
  for (at += isLong ? "]:".length : ":".length; bytes[at] !== SPACE && at < bytes.length; at += 1)
    port = (port << 4) | digitOf(bytes[at] ?? 0);
  return partOfChecksum(mixed(digest, port));
}

/** Digits come before letters, and letters of both cases have the same last bits. */
function digitOf(byte: number): number {
  return byte < 0x40 ? byte & 0xf : (byte & 0xf) + 9;
}
