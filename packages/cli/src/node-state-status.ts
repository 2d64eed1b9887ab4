import { distinctIssues, type Bounded } from "@turnout/client/daemon";
import { type ClockReading, type Issue, type ObjectKind, type Store, wallMs } from "@turnout/core";
import type { NodeStateProvider, ServerStats } from "@turnout/server/serve";
import type { NodeStateCondition } from "./node-state-health.ts";

/** What `/turnout/status` of a node-state server answers. Times in ms since the epoch. */
export interface NodeStateStatus {
  readonly kind: "node-state-server";
  readonly version: string;
  readonly source: string;
  readonly startedMs: number;
  readonly nowMs: number;
  /** The source has said what there is. */
  readonly isComplete: boolean;
  /** Parts of the source that can't be followed now, and why. */
  readonly sourceProblems: Readonly<Record<string, string>>;
  /** Why nobody new can connect; absent: everybody can. */
  readonly listenProblem?: string;
  /** Absent for a relay, which holds none. */
  readonly objects?: Readonly<Record<ObjectKind, number>>;
  /** Streams that are answered. */
  readonly watchers: number;
  /** Nodes times settings that are answered. */
  readonly views: number;
  /** What was reported about API objects and still holds. */
  readonly issues: Bounded<Issue>;
}

/** What a node-state server's status is made of. */
export interface NodeStateParts {
  readonly version: string;
  readonly source: string;
  /** By the clock's `nowMs`. */
  readonly startedMs: number;
  readonly clock: ClockReading;
  readonly store: Store | undefined;
  readonly provider: Pick<NodeStateProvider, "issues">;
  readonly stats: () => Pick<ServerStats, "streams" | "questions">;
  readonly condition: () => NodeStateCondition;
}

/** Say how a node-state server is. */
export function nodeStateStatus(parts: NodeStateParts): NodeStateStatus {
  const { version, source, startedMs, clock, store, provider } = parts;
  const { streams, questions } = parts.stats();
  const { isComplete, sources, listenProblem } = parts.condition();
  return {
    kind: "node-state-server",
    version,
    source,
    startedMs: wallMs(clock, startedMs),
    nowMs: wallMs(clock),
    isComplete,
    sourceProblems: Object.fromEntries([...sources].filter(([, problem]) => problem !== "")),
    ...(listenProblem === "" ? {} : { listenProblem }),
    ...(store === undefined ? {} : { objects: store.sizes }),
    watchers: streams,
    views: questions,
    issues: distinctIssues([provider.issues?.() ?? []]),
  };
}
