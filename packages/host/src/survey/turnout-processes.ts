import type { Cause } from "@turnout/core";
import type { SurveyFiles } from "./files.ts";
import { findProcesses } from "./processes.ts";
import { mayWriteRules, writersOf } from "./writers.ts";

/** Say so where several Turnouts run in this network namespace, or one is stopped. Reads /proc alone; empty where it does not show them. */
export async function turnoutCauses(files: SurveyFiles): Promise<readonly Cause[]> {
  const processes = await findProcesses(mayWriteRules, files);
  const { traces = [], stopped = [] } =
    writersOf({ processes, devices: [], tables: [], iptables: [] }).find(({ name }) => name === "Turnout") ?? {};
  const pids = traces.flatMap((trace) => /\d+/.exec(trace)?.[0] ?? []);
  return [
    ...(traces.length < 2
      ? []
      : [
          {
            id: "two_proxies",
            says: `several Turnouts write rules here, and undo each other's work: ${traces.join(", ")}`,
            show: [`ps -fp ${pids.join(",")}`],
            mend: "stop all but one, with the flags that are wanted",
          } as const,
        ]),
    ...(stopped.length === 0
      ? []
      : [
          {
            id: "not_running",
            says: `the proxy is stopped (SIGSTOP), pid ${stopped.join(", ")}: packets go by its rules, and no change of a Service or endpoint comes into force`,
            show: [`ps -o pid,stat,args -p ${stopped.join(",")}`],
            mend: "see who stopped it, and have it go on",
            commands: [`kill -CONT ${stopped.join(" ")}`],
          } as const,
        ]),
  ];
}
