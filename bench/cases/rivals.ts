import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { kubeProxyVersion } from "../kube-proxy/process.ts";
import { memoryText, ratioText, timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { Rival, RivalParameters, RivalRun } from "../roles/rival.ts";
import { median, percentile } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [
  { services: 1_000, endpoints: 10 },
  { services: 10_000, endpoints: 10 },
];
const CHANGES = 30;

/** Samples of one program at one size. */
interface RivalData {
  readonly shape: Shape;
  readonly rival: Rival;
  readonly run: RivalRun;
}

/** The real kube-proxy, whose path is in KUBE_PROXY, and the installed `turnout run`, each against an API server emulator. */
export const rivals: BenchCase = {
  name: "rivals",
  about: "the real kube-proxy (KUBE_PROXY=path) beside the installed `turnout run`: start to rules in force, and one endpoint changed",
  needs: ["root", "nft", "iptables", "ip", "built", "kube-proxy"],
  async run(context): Promise<CaseResult> {
    const binary = process.env["KUBE_PROXY"] ?? "kube-proxy";
    const data: RivalData[] = [];
    for (const shape of shapesOr(SHAPES, context)) data.push(...(await measureAll(shape, rivalsOf(binary), context)));
    return {
      title: `Beside the real kube-proxy ${kubeProxyVersion(binary)}`,
      about:
        "Each program is a process in a network namespace of its own, with both families, against the lab's API server emulator over plain HTTP; kube-proxy is told to use JSON, its default is protobuf. Against a real kube-apiserver both start in about 1.1 s at 1,000 x 10, so starts here are not those of a real cluster. *Start* is from " +
        "the start of the process to IPv4 rules in force, including lists; *first sync* is the part of it after the lists were complete, by the program's " +
        "own log. *Change* is one endpoint removed, from the write at the API server to the line in the program's log that says that the change is in force; each " +
        "is made after more than a second without changes, because both programs wait a second between syncs by default. In brackets: how many times as long as Turnout with nft. " +
        "*Memory* is the resident memory of the process tree after the changes.",
      columns: ["services x endpoints", "program", "start", "first sync", "change p50", "change max", "memory", "load before"],
      rows: data.map((one) => rowOf(one, data)),
      targets: data.flatMap((one) => targetsOf(one, data)),
      data,
    };
  },
};

function rivalsOf(binary: string): readonly Rival[] {
  return [
    { program: "turnout", backend: "nft", variant: "nft" },
    { program: "kube-proxy", binary, mode: "nftables", variant: "nft" },
    { program: "turnout", backend: "iptables", variant: "nft" },
    { program: "kube-proxy", binary, mode: "iptables", variant: "nft" },
    { program: "turnout", backend: "iptables", variant: "legacy" },
    { program: "kube-proxy", binary, mode: "iptables", variant: "legacy" },
  ];
}

async function measureAll(
  shape: Shape,
  all: readonly Rival[],
  { runs, progress }: Pick<CaseContext, "runs" | "progress">,
): Promise<readonly RivalData[]> {
  const data: RivalData[] = [];
  for (const rival of all) {
    progress(`${shapeText(shape)}: ${nameOf(rival)}`);
    const parameters: RivalParameters = { rival, shape, changes: runs ?? CHANGES };
    data.push({ shape, rival, run: await runRole<RivalRun>("rival", parameters) });
  }
  return data;
}

function rowOf({ shape, rival, run }: RivalData, data: readonly RivalData[]): readonly string[] {
  const ours = data.find((one) => one.shape === shape && one.rival.program === "turnout" && one.rival.backend === "nft")?.run;
  if (run.startMs === undefined || run.firstSyncMs === undefined) {
    const never = `not in force after ${timeText(run.limitMs)}`;
    return [shapeText(shape), nameOf(rival), never, "", "", "", memoryText(run.memoryBytes), run.load.toFixed(1)];
  }
  const comparedWith = (value: number, own: number | undefined): string =>
    own === undefined || own === 0 || run === ours ? timeText(value) : `${timeText(value)} (${ratioText(value / own)})`;
  return [
    shapeText(shape),
    nameOf(rival),
    comparedWith(run.startMs, ours?.startMs),
    comparedWith(run.firstSyncMs, ours?.firstSyncMs),
    comparedWith(median(run.changeMs), ours?.startMs === undefined ? undefined : median(ours.changeMs)),
    timeText(percentile(run.changeMs, 1)),
    memoryText(run.memoryBytes),
    run.load.toFixed(1),
  ];
}

/** Turnout beside kube-proxy in the same mode, at 1,000 Services: a start must not take longer, nor more memory. */
function targetsOf({ shape, rival, run }: RivalData, data: readonly RivalData[]): readonly Goal[] {
  if (rival.program !== "turnout" || !isShape(shape, 1_000, 10) || run.startMs === undefined) return [];
  const mode = rival.backend === "nft" ? "nftables" : "iptables";
  const theirs = data.find(
    (one) => one.shape === shape && one.rival.program === "kube-proxy" && one.rival.mode === mode && one.rival.variant === rival.variant,
  )?.run;
  if (theirs?.startMs === undefined) return [];
  const what = `at ${shapeText(shape)}: ${nameOf(rival)}`;
  return [
    {
      what: `start ${what}`,
      wanted: `ahead of kube-proxy, ${timeText(theirs.startMs)}`,
      measured: timeText(run.startMs),
      isMet: run.startMs < theirs.startMs,
    },
    {
      what: `memory ${what}`,
      wanted: `below kube-proxy's, ${memoryText(theirs.memoryBytes)}`,
      measured: memoryText(run.memoryBytes),
      isMet: run.memoryBytes < theirs.memoryBytes,
    },
  ];
}

function nameOf(rival: Rival): string {
  if (rival.program === "turnout") return rival.backend === "nft" ? "Turnout, nft" : `Turnout, iptables (${rival.variant})`;
  return rival.mode === "nftables" ? "kube-proxy, nftables" : `kube-proxy, iptables (${rival.variant})`;
}
