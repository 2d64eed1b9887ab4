import type { Tally } from "@turnout/lab";
import type { ChangeFinding, CommonFindings, Findings, SourceFinding, SpreadFinding } from "./findings.ts";
import { SHOP, type ShopService } from "./shop.ts";
import { failuresOf } from "./verdict.ts";

/** One line of a section: cells that line up with those above and below, and an explanation under it. */
export interface ReportLine {
  readonly cells: readonly string[];
  readonly note?: string;
}

/** A part of the report. */
export interface ReportSection {
  readonly title: string;
  readonly lines: readonly ReportLine[];
}

/** What the demo has to say. */
export interface DemoReport {
  readonly sections: readonly ReportSection[];
  /** What went wrong, a sentence each; empty when all went well. */
  readonly failures: readonly string[];
  /** The last word, one sentence. */
  readonly summary: string;
}

/** Make the report of what was seen in namespaces. Pure. */
export function reportOf(findings: Findings): DemoReport {
  return reportWith(findings, [
    setupSection(findings),
    servicesSection(),
    spreadSection(findings.spread),
    sourceSection(findings.sources),
    policySection(findings, "once its pod was gone: the kernel remembers a flow as long as it talks, so it is made to forget"),
    changeSection(findings),
    restartSection(findings),
    trafficSection(findings),
  ]);
}

/** Make a report of these sections, with what went wrong and the last word. Pure. */
export function reportWith(findings: CommonFindings, sections: readonly ReportSection[]): DemoReport {
  const failures = failuresOf(findings);
  return { sections, failures, summary: summaryOf(findings, failures) };
}

/** Write a number of milliseconds as people do: `0.8 ms`, `12 ms`, `1.3 s`; undefined is `never`. */
export function durationText(ms: number | undefined): string {
  if (ms === undefined) return "never";
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  return ms < 999.5 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/** Write a count with thousands separated. */
export function countText(count: number, noun: string): string {
  return `${count.toLocaleString("en-US")} ${noun}${count === 1 ? "" : "s"}`;
}

/** The middle and the worst of changes that were followed; undefined when one never was, or there are none. */
export function medianAndWorst(changes: readonly ChangeFinding[]): { readonly median: number; readonly worst: number } | undefined {
  const times = changes.map(({ tookMs }) => tookMs).filter((ms) => ms !== undefined);
  if (times.length < changes.length || times.length === 0) return undefined;
  const sorted = times.toSorted((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)] ?? 0, worst: sorted.at(-1) ?? 0 };
}

/** Attempts that failed. */
export function failedCount({ attempts, ok }: Tally): number {
  return attempts - ok;
}

function setupSection({ setup }: Findings): ReportSection {
  const versions = Object.entries(setup.versions).map(([name, version]) => `${name} ${version}`);
  const where = `${setup.nodes} nodes, ${setup.pods} pods, one client outside, an API server; ${setup.families.join(" and ")}`;
  return {
    title: "The cluster",
    lines: [
      { cells: ["built", `${where}: network namespaces, in ${durationText(setup.stageMs)}`] },
      { cells: ["proxy", `turnout run --backend ${setup.backend}, a process per node (${versions.join(", ")})`] },
      { cells: ["ready", `${durationText(setup.readyMs)} after the processes were started, every service worked on every node`] },
    ],
  };
}

function servicesSection(): ReportSection {
  return { title: "The services", lines: Object.values(SHOP).map(serviceLine) };
}

function serviceLine({ manifest, about, startWith }: ShopService): ReportLine {
  const { name, clusterIPs, ports, ingress = [] } = manifest;
  const nodePorts = ports.map(({ nodePort }) => nodePort).filter((port) => port !== undefined);
  const more = [
    ...ingress.slice(0, 1).map(({ ip }) => `load balancer ${ip}`),
    ...(nodePorts.length === 0 ? [] : [`node ports ${nodePorts.join(" ")}`]),
  ];
  const portTexts = ports.map(({ port, protocol = "TCP" }) => `${port}/${protocol}`);
  return {
    cells: [name, clusterIPs[0] ?? "", portTexts.join(" "), startWith === 0 ? "no pods" : countText(startWith, "pod"), about],
    ...(more.length === 0 ? {} : { note: `also ${more.join(", ")}` }),
  };
}

const BAR_WIDTH = 30;

/** How requests spread. */
export function spreadSection(spread: readonly SpreadFinding[]): ReportSection {
  const lines: ReportLine[] = [];
  for (const [service, views] of Map.groupBy(spread, (finding) => finding.service)) {
    const servers = new Map<string, number>();
    for (const name of views.flatMap(({ expected }) => expected)) servers.set(name, 0);
    for (const { tally } of views)
      for (const [name, count] of Object.entries(tally.servers)) servers.set(name, (servers.get(name) ?? 0) + count);
    const total = [...servers.values()].reduce((sum, count) => sum + count, 0);
    for (const [index, [name, count]] of [...servers].entries()) {
      const share = total === 0 ? 0 : count / total;
      const cells = [
        index === 0 ? service : "",
        name,
        "█".repeat(Math.round(share * BAR_WIDTH)),
        `${Math.round(share * 100)}% of ${total}`,
      ];
      lines.push({ cells });
    }
  }
  return { title: "How requests spread over pods", lines };
}

function sourceSection(sources: readonly SourceFinding[]): ReportSection {
  const lines: ReportLine[] = [];
  for (const views of Map.groupBy(sources, ({ from, to }) => `${from} → ${to}`).values()) {
    const isSame = new Set(views.map(({ seen }) => seen.join())).size === 1;
    for (const { from, to, family, seen, why } of isSame ? views.slice(0, 1) : views) {
      const who = seen.length === 0 ? "nobody" : seen.join(" or ");
      lines.push({ cells: [`${from} → ${to}${isSame ? "" : `, ${family}`}`, `the pod saw ${who}`], note: why });
    }
  }
  return { title: "Whose address the pods saw", lines };
}

/** What rules were seen at work; `flowNote` says more of UDP flows. */
export function policySection({ affinity, refused, flows }: CommonFindings, flowNote: string): ReportSection {
  const kept = affinity.filter(({ tally }) => Object.keys(tally.servers).length === 1 && failedCount(tally) === 0).length;
  const outcomes = [...new Set(refused.map(({ outcome }) => outcome))].join(" or ");
  return {
    title: "Rules at work",
    lines: [
      {
        cells: [
          "session affinity",
          `${kept} of ${affinity.length} clients of checkout stayed with one pod, ${requestsOf(affinity)} requests each`,
        ],
      },
      { cells: ["no endpoints", `a request to search is ${outcomes}, not left hanging`] },
      ...flows.map(({ family, port, before, after, tookMs }) => ({
        cells: [
          "UDP flow",
          `${family}, client port ${port}: from ${before.join(" or ")} to ${after ?? "nobody"} in ${durationText(tookMs)}`,
        ],
      })),
      { cells: ["", flowNote] },
    ],
  };
}

function requestsOf(affinity: CommonFindings["affinity"]): string {
  return [...new Set(affinity.map(({ tally }) => tally.attempts))].join(" or ");
}

function changeSection({ switches, toZero, fromZero, rollout }: Findings): ReportSection {
  const changes: readonly (readonly [string, readonly ChangeFinding[]])[] = [
    ["another pod serves banner", switches],
    ["banner scaled to zero", toZero],
    ["banner scaled up from zero", fromZero],
  ];
  return {
    title: "How long until packets followed a change",
    lines: [
      ...changes.map(([what, findings]) => {
        const times = medianAndWorst(findings);
        const text = times === undefined ? "not everywhere" : `median ${durationText(times.median)}, worst ${durationText(times.worst)}`;
        return { cells: [what, text, `${findings.length} measured`] };
      }),
      rolloutLine(rollout),
      { cells: ["Counted from telling the API server, for every node and family, while all other traffic goes on."] },
    ],
  };
}

/** What a rollout took. */
export function rolloutLine({ service, replaced, durationMs }: CommonFindings["rollout"]): ReportLine {
  return { cells: [`${service} rolled out to v2`, `${replaced} pods replaced one by one in ${durationText(durationMs)}`, ""] };
}

function restartSection({ restart }: Findings): ReportSection {
  const { node, downMs, answeredMeanwhile, caughtUpMs, objects, written } = restart;
  return {
    title: `kill -9 of the proxy on ${node}, with all traffic going on`,
    lines: [
      {
        cells: ["dead", `for ${durationText(downMs)}: ${countText(answeredMeanwhile, "request")} answered meanwhile by the rules it left`],
      },
      {
        cells: ["back", `it found ${countText(objects, "object")} of its own in the kernel and wrote ${written}: the change it had missed`],
      },
      { cells: ["", `packets followed that change ${durationText(caughtUpMs)} after the process was started`] },
    ],
  };
}

/** What was asked all the time. */
export function trafficSection({ traffic, held, rollout }: CommonFindings): ReportSection {
  const broken = held.filter(({ state }) => state !== "open").length;
  const answers = held.reduce((sum, one) => sum + one.answers, 0);
  return {
    title: "Traffic that ran through all of this",
    lines: [
      ...traffic.map(({ what, tally }) => ({
        cells: [
          what,
          countText(tally.attempts, "request"),
          `${failedCount(tally)} failed`,
          `median ${durationText(tally.p50Ms)}, p99 ${durationText(tally.p99Ms)}`,
        ],
      })),
      { cells: [`connections kept open to ${rollout.service}`, countText(answers, "answer"), `${broken} of ${held.length} broken`, ""] },
    ],
  };
}

function summaryOf({ traffic, held, trafficMs }: CommonFindings, failures: readonly string[]): string {
  const attempts = traffic.reduce((sum, { tally }) => sum + tally.attempts, 0);
  const failed = traffic.reduce((sum, { tally }) => sum + failedCount(tally), 0);
  const broken = held.filter(({ state }) => state !== "open").length;
  const total = `${countText(attempts, "request")} in ${durationText(trafficMs)}, ${failed} failed; ${countText(held.length, "connection")} kept open, ${broken} broken`;
  return failures.length === 0 ? `${total}.` : `${total}; ${countText(failures.length, "thing")} went wrong.`;
}
