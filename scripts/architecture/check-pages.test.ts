import { describe, expect, it } from "vitest";
import { checkInside, checkLayerTables } from "./check-pages.ts";

const LAYERS = { core: { model: [], contract: ["model"], sync: ["model", "contract"], testing: ["model", "contract"] } };
const HEAD = ["text", "| layer of `core` | holds | may import |", "|---|---|---|"];
const LINES = [
  "| `model/` | rows | nothing |",
  "| `contract/` | what a backend implements | model |",
  "| `sync/` | the ledger | model, contract |",
  "| `testing/` | a toy | all but sync |",
];
const reported = (lines: readonly string[]): readonly string[] =>
  checkLayerTables({ path: "A.md", text: [...HEAD, ...lines, "", "after"].join("\n") }, LAYERS).map(({ what }) => what);

describe("tables of layers", () => {
  it("that say what is checked pass", () => {
    expect(reported(LINES)).toEqual([]);
  });

  it.each([
    [
      "a layer that may import more",
      1,
      "| `contract/` | what a backend implements | nothing |",
      "contract may import model, and the table says nothing",
    ],
    ["a layer that may import less", 0, "| `model/` | rows | sync |", "model may import nothing, and the table says sync"],
    ["all, where it isn't", 3, "| `testing/` | a toy | all |", "testing may import model, contract, and the table says all"],
    ["a layer that is none", 2, "| `sync/`, `loop/` | the ledger | model, contract |", "core/loop is no layer"],
    ["a layer that is missing", 2, "", "layer core/sync is missing in the table"],
  ])("are complained of for %s", (_, index, line, what) => {
    expect(reported(LINES.with(index, line).filter((one) => one !== ""))).toEqual([what]);
  });
});

describe("what a README lists under Inside", () => {
  const text =
    "# x\n\n## Inside\n| file | job |\n|---|---|\n| `plan`, `gone` | of `nothing` |\n| `testing/` | fakes |\n\n## Tests\n| `no` | file |\n";

  it("is looked for in src, files and folders", () => {
    const sources = ["packages/x/src/plan.ts", "packages/x/src/testing/index.ts", "packages/y/src/gone.ts"];
    expect(checkInside([{ path: "packages/x/README.md", text }], sources)).toEqual([
      { rule: "pages", path: "packages/x/README.md", line: 6, subject: "gone", what: "packages/x/src has no gone" },
    ]);
    expect(checkInside([{ path: "docs/README.md", text }], sources)).toEqual([]);
  });

  it("has every folder of src but those of tests and generated files", () => {
    const sources = ["plan.ts", "testing/a.ts", "other/b.ts", "gen/c.ts", "test-support/d.ts"].map((name) => `packages/x/src/${name}`);
    const missing = {
      rule: "pages",
      path: "packages/x/README.md",
      subject: "other",
      what: expect.stringContaining("src/other is missing") as string,
    };
    expect(checkInside([{ path: "packages/x/README.md", text: text.replace(", `gone`", "") }], sources)).toMatchObject([missing]);
  });
});
