import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url));
const RULES = readFileSync(join(ROOT, "docs/rules.md"), "utf8");

interface Shown {
  readonly file: string;
  /** Words that must occur in the file; undefined: the rule's number must occur in the title of a test there. */
  readonly words: string | undefined;
}

/** The rules as they are written down, with the tests each names. */
function readRules(): ReadonlyMap<number, { readonly text: string; readonly shown: readonly Shown[] }> {
  const entries = RULES.split(/^- \*\*R-/m).slice(1);
  return new Map(
    entries.map((entry) => {
      const [, tests = ""] = entry.split("*Tests:*");
      const shown = [...tests.matchAll(/`([^`]+\.test\.ts)`(?:\s+"([^"]+)")?/g)].map(([, file = "", words]) => ({ file, words }));
      return [Number.parseInt(entry, 10), { text: entry.slice(4), shown }];
    }),
  );
}

/** Numbers cited in a text. */
function citedIn(text: string): ReadonlySet<number> {
  const cited = new Set<number>();
  for (const [, from = "", to = from] of text.matchAll(/\bR-(\d{2})(?: to R-(\d{2}))?/g))
    for (let number = Number(from); number <= Number(to); number++) cited.add(number);
  return cited;
}

/** Numbers that titles of tests in a file carry. */
function titled(text: string): ReadonlySet<number> {
  return citedIn([...text.matchAll(/(?:^\s*\[?|\()"([^"]*\bR-\d{2}[^"]*)"/gm)].map(([, title = ""]) => title).join("\n"));
}

const rules = readRules();
const sources = globSync(["packages/*/src/**/*.ts", "e2e/**/*.ts"], { cwd: ROOT }).filter((path) => !path.includes("/dist/"));

describe("the rulebook", () => {
  it("numbers each rule once, in order, in words", () => {
    const numbers = [...RULES.matchAll(/^- \*\*R-(\d{2})\*\* \S/gm)].map(([, number]) => Number(number));
    expect(numbers.length).toBeGreaterThan(50);
    expect(numbers).toEqual([...new Set(numbers)].toSorted((a, b) => a - b));
    expect([...rules.keys()]).toEqual(numbers);
    for (const { text } of rules.values()) expect(text).toMatch(/\*Source:\* \S/);
  });

  it("holds every number that code or a test cites", () => {
    const unknown = sources.flatMap((path) => {
      const text = readFileSync(join(ROOT, path), "utf8").replaceAll("`R-", "");
      return [...citedIn(text)].filter((number) => !rules.has(number)).map((number) => `${path}: R-${number}`);
    });
    expect(unknown).toEqual([]);
  });

  it.each([...rules])("R-%i is shown by tests that exist", (number, { shown }) => {
    expect(shown.length).toBeGreaterThan(0);
    expect(shown.flatMap((one) => missing(number, one) ?? [])).toEqual([]);
  });
});

/** What keeps a rule from being shown by a test, if anything does. */
function missing(number: number, { file, words }: Shown): string | undefined {
  if (!existsSync(join(ROOT, file))) return `there is no ${file}`;
  const text = readFileSync(join(ROOT, file), "utf8");
  if (words !== undefined) return text.includes(words) ? undefined : `${file} does not say "${words}"`;
  return titled(text).has(number) ? undefined : `no title in ${file} carries the number`;
}
