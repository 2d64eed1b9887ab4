import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isShape, shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { watchCluster } from "../kpng-client.ts";
import type { KpngFirstState } from "../kpng-client.ts";
import { memoryText, runsText, timeText } from "../number-text.ts";
import { openRole } from "../role-process.ts";
import type { KpngServerParameters } from "../roles/kpng-server.ts";
import { median } from "../statistics.ts";
import { openConnection } from "../watch-client.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 10_000, endpoints: 10 }];
/** Watchers after the first. */
const WARM = 5;
/** kpng's own server, docs/kpng.md. */
const TARGET_MS = 2_000;

/** Samples of one size; the first watcher, for whom everything is made, and those after it. */
interface KpngData {
  readonly shape: Shape;
  readonly first: KpngSample;
  readonly warm: readonly KpngSample[];
}

/** What a watcher saw, and the CPU time of its server for it, ms. */
type KpngSample = KpngFirstState & { readonly cpuMs: number };

/** The whole cluster, to watchers of kpng's globalv1. */
export const kpng: BenchCase = {
  name: "kpng",
  about: "the whole cluster to watchers of kpng's globalv1: the first, and those after it",
  needs: [],
  async run(context): Promise<CaseResult> {
    const data: KpngData[] = [];
    for (const shape of shapesOr(SHAPES, context)) data.push(await measure(shape, context));
    return {
      title: "kpng's globalv1",
      about:
        "A node-state server in one process, with a unix socket; in another, watchers of kpng's globalv1 that read messages and count them, and decode nothing. They come one after another, and stay. From a watcher's request " +
        "until it has the first Sync; for the *first* everything is worked out and encoded. *CPU* is the node-state server's.",
      columns: ["services x endpoints", "watcher", "first state", "CPU", "messages", "bytes"],
      rows: data.flatMap(({ shape, first, warm }) => [rowOf(shape, "first", [first]), rowOf(shape, "further", warm)]),
      targets: data.flatMap(targetsOf),
      data,
    };
  },
};

async function measure(shape: Shape, { runs = WARM, profileDir, progress }: CaseContext): Promise<KpngData> {
  progress(`${shapeText(shape)}: ${runs + 1} watchers`);
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const socket = join(directory, "node.sock");
  const parameters: KpngServerParameters = { socket, shape, watchers: runs + 1 };
  const server = openRole("kpng-server", parameters, { namespace: "same", profileDir });
  try {
    await server.phase("serving");
    const connection = openConnection(socket);
    const states: KpngFirstState[] = [];
    for (let watcher = 0; watcher <= runs; watcher++) {
      server.go();
      await server.phase("watcher");
      states.push(await watchCluster(connection));
    }
    server.go();
    const ended = await server.next();
    connection.close();
    const cpuMs = ended.kind === "result" ? (ended.value as readonly number[]) : [];
    const [first, ...warm] = states.map((state, index) => ({ ...state, cpuMs: cpuMs[index] ?? NaN }));
    if (first === undefined) throw new Error("nobody watched");
    return { shape, first, warm };
  } finally {
    if (profileDir === undefined) server.kill();
    await rm(directory, { recursive: true });
  }
}

function rowOf(shape: Shape, who: string, samples: readonly KpngSample[]): readonly string[] {
  const texts = (of: (sample: KpngSample) => number): string => runsText(samples.map(of), timeText);
  const [sample] = samples;
  return [
    shapeText(shape),
    who,
    texts(({ ms }) => ms),
    texts(({ cpuMs }) => cpuMs),
    (sample?.messages ?? 0).toLocaleString("en-US"),
    memoryText(sample?.bytes ?? 0),
  ];
}

function targetsOf({ shape, warm }: KpngData): readonly Goal[] {
  if (!isShape(shape, 10_000, 10) || warm.length === 0) return [];
  const ms = median(warm.map((one) => one.ms));
  const what = "a further watcher of kpng's globalv1 at 10,000 x 10";
  return [{ what, wanted: `under ${timeText(TARGET_MS)}`, measured: timeText(ms), isMet: ms < TARGET_MS }];
}
