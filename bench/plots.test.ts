import { readdirSync, readFileSync } from "node:fs";
import { tablesOf } from "@turnout/house/written-part";
import { expect, it } from "vitest";
import { plotsOf } from "./plots.ts";
import { partOf, valueOf, valueText } from "./plot-tables.ts";

const PAGE = new URL("../docs/benchmarks.md", import.meta.url);
const FOLDER = new URL("../docs/plots/", import.meta.url);

it.each([
  ["1.65 s (1.51 s–2.02 s, 5 runs)", 1650, "1.65 s"],
  ["45 µs / 108 µs", 0.045, "45 µs / 108 µs"],
  ["269 MB (268 MB–270 MB, 2 runs)", 269, "269 MB"],
  ["1,200 ms", 1200, "1,200 ms"],
  ["not run", undefined, "not run"],
  ["", undefined, ""],
])("reads the cell %j", (cell, value, text) => {
  expect(valueOf(cell)).toBe(value);
  expect(valueText(cell)).toBe(text);
});

it("takes one of the values of a cell", () => {
  expect([0, 1, 2].map((part) => partOf("9.3k/s, 189.0 µs (0.98x, 1.02x)", part))).toEqual([
    "9.3k/s, 189.0 µs (0.98x, 1.02x)",
    "189.0 µs",
    "",
  ]);
  expect(partOf("not run", 1)).toBe("");
});

it("reads tables with the heading that they stand below", () => {
  const page = "# A\ntext\n## B\n\n| a | b |\n| --- | ---: |\n| 1 | 2 |\n\n| c |\n|---|\n| x y |\n";
  expect(tablesOf(page)).toEqual([
    { heading: "B", columns: ["a", "b"], rows: [["1", "2"]] },
    { heading: "B", columns: ["c"], rows: [["x y"]] },
  ]);
});

it("draws a bar as long as its value, words where there is none, and nothing twice", () => {
  const rows = ["| 1 x 1 | 10 ms | 1 s | not run |", "| 2 x 2 | 100 ms |  | 10 s |"].join("\n");
  const svg =
    plotsOf(`### Cold start\n| services x endpoints | Turnout | layout A | layout B |\n|---|---|---|---|\n${rows}\n`).get(
      "cold-start.svg",
    ) ?? "";
  const width = (kind: string): readonly number[] =>
    [...svg.matchAll(new RegExp(`class="${kind}" x="215" y="[\\d.]+" width="([\\d.]+)"`, "g"))].map(([, text]) => Number(text));
  const [ten = 0, hundred = 0] = width("s0");
  const [thousand = 0] = width("s1");
  const [tenThousand = 0] = width("s2");
  // Of a logarithmic axis each step is as long as the others.
  expect(hundred - ten).toBeCloseTo(thousand - hundred, 0);
  expect(tenThousand - thousand).toBeCloseTo(thousand - hundred, 0);
  expect(svg).toContain(">not run</text>");
  expect(svg).toContain("prefers-color-scheme:dark");
});

it("draws only the lines that it is told to, and nothing where there are none", () => {
  const rules = ["Turnout, nft", "kube-proxy, nftables", "Turnout, eBPF", "Turnout, iptables", "kube-proxy, iptables"];
  const columns = ["services x endpoints", "measure", "from", "asks", ...rules];
  const row = (size: string, rate: string): string => `| ${size} | connects | a pod | cluster IP | ${rules.map(() => rate).join(" | ")} |`;
  const page = (...rows: readonly string[]): string =>
    [`### Traffic through Services`, `| ${columns.join(" | ")} |`, `|${"---|".repeat(columns.length)}`, ...rows, ""].join("\n");
  const plots = plotsOf(page(row("1 x 2", "7.5k/s, 90.1 µs"), row("10,000 x 2", "2.5k/s, 300 µs (1.01x, 0.99x)")));
  expect([...plots.keys()]).toEqual(["traffic-connect-nft.svg", "traffic-connect-iptables.svg"]);
  const svg = plots.get("traffic-connect-nft.svg") ?? "";
  expect(svg).toContain(">a pod, cluster IP</text>");
  expect(svg.match(/>300 µs<\/text>/g)?.length).toBeGreaterThanOrEqual(3);
  expect(svg).not.toContain("90.1 µs");
  expect(plotsOf(page(row("1 x 2", "7.5k/s, 90.1 µs"))).size).toBe(0);
});

it("says which column a table lacks, and plots no table that a page has not", () => {
  expect(() => plotsOf("### Cold start\n| services x endpoints | Turnout |\n|---|---|\n| 1 x 1 | 1 s |\n")).toThrow('no column "layout A"');
  expect(plotsOf("# Nothing\n").size).toBe(0);
});

it("the plots of docs/benchmarks.md are of its tables (else: npm run bench -- --plots)", () => {
  const page = readFileSync(PAGE, "utf8");
  const plots = plotsOf(page);
  expect(readdirSync(FOLDER).toSorted()).toEqual([...plots.keys()].toSorted());
  for (const [name, svg] of plots) {
    expect(readFileSync(new URL(name, FOLDER), "utf8")).toBe(svg);
    expect(page.split(`(plots/${name})`)).toHaveLength(2);
  }
});

it("docs/benchmarks.md begins with all plots, each below a sentence with a link to its table", () => {
  const page = readFileSync(PAGE, "utf8");
  const [, first = ""] = page.split(/^## /m);
  expect(first).toMatch(/^At a glance\n/);
  const plots = [...first.matchAll(/^\*\*\[.+\]\(#[\w-]+\).+(?:\n.+)*\n\n!\[.+\]\(plots\/([\w-]+\.svg)\)$/gm)].map(([, name = ""]) => name);
  expect(plots.toSorted()).toEqual([...plotsOf(page).keys()].toSorted());
});
