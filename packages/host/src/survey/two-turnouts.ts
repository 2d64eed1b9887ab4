import type { Cause } from "@turnout/core";
import type { SurveyFiles } from "./files.ts";
import { findProcesses } from "./processes.ts";
import { mayWriteRules, writersOf } from "./writers.ts";

/** Say so where several Turnouts run in this network namespace. Reads /proc alone; empty where it does not show them. */
export async function twoTurnouts(files: SurveyFiles): Promise<readonly Cause[]> {
  const processes = await findProcesses(mayWriteRules, files);
  const traces = writersOf({ processes, devices: [], tables: [], iptables: [] }).find(({ name }) => name === "Turnout")?.traces ?? [];
  if (traces.length < 2) return [];
  const pids = traces.flatMap((trace) => /\d+/.exec(trace)?.[0] ?? []);
  return [
    {
      id: "two_proxies",
      says: `several Turnouts write rules here, and undo each other's work: ${traces.join(", ")}`,
      show: [`ps -fp ${pids.join(",")}`],
      mend: "stop all but one, with the flags that are wanted",
    },
  ];
}
