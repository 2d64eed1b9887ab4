import { once } from "node:events";
import { readFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import type { Answer } from "@turnout/core";
import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { childTicks, treeTimeMs } from "../cpu-time.ts";
import { VICTIMS } from "../healing/hands.ts";
import type { Victim } from "../healing/hands.ts";
import { createHealingStage } from "../healing/stage.ts";
import type { HealingStage } from "../healing/stage.ts";
import { runsText, timeText } from "../number-text.ts";
import { TURNOUT } from "../role-process.ts";
import { median } from "../statistics.ts";
import { clusterIP, SERVICE_PORT, shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [
  { services: 1_000, endpoints: 10 },
  { services: 10_000, endpoints: 10 },
];
const BACKENDS: Readonly<Record<string, Pick<Victim, "flags" | "isInVm">>> = {
  ...VICTIMS,
  userspace: { flags: ["--backend", "userspace"] },
};
const RUNS = 9;
const ANSWER_MAX_MS = 1_000;
const TICK_MS = 10;

/** One question to the command. */
interface Asked {
  readonly clockMs: number;
  readonly commandMs: number;
  readonly proxyMs: number;
}

/** Samples of one size and one backend. */
interface WhyData {
  readonly shape: Shape;
  readonly backend: string;
  readonly asked: readonly Asked[];
}

/** How long an operator waits for an answer. */
export const why: BenchCase = {
  name: "why",
  about: "turnout why, about a packet of a pod to a Service, from the command's start to its end; for every backend of this kernel",
  needs: ["root", "built", "nft", "iptables", "ebpf"],
  async run(context): Promise<CaseResult> {
    const data: WhyData[] = [];
    for (const shape of shapesOr(SHAPES, context))
      for (const [backend, { flags, isInVm }] of Object.entries(BACKENDS))
        if (isInVm !== true) data.push({ shape, backend, asked: await measure(shape, backend, flags, context) });
    return {
      title: "Why: how long an answer takes",
      about:
        "`turnout why` from its start to its end, with a proxy that runs and has all in force. *CPU of the command* is that of Node and of the tools that it runs, in steps of 10 ms; *of the proxy* is what the proxy takes to answer it, its tools included.",
      columns: ["services x endpoints", "backend", "from start to end", "CPU of the command", "CPU of the proxy"],
      rows: data.map(({ shape, backend, asked }) => [
        shapeText(shape),
        backend,
        runsText(
          asked.map(({ clockMs }) => clockMs),
          timeText,
        ),
        timeText(median(asked.map(({ commandMs }) => commandMs))),
        timeText(median(asked.map(({ proxyMs }) => proxyMs))),
      ]),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

async function measure(
  shape: Shape,
  backend: string,
  flags: readonly string[],
  { runs = RUNS, progress }: CaseContext,
): Promise<readonly Asked[]> {
  progress(`${shapeText(shape)}, ${backend}`);
  const stage = await createHealingStage(flags, shape);
  try {
    // The first loads what only questions need, in the proxy too.
    await ask(stage);
    const asked: Asked[] = [];
    for (let run = 1; run <= runs; run++) asked.push(await ask(stage));
    return asked;
  } finally {
    await stage.destroy();
  }
}

/** @throws {Error} when the answer is another than that all is well: then something else was measured. */
async function ask({ cluster, node, proxy }: HealingStage): Promise<Asked> {
  const pid = proxy.pid ?? 0;
  const [proxyMs, ticks, sinceMs] = [treeTimeMs(pid), endedTicks(), performance.now()];
  const from = cluster.place("pod-1-1").address("IPv4");
  const child = node.spawn(TURNOUT, ["why", from, `${clusterIP(0)}:${SERVICE_PORT}`, "-o", "json"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (child.stdout === null) throw new Error("the command has no output");
  const [printed] = await Promise.all([text(child.stdout), once(child, "exit")]);
  const clockMs = performance.now() - sinceMs;
  const { causes, unseen, steps } = JSON.parse(printed) as Answer;
  const isWhole = steps.some(({ says }) => /are in the kernel, complete|has all that it needs/.test(says));
  if (unseen.length > 0 || !isWhole) throw new Error(`not the whole answer: ${JSON.stringify({ causes, unseen, steps })}`);
  return { clockMs, commandMs: (endedTicks() - ticks) * TICK_MS, proxyMs: treeTimeMs(pid) - proxyMs };
}

/** Of children that have ended and were waited for. */
function endedTicks(): number {
  return childTicks(readFileSync("/proc/self/stat", "utf8"));
}

function targetsOf({ shape, backend, asked }: WhyData): readonly Goal[] {
  if (!isShape(shape, 10_000, 10)) return [];
  const clockMs = median(asked.map((one) => one.clockMs));
  return [
    {
      what: `turnout why with ${backend} at ${shapeText(shape)}`,
      wanted: `under ${timeText(ANSWER_MAX_MS)}`,
      measured: timeText(clockMs),
      isMet: clockMs < ANSWER_MAX_MS,
    },
  ];
}
