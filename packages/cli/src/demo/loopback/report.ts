import {
  durationText,
  policySection,
  reportWith,
  rolloutLine,
  spreadSection,
  trafficSection,
  type DemoReport,
  type ReportSection,
} from "../report.ts";
import type { LoopbackFindings } from "./run.ts";
import { DNS, NEW, OLD, TOWN } from "./town.ts";
import { ROOTLESS_BACKEND } from "../../registry.ts";

/** Make the report of a demo on loopback. Pure. */
export function loopbackReport(findings: LoopbackFindings): DemoReport {
  const { rollout, followedMs } = findings;
  return reportWith(findings, [
    setupSection(findings),
    spreadSection(findings.spread),
    policySection(findings, "once its server was no endpoint any more"),
    {
      title: "A rollout, by writing the file anew, with all traffic going on",
      lines: [
        rolloutLine(rollout),
        { cells: [`Each change was followed within ${durationText(followedMs)}; now ${rollout.answering.join(", ")} answer.`] },
      ],
    },
    trafficSection(findings),
  ]);
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
