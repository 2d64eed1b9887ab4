import { shapesOr } from "../case.ts";
import type { BenchCase, CaseResult } from "../case.ts";
import { timeText } from "../number-text.ts";
import { runRole } from "../role-process.ts";
import type { ConnectParameters, ConnectTimes } from "../roles/connect.ts";
import { median, percentile } from "../statistics.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [
  { services: 1, endpoints: 2 },
  { services: 1_000, endpoints: 2 },
  { services: 10_000, endpoints: 2 },
];
const CONNECTS = 2_000;
const RULES: readonly ConnectParameters["rules"][] = ["turnout", "A", "B"];

/** Samples under one ruleset. */
interface ConnectData {
  readonly shape: Shape;
  readonly rules: ConnectParameters["rules"];
  readonly times: ConnectTimes;
}

/** What a client notices: TCP connects over the first and the last service. */
export const connect: BenchCase = {
  name: "connect",
  about: "TCP connects over veth to the first and the last service, beside kube-proxy's rulesets",
  needs: ["root", "nft", "ip"],
  async run(context): Promise<CaseResult> {
    const shapes = shapesOr(SHAPES, context);
    const count = context.runs ?? CONNECTS;
    const data: ConnectData[] = [];
    const measure = async (shape: Shape, rules: ConnectParameters["rules"]): Promise<void> => {
      context.progress(`${shapeText(shape)}: ${rules}`);
      const parameters: ConnectParameters = { shape, rules, count };
      data.push({ shape, rules, times: await runRole<ConnectTimes>("connect", parameters) });
    };
    const [smallest] = shapes;
    if (smallest !== undefined) await measure(smallest, "none");
    for (const shape of shapes) for (const rules of RULES) await measure(shape, rules);
    return {
      title: "Connect latency",
      about:
        "The client and the server have a network namespace each; the node with the rules is between them. p50 / p99 of TCP connects, one after another, " +
        "as a Node program measures them. The times include its event loop, so compare the columns, not these times with those of other tools. *Direct* is a connect to an endpoint without a Service. " +
        "It takes turns with the other two, and shows how busy the machine was.",
      columns: ["services x endpoints", "rules", "connects each", "direct", "first service", "last service", "last − direct (p50)"],
      rows: data.map(({ shape, rules, times }) => [
        rules === "none" ? "" : shapeText(shape),
        rules === "none" ? "none" : rules === "turnout" ? "Turnout" : `layout ${rules}`,
        String(count),
        pairText(times["direct"]),
        pairText(times["first"]),
        pairText(times["last"]),
        times["last"] === undefined ? "" : microsText(median(times["last"]) - median(times["direct"] ?? [])),
      ]),
      targets: [],
      data,
    };
  },
};

function pairText(samples: readonly number[] | undefined): string {
  return samples === undefined ? "" : `${microsText(median(samples))} / ${microsText(percentile(samples, 0.99))}`;
}

function microsText(ms: number): string {
  return Math.abs(ms) < 1 ? `${Math.round(ms * 1000)} µs` : timeText(ms);
}
