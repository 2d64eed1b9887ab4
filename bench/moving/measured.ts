import type { Traffic, TrafficReport } from "./traffic.ts";

/** What a move did to traffic, and what of the move itself failed. */
export interface Measured {
  readonly report: TrafficReport;
  /** Undefined: nothing did. */
  readonly failure: unknown;
}

/**
 * Make a move with traffic on, and count what became of it, also of a move that fails on its way.
 * @throws what counting fails with; what the move failed with, where both fail.
 */
export async function measure(traffic: Pick<Traffic, "stop">, move: () => Promise<void>): Promise<Measured> {
  let failure: unknown;
  try {
    await move();
  } catch (error) {
    failure = error;
  }
  try {
    return { report: await traffic.stop(), failure };
  } catch (error) {
    throw failure ?? error;
  }
}

/** The lines of a move: its row of the table, and whatever there is to say of it. */
export function linesOf(name: string, { report, failure }: Measured): { readonly row: string; readonly notes: readonly string[] } {
  const notes = [...counted(report.losses)].map(([line, count]) => `${count > 1 ? `${count} × ` : ""}${line}`);
  const failed = failure === undefined ? [] : [`${name} failed: ${failureText(failure)}`];
  return { row: `| ${name} | ${cells(report).join(" | ")} |`, notes: [...notes, ...failed] };
}

/** Nothing was lost, and nothing failed. */
export function isWell({ report: { connectionsLost, datagramsLost, failed }, failure }: Measured): boolean {
  return failure === undefined && connectionsLost === 0 && datagramsLost === 0 && Object.keys(failed).length === 0;
}

/** An error in one line. */
export function failureText(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}

function counted(lines: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1);
  return counts;
}

function cells({ connections, connectionsLost, attempts, failed, datagrams, datagramsLost, udpFlows }: TrafficReport): readonly string[] {
  const failures = Object.entries(failed).map(([what, count]) => `${count} ${what}`);
  return [
    `${connections - connectionsLost} of ${connections}`,
    `${failures.length === 0 ? "0" : failures.join(", ")} of ${attempts}`,
    `${datagramsLost} of ${datagrams} (${udpFlows} flows)`,
  ];
}
