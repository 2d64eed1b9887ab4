import { jsonReply, type Verdict } from "@turnout/client/daemon";

/** What is known of a node-state server's state. */
export interface NodeStateCondition {
  /** The source's lists are complete, so states are given out. */
  readonly isComplete: boolean;
  /** Why nobody new can connect to one of the addresses; "" when they can. */
  readonly listenProblem: string;
  /** What ails the source, by its parts; "" for those that are followed. */
  readonly sources: ReadonlyMap<string, string>;
}

/** What a probe asks: does it run, can it be reached, has it something to say. */
export type NodeStateProbe = "livez" | "healthz" | "readyz";

/**
 * Judge a node-state server.
 *
 * Edges: a source that is away makes nothing unhealthy, what is known is served on; the body tells of it. A node-state server that
 * can't be reached by anybody new is alive: who is connected is served, and a new start would break that off.
 */
export function judgeNodeState(probe: NodeStateProbe, { isComplete, listenProblem, sources }: NodeStateCondition, nowMs: number): Verdict {
  const unreachable = probe === "livez" || listenProblem === "" ? [] : [`new clients can't connect: ${listenProblem}`];
  const incomplete = probe !== "readyz" || isComplete ? [] : ["the source has not said yet what there is"];
  const reason = [...unreachable, ...incomplete].join("; ");
  const body = {
    currentTime: new Date(nowMs).toISOString(),
    ok: reason === "",
    ...(reason === "" ? {} : { reason }),
    complete: isComplete,
    source: Object.fromEntries([...sources].map(([part, problem]) => [part, problem === "" ? "followed" : "away"])),
  };
  return { reply: jsonReply(reason === "" ? 200 : 503, body), reason };
}
