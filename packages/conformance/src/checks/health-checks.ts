import { isEqual } from "@turnout/core";
import { flowFate } from "../oracle/flow-fate.ts";
import type { OracleWorld } from "../oracle/oracle-world.ts";
import type { Flow } from "../oracle/packet.ts";
import type { Findings, Found } from "./findings.ts";
import { offendedByFlow } from "./offended.ts";
import type { Runner } from "../runner/runner.ts";
import { deltaText } from "../runner/watched-backend.ts";

/** Sync every family; what fails is a finding. `isQuiet`: nothing has changed since the last sync, so nothing may be done. */
export async function syncAndNote(runner: Runner, findings: Findings, what: "changes" | "again" | "restart" = "changes"): Promise<void> {
  const lingering = new Map(runner.processes.map((life) => [life, life.notes.lingering.size]));
  for (const { life, put, removed, error } of await runner.sync()) {
    const { family, notes } = life;
    const { failures, impure, deltas, untrue } = notes;
    if (error !== undefined) findings.threw("sync", family, error);
    for (const failure of failures) if (failure.error !== error) findings.threw(failure.call, family, failure.error);
    for (const name of new Set(impure))
      findings.add({ kind: "contract", family, what: name, expected: "one answer to one question", got: "two" });
    if (untrue.length > 0)
      findings.add({
        kind: "contract",
        family,
        what: "what apply says it deferred",
        expected: "it is as it was before",
        got: "it is done",
        details: untrue.slice(0, 12),
      });
    if (what !== "changes" && put + Math.max(0, removed - (what === "restart" ? (lingering.get(life) ?? 0) : 0)) > 0)
      findings.add({
        kind: "not-idempotent",
        family,
        what: what === "again" ? "a second sync" : "a sync after a restart",
        expected: "nothing to do",
        got: `${put} put, ${removed} removed`,
        details: deltas.map(deltaText),
      });
    notes.clear();
  }
}

/** Look whether a process that starts now would leave everything as it is, and whether all want one object in one form. */
export async function checkRecognition(runner: Runner, findings: Findings): Promise<void> {
  for (const life of runner.processes) {
    const { family } = life;
    try {
      const unrecognised = await life.unrecognised();
      if (unrecognised !== "")
        findings.add({
          kind: "not-idempotent",
          family,
          what: "what a new process would change",
          expected: "nothing",
          got: unrecognised,
        });
    } catch (error) {
      findings.threw("observe", family, error);
    }
    for (const id of new Set(life.defects.splice(0)))
      findings.add({ kind: "contract", family, what: `object ${id}`, expected: "one form", got: "two at once" });
  }
}

/** Find the flows that met another fate in a change than they should. Rule R-56: of a backend that can't forget flows nobody asks it. */
export function wrongFlows({ host, abilities }: Runner, before: OracleWorld, after: OracleWorld, flows: readonly Flow[]): readonly Found[] {
  const left = host.flows;
  return flows.flatMap((flow): readonly Found[] => {
    const fate = flowFate(before, after, flow);
    const isLeft = left.some((one) => isEqual(one, flow));
    const isAsked = fate === "keep" || abilities.capabilities.forgetsFlows === true;
    if (fate === "either" || isLeft === (fate === "keep") || !isAsked) return [];
    const { family, source, destination, port, endpoint } = flow;
    return [
      {
        kind: "flow",
        family,
        protocol: "UDP",
        what: `flow ${source} → ${destination} port ${port}, answered by ${endpoint}`,
        expected: fate === "keep" ? "remembered" : "forgotten",
        got: isLeft ? "remembered" : "forgotten",
        rules: offendedByFlow(fate),
      },
    ];
  });
}

/** Look whether two lists of what is on hosts are one. */
export function differenceOf(expected: readonly string[], got: readonly string[]): readonly string[] {
  const [had, has] = [new Set(expected), new Set(got)];
  return [
    ...expected.filter((line) => !has.has(line)).map((line) => `missing: ${line}`),
    ...got.filter((line) => !had.has(line)).map((line) => `too much: ${line}`),
  ];
}

/** Look whether what isn't the backend's is as it was. */
export function checkExternal(runner: Runner, before: readonly string[], findings: Findings): void {
  const details = differenceOf(before, runner.host.external());
  if (details.length === 0) return;
  const family = runner.processes[0]?.family ?? "IPv4";
  findings.add({
    kind: "cleanup",
    family,
    what: "what isn't the backend's",
    expected: "as it was",
    got: `${details.length} differences`,
    details,
  });
}
