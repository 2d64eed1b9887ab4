import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { importEntryPoint, importExternal, type ExternalModule } from "./external-module.ts";

test.each<[string, unknown, string, string | undefined]>([
  ["one file for all", "./a.js", ".", "./a.js"],
  ["one file for all has no other doors", "./a.js", "./testing", undefined],
  ["conditions without doors", { types: "./a.d.ts", import: "./a.js" }, ".", "./a.js"],
  ["doors", { ".": "./a.js", "./testing": "./t.js" }, "./testing", "./t.js"],
  ["a door for import alone", { ".": { types: "./a.d.ts", import: "./a.js", require: "./a.cjs" } }, ".", "./a.js"],
  ["nested conditions", { ".": { browser: "./b.js", node: { require: "./a.cjs", default: "./a.js" } } }, ".", "./a.js"],
  ["a condition nobody here meets", { ".": { browser: "./b.js" } }, ".", undefined],
  ["the first that is met", { ".": { default: "./d.js", import: "./a.js" } }, ".", "./d.js"],
  ["no exports", undefined, ".", undefined],
])("importEntryPoint: %s", (_name, exports, entryPoint, expected) => {
  expect(importEntryPoint(exports, entryPoint)).toBe(expected);
});

describe("importExternal", () => {
  let directory: string;
  const from = (spec: string): ExternalModule => ({ spec, object: `thing ${spec}`, hint: "try another" });
  const add = async (name: string, manifest: object): Promise<void> => {
    const home = join(directory, "node_modules", name);
    await mkdir(home, { recursive: true });
    await writeFile(join(home, "package.json"), JSON.stringify({ name, type: "module", ...manifest }));
    await writeFile(join(home, "index.js"), `export default ${JSON.stringify(name)};`);
  };

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "turnout-foreign-"));
  });
  afterEach(() => rm(directory, { recursive: true }));

  test("a package whose doors are for import alone", async () => {
    await add("@third/esm", { exports: { ".": { import: "./index.js" }, "./testing": { import: "./index.js" } } });
    expect({ ...(await importExternal(from("@third/esm"), directory)) }).toEqual({ default: "@third/esm" });
    expect({ ...(await importExternal(from("@third/esm/testing"), directory)) }).toEqual({ default: "@third/esm" });
  });

  test("a door that isn't there is said with what to try", async () => {
    await add("plain", { exports: "./index.js" });
    await expect(importExternal(from("plain/testing"), directory)).rejects.toThrow(
      /^\[invalid_object\] it can't be loaded \(Package subpath '.\/testing' is not defined .*\): thing plain\/testing: try another$/,
    );
    await expect(importExternal(from("nowhere"), directory)).rejects.toThrow(/thing nowhere: try another$/);
  });

  test("the directory of a package, and a door of it", async () => {
    await add("plain", { exports: { ".": "./index.js", "./testing": "./index.js" } });
    for (const path of ["./node_modules/plain", "./node_modules/plain/", "./node_modules/plain/testing"])
      expect({ ...(await importExternal(from(path), directory)) }).toEqual({ default: "plain" });
    await add("old", { main: "./index.js" });
    expect({ ...(await importExternal(from("."), join(directory, "node_modules/old"))) }).toEqual({ default: "old" });
  });

  test("a directory that is none is said with what to try", async () => {
    await expect(importExternal(from("./"), directory)).rejects.toThrow(
      /^\[invalid_object\] it can't be loaded \(it is a directory, and no package.json says which file is meant\): thing .\/: try another$/,
    );
    await expect(importExternal(from("./nothing"), directory)).rejects.toThrow(/thing .\/nothing: try another$/);
  });

  test("what is wrong inside a module is no matter of where it is", async () => {
    await writeFile(join(directory, "bad.mjs"), 'throw new Error("born broken");');
    await expect(importExternal(from("./bad.mjs"), directory)).rejects.toThrow(/\(born broken\): thing .\/bad.mjs: -v shows where$/);
  });
});
