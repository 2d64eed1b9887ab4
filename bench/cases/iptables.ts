import { shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import type { Variant } from "../kube-proxy/tools.ts";
import { ratioText, runsText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { IptablesParameters, IptablesRun } from "../roles/iptables.ts";
import { median, percentile } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const VARIANTS: readonly Variant[] = ["nft", "legacy"];
/** A load at the largest size takes the nft variant a minute or more. */
const SHAPES: readonly { readonly shape: Shape; readonly runs: number; readonly changes: number; readonly isQuick: boolean }[] = [
  { shape: { services: 100, endpoints: 10 }, runs: 3, changes: 100, isQuick: true },
  { shape: { services: 1_000, endpoints: 10 }, runs: 3, changes: 100, isQuick: true },
  { shape: { services: 10_000, endpoints: 10 }, runs: 1, changes: 40, isQuick: false },
];
/** Slower than the tool alone, at most; ms. */
const slowerMaxMs = ({ services }: Shape): number => (services > 1_000 ? 10 : 5);

/** Samples of one size and variant. */
interface IptablesData {
  readonly shape: Shape;
  readonly variant: Variant;
  readonly runs: readonly IptablesRun[];
}

/** The iptables backend beside the tool alone: a cold start beside a plain reload, a change beside the same few lines. */
export const iptablesCase: BenchCase = {
  name: "iptables",
  about: "the iptables backend, both variants: cold start and one endpoint changed, beside the tool alone with the same rules",
  needs: ["root", "iptables"],
  async run(context): Promise<CaseResult> {
    const data: IptablesData[] = [];
    for (const shape of shapesOr(standardShapes(context), context))
      for (const variant of VARIANTS) data.push(await measure(shape, variant, context));
    return {
      title: "iptables",
      about:
        "*Cold start* is from objects in the store to rules in force in an empty namespace, including the time to probe the host and choose a variant. *Reload* gives what " +
        "`iptables-save` then prints to `iptables-restore`, without Turnout, in another empty namespace. *Change* is one endpoint removed or added, from the event entering the store to the " +
        "tool's answer, each after a pause (p50 / p99). *Alone*: the same texts in the same order are given to " +
        "`iptables-restore --noflush` without Turnout, in the same namespace, by turns of two. *Lines* is the length of the longest of those texts.",
      columns: [
        "services x endpoints",
        "variant",
        "cold start",
        "reload",
        "cold / reload",
        "changes",
        "change",
        "alone",
        "change − alone (p50)",
        "lines",
      ],
      rows: data.map(rowOf),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

function standardShapes({ isQuick }: CaseContext): readonly Shape[] {
  return SHAPES.filter((one) => one.isQuick || !isQuick).map(({ shape }) => shape);
}

async function measure(shape: Shape, variant: Variant, { runs, progress }: CaseContext): Promise<IptablesData> {
  const standard = SHAPES.find((one) => shape.services <= one.shape.services) ?? SHAPES.at(-1);
  const all: IptablesRun[] = [];
  for (let run = 0; run < (runs ?? standard?.runs ?? 1); run++) {
    progress(`${shapeText(shape)}: ${variant}`);
    const parameters: IptablesParameters = { shape, variant, changes: standard?.changes ?? 0 };
    all.push(await runRole<IptablesRun>("iptables-run", parameters));
  }
  return { shape, variant, runs: all };
}

function rowOf({ shape, variant, runs }: IptablesData): readonly string[] {
  const cold = runs.map((run) => run.cold.totalMs);
  const reload = runs.map((run) => run.reload.ms);
  const [changes, standalone] = samplesOf(runs);
  const both = (samples: readonly number[]): string => `${timeText(median(samples))} / ${timeText(percentile(samples, 0.99))}`;
  return [
    shapeText(shape),
    variant,
    runsText(cold, timeText),
    runsText(reload, timeText),
    ratioText(median(cold) / median(reload)),
    String(changes.length),
    both(changes),
    both(standalone),
    signedText(median(changes) - median(standalone)),
    String(Math.max(...runs.map(({ lines }) => lines))),
  ];
}

function targetsOf({ shape, variant, runs }: IptablesData): readonly Goal[] {
  const [changes, standalone] = samplesOf(runs);
  const slower = median(changes) - median(standalone);
  return [
    {
      what: `one-endpoint change with iptables (${variant}) at ${shapeText(shape)}, p50`,
      wanted: `the tool alone + ${timeText(slowerMaxMs(shape))} at most`,
      measured: `${timeText(median(standalone))} ${slower < 0 ? "−" : "+"} ${timeText(Math.abs(slower))}`,
      isMet: slower <= slowerMaxMs(shape),
    },
  ];
}

function samplesOf(runs: readonly IptablesRun[]): readonly [changes: readonly number[], standalone: readonly number[]] {
  return [runs.flatMap(({ changeMs }) => changeMs), runs.flatMap(({ bareMs }) => bareMs)];
}

function signedText(ms: number): string {
  return `${ms < 0 ? "−" : ""}${timeText(Math.abs(ms))}`;
}
