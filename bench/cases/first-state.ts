import type { BenchCase, CaseResult } from "../case.ts";
import { timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import { percentile, summarize } from "../statistics.ts";

const RUNS = 50;
const MOST_MS = 1_000;

/** How soon a backend hears that there is nothing. */
export const firstState: BenchCase = {
  name: "first-state",
  about: "an empty cluster's lists complete: first change sets at a waiting client",
  needs: [],
  async run(context): Promise<CaseResult> {
    context.progress("an empty cluster");
    const runs = context.runs ?? RUNS;
    const timesMs = await runRole<readonly number[]>("first-state", { runs }, { namespace: "same", profileDir: context.profileDir });
    const { min, median, max, count } = summarize(timesMs);
    const p99 = percentile(timesMs, 0.99);
    return {
      title: "First state of an empty cluster",
      about:
        "A client on a unix socket asks for both families before a node-state server's lists are complete. The time is from the last list (the lists have a Node and a ServiceCIDR, no Service) until the client has both first change sets. " +
        "Server and client are in one process, with a new server each time; the first run counts too.",
      columns: ["runs", "min", "p50", "p99", "max"],
      rows: [[String(count), timeText(min), timeText(median), timeText(p99), timeText(max)]],
      targets: [
        {
          what: "first state of an empty cluster, p99",
          wanted: `under ${timeText(MOST_MS)}`,
          measured: timeText(p99),
          isMet: p99 < MOST_MS,
        },
      ],
      data: timesMs,
    };
  },
};
