import { describe, expect, it } from "vitest";
import { Cpu, ProgramFault, Value } from "./cpu.ts";
import type { KernelFunction } from "./cpu.ts";
import type { Instruction, Reference } from "./object-file.ts";
import { translate } from "./translate.ts";

type Parts = readonly [code: number, to?: number, from?: number, offset?: number, immediate?: number, reference?: Reference];

function instruction([code, to = 0, from = 0, offset = 0, immediate = 0, reference]: Parts, index: number): Instruction {
  return { code, to, from, offset, immediate, reference, place: `test ${index}` };
}

const HELPERS: Readonly<Record<number, KernelFunction>> = {
  // Adds up its arguments, and gives the context back for 0.
  1: (cpu) => cpu.answer(cpu.register(1).low + cpu.register(2).low),
  2: (cpu) => cpu.giveBack(cpu.setting.context),
};

/** Run instructions on a context of 16 bytes, of which the first four may be written. */
function run(...parts: readonly Parts[]): { readonly result: number; readonly bytes: string } {
  const cpu = new Cpu();
  const operations = translate(parts.map(instruction), cpu, { helpers: HELPERS, kfuncs: {} });
  const context = new Value(Buffer.from("000102030405060708090a0b0c0d0e0f", "hex"), new Set([0]));
  return { result: cpu.run(operations, 0, { maps: [], context, about: undefined }), bytes: context.bytes.toString("hex", 0, 4) };
}

const EXIT: Parts = [0x95];

describe("memory", () => {
  it.each([
    ["1 byte", 0x71, 0x05],
    ["2 bytes", 0x69, 0x0605],
    ["4 bytes", 0x61, 0x08070605],
    ["8 bytes", 0x79, 0x08070605],
  ])("is read: %s", (_, code, expected) => expect(run([code, 0, 1, 5], EXIT).result).toBe(expected));

  it("is written, by registers and by numbers, where that is allowed", () => {
    expect(run([0xb7, 2, 0, 0, 0x1234], [0x6b, 1, 2, 0], [0xb7, 0], EXIT).bytes).toBe("34120203");
    expect(run([0x62, 1, 0, 0, -2], [0xb7, 0], EXIT).bytes).toBe("feffffff");
    expect(() => run([0x62, 1, 0, 4, 1], EXIT)).toThrow(/may not be written/);
  });

  it("keeps 64 bits on the stack, and nothing that nobody wrote", () => {
    const spilled = run([0x7b, 10, 1, -8], [0x79, 3, 10, -8], [0x71, 0, 3, 7], EXIT);
    expect(spilled.result).toBe(7);
    expect(run([0x71, 0, 10, -1], EXIT).result).not.toBe(0);
  });

  it.each([
    ["before its beginning", [0x71, 0, 1, -1]],
    ["beyond its end", [0x71, 0, 1, 16]],
    ["across its end", [0x79, 0, 1, 9]],
    ["above the stack", [0x71, 0, 10, 0]],
    ["below the stack", [0x71, 0, 10, -513]],
    ["at no pointer", [0x71, 0, 0, 0]],
  ] as readonly (readonly [string, Parts])[])("is not there %s", (_, access) =>
    expect(() => run([0xb7, 0], access, EXIT)).toThrow(ProgramFault),
  );

  it("is changed in one step, in all ways that there are", () => {
    const atomic = (operation: number, code = 0xc3): readonly Parts[] => [
      [0x62, 1, 0, 0, 12],
      [0xb7, 0, 0, 0, 12],
      [0xb7, 2, 0, 0, 5],
      [code, 1, 2, 0, operation],
    ];
    const low = (operation: number): readonly [string, number] => {
      const { bytes, result } = run(...atomic(operation), [0xbf, 0, 2], EXIT);
      return [bytes, result];
    };
    expect([0x00, 0x40, 0x50, 0xa0, 0x01, 0xe1].map(low)).toEqual([
      ["11000000", 5],
      ["0d000000", 5],
      ["04000000", 5],
      ["09000000", 5],
      ["11000000", 12],
      ["05000000", 12],
    ]);
    expect(run(...atomic(0xf1), EXIT)).toEqual({ bytes: "05000000", result: 12 });
    expect(() => run(...atomic(0x20), EXIT)).toThrow(/unknown/);
    expect(() => run([0xb7, 2], [0xdb, 1, 2, 4, 0], EXIT)).toThrow(ProgramFault);
  });
});

describe("the way through a program", () => {
  it("jumps, forward and back", () => {
    const sum: readonly Parts[] = [[0xb7, 0], [0xb7, 2, 0, 0, 4], [0x0f, 0, 2], [0x07, 2, 0, 0, -1], [0x55, 2, 0, -3, 0], EXIT];
    expect(run(...sum).result).toBe(10);
    expect(run([0x05, 0, 0, 1], [0xb7, 0, 0, 0, 1], [0xb7, 0, 0, 0, 2], EXIT).result).toBe(2);
    expect(run([0xb4, 2, 0, 0, -1], [0xb4, 0, 0, 0, 1], [0x16, 2, 0, 1, -1], [0xb4, 0], EXIT).result).toBe(1);
  });

  it("loads numbers of 64 bits", () =>
    expect(run([0x18, 2, 0, 0, 1], [0, 0, 0, 0, 7], [0x77, 2, 0, 0, 32], [0xbf, 0, 2], EXIT).result).toBe(7));

  it("calls functions of its own, which keep registers 6 to 9 and have a stack of their own", () => {
    const call: Parts = [0x85, 0, 1, 0, 0, { to: "function", index: 5 }];
    const own: readonly Parts[] = [
      [0xb7, 6, 0, 0, 3],
      [0x7a, 10, 0, -8, 9],
      call,
      [0x79, 0, 10, -8],
      [0x05, 0, 0, 3],
      [0xb7, 6, 0, 0, 8],
      [0x7a, 10, 0, -8, 1],
      EXIT,
      [0x0f, 0, 6],
      EXIT,
    ];
    expect(run(...own).result).toBe(12);
  });

  it("calls the kernel's functions", () => {
    expect(run([0xb7, 1, 0, 0, 2], [0xb7, 2, 0, 0, -5], [0x85, 0, 0, 0, 1], EXIT).result).toBe(-3);
    expect(run([0x85, 0, 0, 0, 2], [0x71, 0, 0, 3], EXIT).result).toBe(3);
  });

  it.each([
    ["does not end", [[0x05, 0, 0, -1]], /does not end/],
    ["leaves its instructions", [[0x05, 0, 0, 5]], /no such instruction/],
    ["falls off its end", [[0xb7, 0]], /no such instruction/],
    ["calls itself for ever", [[0x85, 0, 1, 0, 0, { to: "function", index: 0 }]], /too deep/],
    ["jumps into an instruction", [[0x05, 0, 0, 1], [0x18, 0], [0], EXIT], /leads into/],
  ] as readonly (readonly [string, readonly Parts[], RegExp])[])("ends with an error where a program %s", (_, parts, message) =>
    expect(() => run(...parts)).toThrow(message),
  );

  it.each([
    ["instruction", [0x8d]],
    ["helper", [0x85, 0, 0, 0, 3]],
    ["kfunc", [0x85, 0, 2, 0, -1, { to: "kfunc", name: "bpf_nothing" }]],
    ["kind of arithmetic", [0x37, 0, 0, 1, 2]],
  ] as readonly (readonly [string, Parts])[])("refuses an unknown %s before anything runs", (_, parts) =>
    expect(() => run(parts, EXIT)).toThrow(/is unknown/),
  );
});
