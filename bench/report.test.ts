import { readFileSync } from "node:fs";
import { markdownTable } from "@turnout/house/written-part";
import { describe, expect, it } from "vitest";
import { childTicks } from "./cpu-time.ts";
import { residentBytes, treeOf } from "./memory-sampler.ts";
import { parseMessage } from "./line-channel.ts";
import { memoryText, rateText, ratioText, runsText, timeText } from "./number-text.ts";
import { CASES } from "./cases/index.ts";
import { parseOptions, shownOptions } from "./options.ts";
import { publish } from "./page.ts";
import { markdownOf } from "./report.ts";
import { placedCommand } from "./role-process.ts";

describe("numbers for people", () => {
  it.each([
    [timeText(1.534), "1.53 ms"],
    [timeText(15.34), "15.3 ms"],
    [timeText(153.4), "153 ms"],
    [timeText(1534), "1.53 s"],
    [timeText(74_400), "74.4 s"],
    [memoryText(340_900_000), "341 MB"],
    [rateText(51_234), "51.2k/s"],
    [ratioText(1.456), "1.46x"],
    [ratioText(4.56), "4.6x"],
    [ratioText(31.4), "31x"],
    [runsText([3, 1, 2], timeText), "2.00 ms (1.00 ms–3.00 ms, 3 runs)"],
    [runsText([3], timeText), "3.00 ms (1 run)"],
  ])("%s", (text, expected) => {
    expect(text).toBe(expected);
  });
});

describe("report", () => {
  const machine = { kernel: "6.1", nft: "1.0.6", node: "v24", cpus: 2, cpuModel: "X", memoryBytes: 8e9, load: 0.5 };
  const target = { what: "speed", wanted: "under 5 ms", measured: "7 ms", isMet: false };
  const result = { title: "Speed", about: "How fast.", columns: ["a"], rows: [["1"]], targets: [target], data: {} };
  const measured = { name: "speed", date: "2026-01-02T03:04:05Z", options: ["--runs 3"], machine, loads: [3, 1, 2], result };
  const markdown = markdownOf({ measured: [measured], skipped: [{ name: "other", why: "no root" }] });

  it("says how, on what machine and under which load", () => {
    expect(markdown).toContain(
      "### Speed\n\n`npm run bench -- --only speed --runs 3` on 2026-01-02 at 03:04 UTC. Linux 6.1, nft 1.0.6, Node v24, 2 CPUs (X), 8000 MB memory.",
    );
    expect(markdown).toContain("the bench's own share included: 1.0–3.0, median 2.0.");
  });
  it("says that a target was missed", () => expect(markdown).toMatch(/\| speed +\| under 5 ms +\| 7 ms +\| \*\*missed\*\* +\|/));
  it("says what did not run, and why", () => expect(markdown).toContain("`other` did not run: no root"));
  it("pads tables, and fills cells that are missing", () => {
    expect(markdownTable(["x", "yy"], [["long", "1"], ["s"]])).toBe("| x    | yy  |\n| ---- | --- |\n| long | 1   |\n| s    |     |");
  });

  const place = (name: string, text: string): string => `<!-- bench ${name} -->${text}<!-- end of bench ${name} -->`;
  const page = `# Page\n\n${place("targets", "old")}\n## Slow things!\n${place("slow", "\nold\n")}\n## Quick\n${place("quick", "\n")}\nnotes\n`;
  const targets = (...rows: readonly (readonly string[])[]): string => markdownTable(["target", "wanted", "measured", ""], rows);

  it("replaces one bench's place on a page and no other, and gathers all targets, those that were missed first", () => {
    const first = publish(page, "slow", targets(["a", "1 s", "0.5 s", "met"]));
    const both = publish(first, "quick", targets(["b", "1 ms", "2 ms", "**missed**"]));
    const all = [
      ["b", "1 ms", "2 ms", "**missed**", "[Quick](#quick)"],
      ["a", "1 s", "0.5 s", "met", "[Slow things!](#slow-things)"],
    ];
    expect(both).toContain(
      `<!-- bench targets -->\n\n${markdownTable(["target", "wanted", "measured", "", "below"], all)}\n\n<!-- end of bench targets -->\n## Slow`,
    );
    expect(both).toContain(
      `## Slow things!\n<!-- bench slow -->\n\n${targets(["a", "1 s", "0.5 s", "met"])}\n\n<!-- end of bench slow -->\n## Quick`,
    );
    expect(both).toContain("<!-- end of bench quick -->\nnotes\n");
    expect(both).not.toContain("old");
  });
  it("refuses a page without a place", () => expect(() => publish("text", "slow", "new")).toThrow("lacks the lines"));
  it("docs/benchmarks.md has a place for each bench", () => {
    const real = readFileSync(new URL("../docs/benchmarks.md", import.meta.url), "utf8");
    for (const { name } of CASES) expect(publish(real, name, "new")).toContain(`<!-- bench ${name} -->\n\nnew\n`);
  });
});

describe("options", () => {
  const known = ["store", "change"];
  it("reads everything", () => {
    expect(
      parseOptions(
        ["--only", "store,change", "--sizes", "10x2,20", "--runs", "3", "--json", "f", "--publish", "--plots", "--quick"],
        known,
      ),
    ).toEqual({
      isQuick: true,
      only: ["store", "change"],
      shapes: [
        { services: 10, endpoints: 2 },
        { services: 20, endpoints: 10 },
      ],
      runs: 3,
      json: "f",
      isPublishing: true,
      isPlotting: true,
    });
  });
  it("shows those that say what is measured, as they are typed", () => {
    const options = parseOptions(["--sizes", "10x2,20", "--runs", "3", "--quick", "--publish"], known);
    expect(shownOptions(options)).toEqual(["--sizes 10x2,20x10", "--runs 3", "--quick"]);
    expect(shownOptions(parseOptions([], known))).toEqual([]);
  });
  it.each([
    ["an unknown bench", ["--only", "stoer"], 'no bench "stoer"'],
    ["a run count that is none", ["--runs", "0"], "--runs 0"],
    ["a size that is none", ["--sizes", "many"], '"many" is no size'],
    ["an unknown option", ["--speed"], "--speed"],
  ])("refuses %s", (_name, args, text) => {
    expect(() => parseOptions(args, known)).toThrow(text);
  });
});

describe("measured processes", () => {
  it.each([
    ["a namespace of its own", {}, ["unshare", "--net", "x"]],
    ["the same one", { namespace: "same" as const }, ["x"]],
    ["a process's", { namespace: { pid: 7 } }, ["nsenter", "--net=/proc/7/ns/net", "x"]],
    ["one CPU", { namespace: "same" as const, cpu: 1 }, ["taskset", "--cpu-list", "1", "x"]],
  ])("are put into %s", (_name, options, expected) => {
    expect(placedCommand(["x"], options)).toEqual(expected);
  });

  it("are told from what Node prints itself", () => {
    expect(parseMessage('{"kind":"result","value":1}')).toEqual({ kind: "result", value: 1 });
    expect(parseMessage("(node:1) Warning: old")).toBeUndefined();
  });

  it("count with all their descendants", () => {
    const children: Record<number, readonly number[]> = { 1: [2, 3], 3: [4] };
    expect(treeOf(1, (pid) => children[pid] ?? [])).toEqual([1, 2, 3, 4]);
  });

  it("are charged what their ended children used, whatever the process is called", () => {
    expect(childTicks("7 (a b) c) S 1 7 7 0 -1 4194304 100 200 0 0 11 12 30 40 20 0 1 0 5 6 7")).toBe(70);
  });

  it("are counted in resident pages; one that is gone holds nothing", () => {
    expect(residentBytes("1000 25 3 1 0 9 0\n")).toBe(25 * 4096);
    expect(residentBytes("")).toBe(0);
  });
});
