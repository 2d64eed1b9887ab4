import { describe, expect, it } from "vitest";
import { checkInside } from "./check-pages.ts";

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
