import { expect, test } from "vitest";
import { blocksOf, patternOf, sessionOf } from "./doc-session.ts";

const PAGE = `# A page

    not typed

Text.

    $ make dir
    $ show it
    one … three

    four
    $ show "$HOME"
    …
    last
Text that ends it.

    belongs to nothing
`;

test("what a page has the reader type, with what it says is printed", () => {
  expect(sessionOf(PAGE)).toEqual([
    { command: "make dir", prints: "", line: 7 },
    { command: "show it", prints: "one … three\n\nfour", line: 8 },
    { command: 'show "$HOME"', prints: "…\nlast", line: 12 },
  ]);
});

test.each([
  ["one … three", "one two three\n", true],
  ["one … three", "one two\nthree\n", false],
  ["…\nlast", "a\nb\nlast\n", true],
  ["…\nlast", "last\n", true],
  ["…\nlast", "a\nlast\nmore\n", false],
  ["a.c (x)", "a.c (x)\n", true],
  ["a.c", "abc\n", false],
  ["exit code 1", "exit code 7\n", false],
])("%j is printed as %j: %s", (prints, printed, isSo) => {
  expect(patternOf(prints).test(printed)).toBe(isSo);
});

test("the blocks of a page are those that say that they are TypeScript", () => {
  expect(blocksOf("# A page\n\n```ts\na();\n```\nText.\n```sh\nls\n```\n```ts\nb();\n\nc();\n```\n")).toEqual(["a();\n", "b();\n\nc();\n"]);
});
