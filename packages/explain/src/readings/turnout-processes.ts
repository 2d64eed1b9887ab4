import type { Cause } from "@turnout/core";
import type { SurveyFiles } from "./files.ts";
import { findProcesses } from "./processes.ts";
import { isTurnout, mayWriteRules, writersOf } from "./writers.ts";

/** A Turnout that serves in this network namespace, or would if it weren't stopped. */
export interface TurnoutProcess {
  readonly pid: number;
  /** It was stopped (SIGSTOP), and does nothing until it is told to go on. */
  readonly isStopped: boolean;
  /** What it was started with, behind the file of the program; one with a space in it is several. */
  readonly args: readonly string[];
}

/** Find the Turnouts that serve in this network namespace. Reads /proc alone; empty where it does not show them. */
export async function turnoutProcesses(files: SurveyFiles): Promise<readonly TurnoutProcess[]> {
  const found = await findProcesses(mayWriteRules, files);
  return found.filter(isTurnout).map(({ pid, isStopped, command }) => {
    const words = command.split(" ");
    return { pid, isStopped, args: words.slice(words.findIndex((word) => /main\.[jt]s$/.test(word)) + 1) };
  });
}

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
            fix: "stop all but one, with the flags that are wanted",
          } as const,
        ]),
    ...(stopped.length === 0
      ? []
      : [
          {
            id: "not_running",
            says: `the proxy is stopped (SIGSTOP), pid ${stopped.join(", ")}: no change of a Service or endpoint comes into force, and its rules are not repaired`,
            show: [`ps -o pid,stat,args -p ${stopped.join(",")}`],
            fix: "see who stopped it, and have it go on",
            commands: [`kill -CONT ${stopped.join(" ")}`],
          } as const,
        ]),
  ];
}
