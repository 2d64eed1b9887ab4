import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ALL_MAPS } from "../elements.ts";
import { PROGRAMS_OF } from "../hooks.ts";
import { STRUCTS } from "../layout.ts";
import { DEFAULT_SIZES, maxEntries } from "../options.ts";
import { readBtf, sizeOf, variablesOf } from "./btf.ts";
import { CONNTRACK_FUNCTIONS, KERNEL_FIELDS } from "./conntrack-functions.ts";
import { readElf } from "./elf.ts";
import { HELPERS } from "./helper-functions.ts";
import { OBJECT_FILES } from "./memory-machine.ts";
import { readObjectFile } from "./object-file.ts";
import { codeOf } from "./program-code.ts";
import { SKB_FIELDS, SKB_FUNCTIONS } from "./skb-functions.ts";

const CALL = 0x85;
const FIELDS = { ...KERNEL_FIELDS, ...SKB_FIELDS };
const KFUNCS = { ...CONNTRACK_FUNCTIONS, ...SKB_FUNCTIONS };

describe("the compiled programs", needs("bpf"), () => {
  let folder = "";
  const files: Record<"sockets" | "packets", Buffer> = { sockets: Buffer.alloc(0), packets: Buffer.alloc(0) };
  beforeAll(() => {
    buildBpf("packages/backend-ebpf");
    for (const file of ["sockets", "packets"] as const) files[file] = readFileSync(OBJECT_FILES[file]);
    folder = mkdtempSync(join(tmpdir(), "turnout-objects-"));
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** The bytes of a section. */
  function section(file: Buffer, name: string): Buffer {
    return readElf(file).sections.find((one) => one.name === name)?.bytes ?? Buffer.alloc(0);
  }

  describe.each(["sockets", "packets"] as const)("of %s", (file) => {
    it("are read as ELF: sections, and names in them that relocations mean", () => {
      const { sections, symbols, relocations } = readElf(files[file]);
      expect(sections.map(({ name }) => name)).toEqual(expect.arrayContaining([".maps", ".BTF", ".BTF.ext", "license"]));
      const functions = symbols.filter(({ kind }) => kind === "function").map(({ name }) => name);
      expect(functions).toEqual(expect.arrayContaining([...PROGRAMS_OF[file]]));
      expect([...relocations.values()].flat().map(({ symbol }) => symbol.name)).toEqual(expect.arrayContaining(["services", "endpoints"]));
    });

    it("are read with their types: each map's, in the sizes of layout.ts", () => {
      const btf = readBtf(section(files[file], ".BTF"), section(files[file], ".BTF.ext"));
      const maps = variablesOf(btf, ".maps");
      expect([...maps.keys()].toSorted()).toEqual([...ALL_MAPS].toSorted());
      expect(sizeOf(btf.types, Number(maps.get("services")?.get("key")))).toBe(STRUCTS.destination.bytes);
      expect(sizeOf(btf.types, Number(maps.get("services")?.get("value")))).toBe(STRUCTS.service.bytes);
    });

    it("are linked: maps as they are wanted, programs, and functions that the kernel in memory has", () => {
      const { maps, programs, instructions } = readObjectFile(files[file], FIELDS);
      const sizes = Object.fromEntries(maps.map(({ name, maxEntries: entries }) => [name, entries]));
      expect(sizes).toMatchObject(maxEntries(DEFAULT_SIZES));
      expect(programs.map(({ name }) => name).toSorted()).toEqual([...PROGRAMS_OF[file]].toSorted());
      const calls = instructions.filter(({ code }) => code === CALL);
      const unknown = calls.filter(({ reference, immediate }) =>
        reference === undefined ? HELPERS[immediate] === undefined : reference.to === "kfunc" && KFUNCS[reference.name] === undefined,
      );
      expect([calls.length > 10, unknown]).toEqual([true, []]);
    });
  });

  it("read fields of the kernel where this kernel has them, and are refused where it has none", () => {
    const { fields } = readBtf(section(files.packets, ".BTF"), section(files.packets, ".BTF.ext"));
    expect(fields.map(({ path }) => path)).toEqual(expect.arrayContaining(Object.keys(FIELDS)));
    expect(() => readObjectFile(files.packets, {})).toThrow("[host_unsupported] the kernel in memory has no such field: nf_conn.");
  });

  /** What reading a file with these bytes fails with. */
  function errorOf(bytes: Buffer): string {
    const path = join(folder, "wrong.bpf.o");
    writeFileSync(path, bytes);
    try {
      codeOf(path);
      return "nothing";
    } catch (error) {
      return String(error);
    } finally {
      rmSync(path);
    }
  }

  /** A file with one byte changed. */
  function changed(at: number, to: number): Buffer {
    const bytes = Buffer.from(files.sockets);
    bytes[at] = to;
    return bytes;
  }

  const NONE = "[invalid_object] this file is no BPF object that the kernel in memory can run (";
  it.each<[string, () => Buffer, string]>([
    ["an empty file", () => Buffer.alloc(0), "an object file is of ELF"],
    ["a text", () => Buffer.from("#!/bin/sh\n".repeat(20)), "an object file is of ELF"],
    ["a program of this machine", () => readFileSync(process.execPath).subarray(0, 4096), "an object file is of BPF, little-endian"],
    ["big-endian BPF", () => changed(5, 2), "an object file is of BPF, little-endian"],
    ["types of another format", () => changed(files.sockets.indexOf(section(files.sockets, ".BTF")), 0), "types are in BTF"],
  ])("wrong bytes are a clear error: %s", (_, bytes, why) => {
    const error = errorOf(bytes());
    expect(error).toContain(NONE);
    expect(error).toContain(why);
  });

  it("a file that was cut off anywhere is an error, too", () => {
    const { length } = files.sockets;
    const cuts = Array.from({ length: 40 }, (_, index) => Math.floor((length * index) / 40));
    expect(cuts.map((at) => errorOf(files.sockets.subarray(0, at))).filter((error) => !error.includes("[invalid_object]"))).toEqual([]);
  });
});
