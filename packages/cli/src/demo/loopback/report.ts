import type { Tally } from "@turnout/lab";
import { countText, durationText, failedCount, type DemoReport, type ReportLine, type ReportSection } from "../report.ts";
import type { LoopbackFindings } from "./run.ts";
import { DNS, NEW, OLD, TOWN } from "./town.ts";
import { ROOTLESS_BACKEND } from "../../registry.ts";

const BAR_WIDTH = 30;

/** Make the report of what was seen on loopback. Pure. */
export function loopbackReport(findings: LoopbackFindings): DemoReport {
  const failures = failuresOf(findings);
  const { traffic, held, trafficMs } = findings;
  const tallies = Object.values(traffic);
  const attempts = tallies.reduce((sum, tally) => sum + tally.attempts, 0);
  const failed = tallies.reduce((sum, tally) => sum + failedCount(tally), 0);
  const broken = held.filter(({ state }) => state !== "open").length;
  const total = `${countText(attempts, "request")} in ${durationText(trafficMs)}, ${failed} failed; ${countText(held.length, "connection")} kept open, ${broken} broken`;
  return {
    sections: [
      setupSection(findings),
      spreadSection(findings.spread),
      ruleSection(findings),
      rolloutSection(findings),
      trafficSection(findings),
    ],
    failures,
    summary: failures.length === 0 ? `${total}.` : `${total}; ${countText(failures.length, "thing")} went wrong.`,
  };
}

function setupSection({ stageMs, readyMs }: LoopbackFindings): ReportSection {
  const servers = OLD.length + NEW.length + DNS.length;
  return {
    title: "The town, on loopback: no root, no namespaces, no kernel rules",
    lines: [
      { cells: ["built", `${servers} server processes in the place of pods, a client, a file of Services, in ${durationText(stageMs)}`] },
      { cells: ["proxy", `turnout run --backend ${ROOTLESS_BACKEND} --source file:town.yaml --map town/cart:main=127.0.0.1:…`] },
      { cells: ["ready", `${durationText(readyMs)} after the process was started`] },
      ...TOWN.map(({ name, clusterIP, port, protocol, about }) => ({ cells: [name, `${clusterIP}:${port}/${protocol}, ${about}`] })),
    ],
  };
}

function spreadSection({ servers, attempts }: Tally): ReportSection {
  const lines = OLD.map(({ name }): ReportLine => {
    const share = attempts === 0 ? 0 : (servers[name] ?? 0) / attempts;
    return { cells: [name, "█".repeat(Math.round(share * BAR_WIDTH)), `${Math.round(share * 100)}% of ${attempts}`] };
  });
  return { title: "How requests to cart spread over servers", lines };
}

function ruleSection({ affinity, refused, flow }: LoopbackFindings): ReportSection {
  return {
    title: "Rules that hold",
    lines: [
      {
        cells: [
          "checkout",
          `${countText(affinity.attempts, "request")} of one client went to ${Object.keys(affinity.servers).join(", ")}: session affinity`,
        ],
      },
      { cells: ["search", `has no endpoints: ${refused}`] },
      { cells: ["dns", `a UDP client that keeps its port was sent from ${flow.before} to ${flow.after} in ${durationText(flow.tookMs)}`] },
    ],
  };
}

function rolloutSection({ rollout }: LoopbackFindings): ReportSection {
  const { durationMs, answering, followedMs } = rollout;
  return {
    title: "A rollout of cart, by writing the file anew, with all traffic going on",
    lines: [
      {
        cells: [
          `${OLD.length} servers replaced in ${durationText(durationMs)}, each change followed within ${durationText(followedMs)}; now ${answering.join(", ")} answer`,
        ],
      },
    ],
  };
}

function trafficSection({ traffic, held }: LoopbackFindings): ReportSection {
  const answers = held.reduce((sum, one) => sum + one.answers, 0);
  const broken = held.filter(({ state }) => state !== "open").length;
  return {
    title: "Traffic that ran through all of this",
    lines: [
      ...Object.entries(traffic).map(([name, tally]) => ({
        cells: [
          `client → ${name}`,
          countText(tally.attempts, "request"),
          `${failedCount(tally)} failed`,
          `median ${durationText(tally.p50Ms)}, p99 ${durationText(tally.p99Ms)}`,
        ],
      })),
      { cells: ["connections kept open to cart", countText(answers, "answer"), `${broken} of ${held.length} broken`, ""] },
    ],
  };
}

function failuresOf({ spread, affinity, refused, flow, rollout, traffic, held }: LoopbackFindings): readonly string[] {
  const wanted = NEW.map(({ name }) => name).toSorted();
  const silent = OLD.filter(({ name }) => (spread.servers[name] ?? 0) === 0);
  return [
    ...silent.map(({ name }) => `no request to cart reached ${name}`),
    ...failedOf("cart, who answers", spread),
    ...(Object.keys(affinity.servers).length === 1 ? [] : [`checkout sent one client to ${Object.keys(affinity.servers).join(", ")}`]),
    ...failedOf("checkout", affinity),
    ...(refused === "reset" || refused === "refused" ? [] : [`search: ${refused} instead of a refusal`]),
    ...(flow.before === flow.after ? [`a UDP client stayed with ${flow.before}, which was gone`] : []),
    ...(rollout.answering.join() === wanted.join() ? [] : [`after the rollout cart was ${rollout.answering.join(", ")}`]),
    ...Object.entries(traffic).flatMap(([name, tally]) => failedOf(name, tally)),
    ...held
      .filter(({ state, answers }) => state !== "open" || answers === 0)
      .map(({ state }) => `a connection kept open to cart: ${state}`),
  ];
}

function failedOf(what: string, tally: Tally): readonly string[] {
  if (tally.attempts === 0) return [`${what}: no request was made`];
  return Object.entries(tally.failed).map(([outcome, count]) => `${what}: ${outcome} ${count}`);
}
