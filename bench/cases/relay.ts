import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult } from "../case.ts";
import { timeText } from "../number-text.ts";
import { openRole } from "../role-process.ts";
import type { RoleOptions } from "../role-process.ts";
import type { RelayParameters, RelayReport } from "../roles/relay.ts";
import type { StateServerParameters } from "../roles/state-server.ts";
import type { WatchersParameters } from "../roles/watchers.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 10_000, endpoints: 10 }];
const NODES = 50;
/** Told first and not counted, so that what all nodes share is there before memory is compared. */
const FIRST = 2;
const KIB = 1024;

/** What one more node costs a relay. */
export const relay: BenchCase = {
  name: "relay",
  about: "a relay of a node-state server: what a node more costs it",
  needs: [],
  async run(context): Promise<CaseResult> {
    const data: { readonly shape: Shape; readonly report: RelayReport }[] = [];
    for (const shape of shapesOr(SHAPES, context)) data.push({ shape, report: await measure(shape, context) });
    return {
      title: "A relay",
      about:
        `A node-state server, a relay of it and ${NODES} watchers of as many nodes are a process each. ${FIRST} watchers of other nodes are served first and not counted. ` +
        "*A node more* is what each of the others adds to the relay's memory: objects and their buffers after garbage collection; in brackets resident memory. *CPU* is the relay's, for a first state that it gets, reads and passes on.",
      columns: ["services x endpoints", "nodes", "a node more", "CPU"],
      rows: data.map(({ shape, report: { shared, all, reportingCpuMs } }) => [
        shapeText(shape),
        String(NODES),
        `${kibText(all.heapBytes - shared.heapBytes)} (${kibText(all.residentBytes - shared.residentBytes)})`,
        timeText(reportingCpuMs / NODES),
      ]),
      targets: [],
      data,
    };
  },
};

async function measure(shape: Shape, { profileDir, progress }: CaseContext): Promise<RelayReport> {
  progress(`${shapeText(shape)}: ${NODES} nodes`);
  const directory = await mkdtemp(join(tmpdir(), "turnout-bench-"));
  const [behind, socket] = [join(directory, "server.sock"), join(directory, "relay.sock")];
  const options: RoleOptions = { namespace: "same" };
  const server = openRole("stateServer", { socket: behind, shape, changes: 0, stormMs: 0 } satisfies StateServerParameters, options);
  const relayed = openRole("relay", { behind, socket } satisfies RelayParameters, { ...options, profileDir });
  const crowd: WatchersParameters = {
    socket,
    first: FIRST,
    watchers: NODES,
    nodes: "different",
    streamsPerConnection: NODES,
    changes: 0,
    stormMs: 0,
  };
  await Promise.all([server.phase("serving"), relayed.phase("serving")]);
  const watchers = openRole("watchers", crowd, options);
  try {
    await watchers.phase("first");
    relayed.go();
    await relayed.phase("shared");
    watchers.go();
    await watchers.phase("told");
    relayed.go();
    const ended = await relayed.next();
    if (ended.kind !== "result") throw new Error(`the relay should have ended, and reached ${ended.name}`);
    return ended.value as RelayReport;
  } finally {
    watchers.kill();
    server.kill();
    if (profileDir === undefined) relayed.kill();
    await rm(directory, { recursive: true });
  }
}

/** Of what came with all nodes, for one. */
function kibText(bytes: number): string {
  return `${Math.round(bytes / NODES / KIB).toLocaleString("en-US")} KiB`;
}
