import { parseArgs } from "node:util";
import { parseShape } from "./workload.ts";
import type { Shape } from "./workload.ts";

/** What a person asked the harness for. */
export interface BenchOptions {
  /** Names of benches; undefined: all. */
  readonly only: readonly string[] | undefined;
  readonly shapes: readonly Shape[] | undefined;
  readonly runs: number | undefined;
  /** Leave out the sizes that take minutes. */
  readonly isQuick: boolean;
  /** Where to write everything measured, as JSON. */
  readonly json: string | undefined;
  /** Put the tables into docs/benchmarks.md. */
  readonly isPublishing: boolean;
  /** Only draw the plots of docs/benchmarks.md again, of the tables that it has. */
  readonly isPlotting: boolean;
}

/** Read the command line. @throws {TypeError | RangeError} saying what is wrong with it. */
export function parseOptions(args: readonly string[], known: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      sizes: { type: "string" },
      runs: { type: "string" },
      quick: { type: "boolean", default: false },
      json: { type: "string" },
      publish: { type: "boolean", default: false },
      plots: { type: "boolean", default: false },
    },
  });
  const only = values.only?.split(",");
  for (const name of only ?? [])
    if (!known.includes(name)) throw new RangeError(`there is no bench "${name}": choose from ${known.join(", ")}`);
  const runs = values.runs === undefined ? undefined : Number(values.runs);
  if (runs !== undefined && !(Number.isInteger(runs) && runs > 0)) throw new RangeError(`--runs ${values.runs ?? ""} is no number above 0`);
  return {
    only,
    shapes: values.sizes?.split(",").map(parseShape),
    runs,
    isQuick: values.quick,
    json: values.json,
    isPublishing: values.publish,
    isPlotting: values.plots,
  };
}

/** The options that say what is measured, as they are typed. */
export function shownOptions({ shapes, runs, isQuick }: BenchOptions): readonly string[] {
  return [
    ...(shapes === undefined ? [] : [`--sizes ${shapes.map(({ services, endpoints }) => `${services}x${endpoints}`).join(",")}`]),
    ...(runs === undefined ? [] : [`--runs ${runs}`]),
    ...(isQuick ? ["--quick"] : []),
  ];
}

/** What `--help` prints. */
export function helpText(cases: readonly { readonly name: string; readonly about: string }[]): string {
  return `npm run bench -- [options]

  --only NAME[,NAME]       only these benches
  --sizes SERVICESxENDPOINTS[,…]   other sizes, e.g. 100x10,10000x10
  --runs N                 N runs of each (changes in "change", connects in "connect")
  --quick                  without the sizes that take minutes (iptables)
  --json FILE              everything measured, as JSON
  --publish                put each bench's tables into its place in docs/benchmarks.md, and draw docs/plots
  --plots                  measure nothing: draw docs/plots again, of the tables in docs/benchmarks.md

Benches:
${cases.map(({ name, about }) => `  ${name.padEnd(12)} ${about}`).join("\n")}
`;
}
