import { readFile, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { runCommand } from "@turnout/house/command-line";
import type { BenchCase } from "./case.ts";
import { CASES } from "./cases/index.ts";
import { describeMachine, unmetNeed } from "./machine.ts";
import { helpText, parseOptions, shownOptions } from "./options.ts";
import type { BenchOptions } from "./options.ts";
import { publish } from "./page.ts";
import { writePlots } from "./plots.ts";
import { markdownOf, sectionOf } from "./report.ts";
import type { Measured } from "./report.ts";

const PLOTS = fileURLToPath(new URL("../docs/plots/", import.meta.url));
const PAGE = fileURLToPath(new URL("../docs/benchmarks.md", import.meta.url));

/** Run the benches asked for; resolves to false when one failed. A missed target is a result, not a failure. */
async function runBenches(options: BenchOptions): Promise<boolean> {
  const startMs = performance.now();
  const measured: Measured[] = [];
  const skipped: { name: string; why: string }[] = [];
  let failures = 0;
  for (const one of CASES.filter(({ name }) => options.only?.includes(name) ?? true)) {
    const why = one.needs.map(unmetNeed).find((reason) => reason !== undefined);
    if (why !== undefined) {
      process.stderr.write(`${one.name}: can't run: ${why}\n`);
      skipped.push({ name: one.name, why });
      continue;
    }
    try {
      const found = await measure(one, options, startMs);
      measured.push(found);
      // At once: what was measured stays, also when a later bench is interrupted.
      if (options.isPublishing) await putOnPage(found);
    } catch (error) {
      failures++;
      const text = error instanceof Error ? error.message : String(error);
      process.stderr.write(`${one.name}: failed: ${text}\n`);
      skipped.push({ name: one.name, why: `it failed: ${text.split("\n")[0] ?? ""}` });
    }
  }
  process.stdout.write(`${markdownOf({ measured, skipped })}\n`);
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify({ measured, skipped }, undefined, 1)}\n`);
  return failures === 0;
}

async function measure(one: BenchCase, options: BenchOptions, startMs: number): Promise<Measured> {
  const loads: number[] = [];
  const [date, machine] = [new Date().toISOString(), describeMachine()];
  const { shapes, runs, isQuick } = options;
  const progress = (text: string): void => {
    loads.push(loadavg()[0] ?? 0);
    const seconds = String(Math.round((performance.now() - startMs) / 1000)).padStart(4);
    process.stderr.write(`${seconds} s  ${one.name}: ${text}\n`);
  };
  const result = await one.run({ shapes, runs, isQuick, progress });
  return { name: one.name, date, options: shownOptions(options), machine, loads, result };
}

async function putOnPage(found: Measured): Promise<void> {
  await writeFile(PAGE, publish(await readFile(PAGE, "utf8"), found.name, sectionOf(found)));
  await plot();
}

/** Draw the plots of the tables that the page has now. */
async function plot(): Promise<void> {
  writePlots(await readFile(PAGE, "utf8"), PLOTS);
}

const NAMES = CASES.map(({ name }) => name);
await runCommand({
  name: "bench",
  usage: helpText(CASES),
  read: (args) => parseOptions(args, NAMES),
  execute: (options) => (options.isPlotting ? plot() : runBenches(options)),
});
