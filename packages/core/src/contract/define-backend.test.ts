import { describe, expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import type { BackendModule, KernelObject, Plain } from "./backend.ts";
import { moduleFaults } from "./check-module.ts";
import { defineBackend } from "./define-backend.ts";
import { listOption, numberOption, readOptions, switchOption, textOption, wordOption } from "./declared-options.ts";

interface Options {
  readonly folder: string;
  readonly mode: "auto" | "on" | "off";
  readonly isLoud: boolean;
  readonly names: readonly string[];
  readonly sizes: { readonly rows: number; readonly share: number };
}

let facts: number;
const closed: string[] = [];
const module: BackendModule<Options, number, KernelObject, string> = defineBackend({
  name: "sample",
  residence: "kernel",
  capabilities: { IPv4: true },
  options: {
    folder: textOption("folder", "/run", "a path from /", /^\//, "e.g. /run/x"),
    mode: wordOption("mode", ["on", "off"], "auto"),
    isLoud: switchOption("loud", false),
    names: listOption("names", "a name", (one) => (one === "" ? undefined : one)),
    sizes: {
      rows: numberOption("rows", 5, { min: 1, max: 9, isWhole: true }),
      share: numberOption("share", 0.5, { min: 0, max: 1 }),
    },
  },
  settle: (options) => ({ ...options, isLoud: options.isLoud || options.mode === "on" }),
  facts: () => Promise.resolve(facts++),
  factChanges: async function* () {
    yield await Promise.resolve();
  },
  probe: ({ folder }) => Promise.resolve({ versions: { folder } }),
  share: ({ folder }) => ({ folder, families: [] as string[] }),
  family(family, { folder, families }) {
    families.push(family);
    return {
      skeleton: () => [{ kind: "folder", key: folder, value: true }],
      render: () => [],
      plan: () => ({ steps: [] }),
      observe: () => Promise.resolve(undefined),
      apply: () => Promise.resolve({}),
    };
  },
  close: ({ families }) => Promise.resolve(void closed.push(...families)),
});

describe("defineBackend", () => {
  const world = { clock: new TestClock(0), log: undefined as never, exec: undefined as never };
  const signal = new AbortController().signal;

  it("makes a module of this contract, with options by kind", () => {
    expect(moduleFaults(module)).toEqual([]);
    expect(module.options).toEqual({ folder: "text", mode: "text", loud: "switch", names: "list", rows: "number", share: "number" });
  });

  it("reads facts in the probe, unless the probe reports them", async () => {
    facts = 7;
    expect(await module.probe(module.parseOptions({}), world, signal)).toEqual({ facts: 7, versions: { folder: "/run" }, problems: [] });
  });

  it("shares between families, reports facts where they change, and closes what is shared", async () => {
    const dataplane = await module.open(module.parseOptions({ folder: "/a" }), world, signal);
    const backend = dataplane.family("IPv4");
    dataplane.family("IPv6");
    expect(backend.skeleton(undefined as never)).toEqual([{ kind: "folder", key: "/a", value: true }]);
    facts = 1;
    const seen: unknown[] = [];
    for await (const event of backend.watch?.(signal) ?? []) seen.push(event);
    expect(seen).toEqual([
      { kind: "facts", facts: 1 },
      { kind: "facts", facts: 2 },
    ]);
    await dataplane.close(signal);
    expect(closed).toEqual(["IPv4", "IPv6"]);
  });
});

describe("options that are declared", () => {
  const DEFAULTS = { folder: "/run", mode: "auto", isLoud: false, names: [], sizes: { rows: 5, share: 0.5 } };

  it.each<[Readonly<Record<string, Plain>>, object]>([
    [{}, {}],
    [{ mode: "on" }, { mode: "on", isLoud: true }],
    [{ names: ["a", "b"] }, { names: ["a", "b"] }],
    [{ rows: 9, share: 0.25 }, { sizes: { rows: 9, share: 0.25 } }],
  ])("%j", (raw, expected) => expect(module.parseOptions(raw)).toEqual({ ...DEFAULTS, ...expected }));

  it.each<[Readonly<Record<string, Plain>>, string]>([
    [{ color: 1 }, '[invalid_object] unknown sample option "color": known are folder, mode, loud, names, rows, share'],
    [{ folder: "run" }, '[invalid_object] folder must be a path from /: "run": e.g. /run/x'],
    [{ mode: "auto" }, '[invalid_object] mode must be on or off: "auto"'],
    [{ loud: "yes" }, '[invalid_object] loud must be true or false: "yes"'],
    [{ names: "a" }, '[invalid_object] names must be a list, each of it a name: "a"'],
    [{ names: [1] }, "[invalid_object] names must be a list, each of it a name: [1]"],
    [{ names: [""] }, '[invalid_object] names must be a list, each of it a name: [""]'],
    [{ rows: 1.5 }, "[invalid_object] rows must be a whole number from 1 to 9: 1.5"],
    [{ share: 2 }, "[invalid_object] share must be a number from 0 to 1: 2"],
  ])("%j is refused by name", (raw, message) => expect(() => module.parseOptions(raw)).toThrow(message));

  it("may have words that are no text, and more than two", () => {
    const options = { word: wordOption("word", ["auto", true, false], "auto") };
    expect(() => readOptions<{ word: string | boolean }>("x", options, { word: 1 })).toThrow("word must be auto, true or false: 1");
    expect(options.word.kind).toBe("any");
  });
});
