import { describe, expect, it } from "vitest";
import { entryPointsOf, surfaceDifference, surfaceText } from "./api-surface.ts";
import { parseSource } from "./architecture/source-file.ts";

function filesOf(sources: Readonly<Record<string, string>>): Map<string, ReturnType<typeof parseSource>> {
  return new Map(Object.entries(sources).map(([path, text]) => [path, parseSource(path, text)]));
}

const entryPoint = { specifier: "@turnout/x", path: "packages/x/src/index.ts" };

describe("surfaceText", () => {
  it("follows re-exports to the declarations and sorts them", () => {
    const files = filesOf({
      "packages/x/src/index.ts": `export * from "./a.ts"; export { b as c } from "./b/b.ts"; export * as ns from "./a.ts";
        import { z } from "./a.ts"; export { z as again }; export type { Row } from "./b/b.ts"; export { q } from "@turnout/core"; export * from "other";
        export default class {}`,
      "packages/x/src/a.ts": `export const z = 1, y = 2; export default z; export class K {} export function f(): void {} const hidden = 1; export { hidden as shown };`,
      "packages/x/src/b/b.ts": `export * from "../a.ts"; export function b(): void {} export interface Row {} export type T = 1; export * from "./b.ts";`,
    });
    expect(surfaceText([entryPoint], files).split("\n")).toEqual([
      "@turnout/x",
      "  everything * from other",
      "  class K",
      "  interface Row",
      "  const again",
      "  function c",
      "  class default",
      "  function f",
      "  namespace ns",
      "  from @turnout/core q",
      "  const shown",
      "  const y",
      "  const z",
      "",
    ]);
  });

  it("follows a default that was imported", () => {
    const files = filesOf({
      [entryPoint.path]: `import m from "./m.ts"; export default m;`,
      "packages/x/src/m.ts": "export default class M {}",
    });
    expect(surfaceText([entryPoint], files)).toBe("@turnout/x\n  class default\n");
  });

  it("throws when a re-export leads nowhere", () => {
    expect(() => surfaceText([entryPoint], filesOf({ [entryPoint.path]: `export * from "./gone.ts";` }))).toThrow("packages/x/src/gone.ts");
  });
});

it("finds the doors of a package.json and no other exports", () => {
  const exports = {
    ".": { "@turnout/source": "./src/index.ts", default: "./dist/index.js" },
    "./testing": { "@turnout/source": "./src/testing/index.ts" },
  };
  expect(entryPointsOf("packages/x", "@turnout/x", { ...exports, "./package.json": "./package.json", "./none": null })).toEqual([
    { specifier: "@turnout/x", path: "packages/x/src/index.ts" },
    { specifier: "@turnout/x/testing", path: "packages/x/src/testing/index.ts" },
  ]);
});

it("names what went and what came, door by door", () => {
  const before = "@turnout/x\n  const a\n  const b\n\n@turnout/x/testing\n  const b\n";
  const after = "@turnout/x\n  const a\n  function b\n\n@turnout/x/testing\n  const b\n";
  expect(surfaceDifference(before, after)).toEqual(["- @turnout/x: const b", "+ @turnout/x: function b"]);
  expect(surfaceDifference(before, before)).toEqual([]);
});
