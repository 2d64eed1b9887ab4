import { describe, expect, it } from "vitest";
import type { DumpEnd, OnReply } from "../channel.ts";
import { errno } from "../errno.ts";
import { attribute, nested, zeroEnded } from "../message.ts";
import { readNftTable } from "./nft-table.ts";
import type { NftTableSink } from "./nft-table.ts";

const NFT = { newSet: 0xa09, getTable: 0xa01, getSet: 0xa0a, newElement: 0xa0c, getElement: 0xa0d, newGeneration: 0xa0f } as const;
const HEAD = Buffer.of(2, 0, 0, 0);

function be32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
}

/** A set of addresses, as the kernel tells of it. */
const SET = Buffer.concat([HEAD, attribute(2, zeroEnded("ips")), attribute(4, be32(7)), attribute(5, be32(4))]);

function elementMessage(...addresses: readonly (readonly number[])[]): Buffer {
  return Buffer.concat([HEAD, nested(3, ...addresses.map((address) => nested(1, nested(1, attribute(1, Buffer.from(address))))))]);
}

/** What the kernel does with one try: generations before and after, and how the dump of elements ends. */
interface Try {
  readonly generations: readonly [number, number];
  readonly elements: Buffer;
  readonly end?: Partial<DumpEnd>;
}

/** A kernel with one table of one set, that is read again and again. */
class Kernel {
  readonly #tries: readonly Try[];
  readonly #tableErrno: number;
  #reads = 0;
  #questions = 0;
  isClosed = false;

  constructor(tries: readonly Try[], tableErrno = 0) {
    this.#tries = tries;
    this.#tableErrno = tableErrno;
  }

  get reads(): number {
    return this.#reads;
  }

  request(type: number, _payload: Uint8Array, onReply?: OnReply): Promise<number> {
    if (type === NFT.getTable) return Promise.resolve(this.#tableErrno);
    const { generations } = this.#at(Math.floor(this.#questions / 2));
    onReply?.(NFT.newGeneration, Buffer.concat([HEAD, attribute(1, be32(generations[this.#questions % 2] ?? 0))]));
    this.#questions++;
    return Promise.resolve(0);
  }

  dump(type: number, _payload: Uint8Array, onReply: OnReply): Promise<DumpEnd> {
    if (type === NFT.getSet) onReply(NFT.newSet, SET);
    if (type !== NFT.getElement) return Promise.resolve({ errno: 0, interrupted: false });
    const { elements, end } = this.#at(this.#reads++);
    onReply(NFT.newElement, elements);
    // A try that is interrupted asks for no generation at its end.
    if (end !== undefined) this.#questions++;
    return Promise.resolve({ errno: 0, interrupted: false, ...end });
  }

  close(): void {
    this.isClosed = true;
  }

  #at(index: number): Try {
    const found = this.#tries[Math.min(index, this.#tries.length - 1)];
    if (found === undefined) throw new Error("a kernel that is read has tries");
    return found;
  }
}

/** Keeps the keys of what it takes. */
class Keys implements NftTableSink {
  readonly keys: string[] = [];
  chain(): void {}
  set(): ({ key }: { readonly key: string }) => void {
    return ({ key }) => void this.keys.push(key);
  }
}

const OLD = elementMessage([10, 0, 0, 1]);
const NEW = elementMessage([10, 0, 0, 2], [10, 0, 0, 3]);
const QUIET: Try = { generations: [7, 7], elements: NEW };

describe("reading a table", () => {
  it.each<{ readonly what: string; readonly first: Try }>([
    { what: "somebody has committed between two dumps", first: { generations: [6, 7], elements: OLD } },
    { what: "a dump was interrupted", first: { generations: [6, 6], elements: OLD, end: { interrupted: true } } },
    { what: "a set was deleted meanwhile", first: { generations: [6, 6], elements: OLD, end: { errno: errno("ENOENT") } } },
  ])("begins anew where $what", async ({ first }) => {
    const kernel = new Kernel([first, QUIET]);
    const found = await readNftTable(
      () => kernel,
      "ip",
      "turnout",
      () => new Keys(),
    );
    expect(found?.keys).toEqual(["10.0.0.2", "10.0.0.3"]);
    expect(kernel.reads).toBe(2);
    expect(kernel.isClosed).toBe(true);
  });

  it("ends where somebody commits all the time", async () => {
    const kernel = new Kernel([{ generations: [6, 7], elements: NEW }]);
    const found = await readNftTable(
      () => kernel,
      "ip",
      "turnout",
      () => new Keys(),
    );
    expect(found?.keys).toEqual(["10.0.0.2", "10.0.0.3"]);
    expect(kernel.reads).toBe(5);
  });

  it("finds none, or says that it may not look", async () => {
    const absent = new Kernel([QUIET], errno("ENOENT"));
    expect(
      await readNftTable(
        () => absent,
        "ip",
        "turnout",
        () => new Keys(),
      ),
    ).toBeUndefined();
    const refusing = new Kernel([QUIET], errno("EPERM"));
    await expect(
      readNftTable(
        () => refusing,
        "ip",
        "turnout",
        () => new Keys(),
      ),
    ).rejects.toMatchObject({ code: "permission_denied" });
    expect(refusing.isClosed).toBe(true);
  });

  it("refuses elements that no kernel writes", async () => {
    const kernel = new Kernel([{ generations: [7, 7], elements: elementMessage([10, 0]) }]);
    await expect(
      readNftTable(
        () => kernel,
        "ip",
        "turnout",
        () => new Keys(),
      ),
    ).rejects.toThrow(/shorter than its type/);
  });
});
