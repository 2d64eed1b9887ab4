import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { citedIn, hasTitle, readRows, type Cited } from "./shown-by.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/operations.md"), "utf8");
const SCENARIOS = globSync("packages/conformance/src/scenarios/*.ts", { cwd: ROOT })
  .map((path) => readFileSync(join(ROOT, path), "utf8"))
  .join("\n");

function missing({ file, title }: Cited): string | undefined {
  if (file === undefined) return title === undefined || hasTitle(SCENARIOS, title) ? undefined : `the kit has no scenario "${title}"`;
  if (!existsSync(join(ROOT, file))) return `there is no ${file}`;
  if (title === undefined || hasTitle(readFileSync(join(ROOT, file), "utf8"), title)) return undefined;
  return `no title in ${file} begins "${title}"`;
}

describe("what a page says of tests", () => {
  test("is read from its tables", () => {
    const page = "\n## One\n| a | b |\n|---|---|\n| x | `a|b` |\n\n### More\n| c |\n|---|\n| y |\n\n## Two\n| d |\n|---|\n| z |\n";
    expect(readRows(page, "One")).toEqual([
      { columns: ["a", "b"], cells: ["x", "`a|b`"] },
      { columns: ["c"], cells: ["y"] },
    ]);
    expect(readRows(page, "Three")).toEqual([]);
  });

  test("is a file, or titles in it, or scenarios of the kit", () => {
    expect(citedIn('`a/b.test.ts`; `c.test.ts` "one", "two"; kit "three"; `other.ts`')).toEqual([
      { file: "a/b.test.ts", title: undefined },
      { file: "c.test.ts", title: "one" },
      { file: "c.test.ts", title: "two" },
      { file: undefined, title: "three" },
    ]);
  });

  test("is missed where there is no such file, title or scenario", () => {
    const here = "scripts/shown-by.test.ts";
    const absent = ["is", "absent"].join(" ");
    const wrong = ["`gone.test.ts`", `\`${here}\` "${absent}"`, `kit "${absent}"`, `\`${here}\` "is missed where"`];
    expect(wrong.flatMap((cell) => citedIn(cell).flatMap((one) => missing(one) ?? []))).toHaveLength(3);
  });
});

describe("docs/operations.md", () => {
  const pains = readRows(PAGE, "What hurts users of service proxies");
  const items = readRows(PAGE, "Beside kube-proxy, item by item");

  test("answers forty troubles, in order", () => {
    expect(pains.map(({ cells }) => cells[0])).toEqual(Array.from({ length: 40 }, (_, index) => String(index + 1)));
  });

  test.each(
    [...pains, ...items, ...readRows(PAGE, "Production readiness")].map(
      (row) => [row.cells.slice(0, 2).join(" ").slice(0, 60), row] as const,
    ),
  )("%s: is answered, and the tests it names are there", (_name, row) => {
    expect(row.cells.length).toBeGreaterThanOrEqual(row.columns.length - 1);
    expect(row.cells.filter((cell) => cell !== "").length).toBeGreaterThanOrEqual(2);
    expect(row.cells.flatMap((cell) => citedIn(cell).flatMap((one) => missing(one) ?? []))).toEqual([]);
  });
});

test("docs/security.md names tests that are there", () => {
  const rows = readRows(readFileSync(join(ROOT, "docs/security.md"), "utf8"), "Attacks, and the tests that play them");
  expect(rows.length).toBeGreaterThan(10);
  expect(rows.flatMap(({ cells }) => cells.slice(2).flatMap((cell) => citedIn(cell).flatMap((one) => missing(one) ?? [])))).toEqual([]);
});
