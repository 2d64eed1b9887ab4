import { describe, expect, it } from "vitest";
import { checkCitations } from "./check-citations.ts";
import { describeFinding } from "./finding.ts";
import { parseSource } from "./source-file.ts";

const PAGES = ["ARCHITECTURE.md", "docs/rules.md", "docs/adr/0022-rooms.md", "packages/x/test/README.md"];

describe("citations", () => {
  const cited = (text: string): string[] => checkCitations([parseSource("packages/x/src/a.ts", text)], PAGES).map(({ subject }) => subject);

  it.each([
    ["/** @source semantics.md 6.1; KEP-3836 */", ["semantics.md"]],
    ["// Design.md section 2: who may import whom.", ["Design.md"]],
    ["/** See spec/rules.md and docs/rules.md. */", ["spec/rules.md"]],
    ["/** As `architecture.md` says (style.md part 3). */", ["architecture.md", "style.md"]],
  ])("finds %s", (text, pages) => {
    expect(cited(`${text}\nexport const a = 1;`)).toEqual(pages);
  });

  it.each([
    "/** @source docs/rules.md; docs/adr/0022-rooms.md, ARCHITECTURE.md. */",
    "// A recording: see test/README.md.",
    "/** @source https://github.com/kubernetes/enhancements/blob/master/README-kep.md */",
    'const page = "semantics.md";',
  ])("lets %s pass", (text) => {
    expect(cited(text)).toEqual([]);
  });

  it("says where", () => {
    const file = parseSource("a.ts", "const a = 1;\n/**\n * Why.\n * @source semantics.md 1.2\n */\nexport const b = a;");
    expect(checkCitations([file], PAGES).map(describeFinding)).toEqual([
      "error: a.ts:4: [citations] a comment cites semantics.md, which is not in this repository: cite a rule (R-..), a page that is, or a KEP",
    ]);
  });
});
