import type { Tally } from "@turnout/lab";
import type { CommonFindings, Findings } from "./findings.ts";

/** What may be judged: of a demo on loopback there is less. */
type Judged = CommonFindings & Partial<Findings>;

/** Say what of the findings is not as it must be, a sentence each; empty when all is well. Pure. */
export function failuresOf(findings: Judged): readonly string[] {
  return [...spreadFailures(findings), ...ruleFailures(findings), ...changeFailures(findings), ...trafficFailures(findings)];
}

/** Write what failed: `reset 2, timeout 1`; "" for nothing. */
function failedText({ failed }: Tally): string {
  return Object.entries(failed)
    .map(([outcome, count]) => `${outcome} ${count}`)
    .join(", ");
}

function spreadFailures({ spread }: Judged): readonly string[] {
  return spread.flatMap(({ service, from, family, expected, tally }) => {
    const where = `${from} → ${service}, ${family}`;
    const silent = expected.filter((name) => (tally.servers[name] ?? 0) === 0);
    const strange = Object.keys(tally.servers).filter((name) => !expected.includes(name));
    const failed = failedText(tally);
    return [
      ...(silent.length === 0 ? [] : [`${where}: no request reached ${silent.join(", ")}`]),
      ...(strange.length === 0 ? [] : [`${where}: answered by ${strange.join(", ")}, which should not serve it`]),
      ...(failed === "" ? [] : [`${where}: ${failed}`]),
    ];
  });
}

function ruleFailures({ sources = [], affinity, refused, flows }: Judged): readonly string[] {
  return [
    ...sources
      .filter(({ seen, expected }) => seen.join() !== expected.join())
      .map(
        ({ from, to, family, seen, expected }) =>
          `${from} → ${to}, ${family}: seen as ${seen.join(", ") || "nobody"} instead of ${expected.join(", ")}`,
      ),
    ...affinity
      .filter(({ tally }) => Object.keys(tally.servers).length !== 1 || tally.ok < tally.attempts)
      .map(({ from, family, tally }) =>
        `${from} → checkout, ${family}: answered by ${Object.keys(tally.servers).join(", ") || "nobody"} ${failedText(tally)}`.trim(),
      ),
    ...refused
      .filter(({ outcome }) => outcome !== "refused")
      .map(({ family, outcome }) => `search, ${family}: ${outcome} instead of refused`),
    ...flows
      .filter(({ before, after }) => before.length !== 1 || after === undefined)
      .map(({ family, before, after }) => `UDP flow, ${family}: went from ${before.join(", ")} to ${after ?? "nobody"}`),
  ];
}

function changeFailures({ switches = [], toZero = [], fromZero = [], rollout, restart }: Judged): readonly string[] {
  const never = [...switches, ...toZero, ...fromZero].filter(({ tookMs }) => tookMs === undefined);
  const { service, expected, answering } = rollout;
  return [
    ...never.map(({ node, family }) => `a change of banner was never followed on ${node}, ${family}`),
    ...(expected.join() === answering.join()
      ? []
      : [`after the rollout ${service} was ${answering.join(", ")}, not ${expected.join(", ")}`]),
    ...(restart !== undefined && restart.caughtUpMs === undefined ? [`the restarted proxy on ${restart.node} never caught up`] : []),
    ...(restart?.answeredMeanwhile === 0 ? [`no request was answered while the proxy on ${restart.node} was dead`] : []),
  ];
}

function trafficFailures({ traffic, held, rollout }: Judged): readonly string[] {
  const broken = held.filter(({ state, answers }) => state !== "open" || answers === 0);
  return [
    ...traffic
      .filter(({ tally }) => tally.attempts === 0 || tally.ok < tally.attempts)
      .map(({ what, tally }) => `${what}: ${tally.attempts === 0 ? "no request was made" : failedText(tally)}`),
    ...broken.map(
      ({ state, server }) => `a connection kept open to ${server || rollout.service}: ${state === "open" ? "no answers" : state}`,
    ),
  ];
}
