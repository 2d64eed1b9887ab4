import type { IPFamily } from "@turnout/core";
import type { HoldStatus, Outcome, Tally } from "@turnout/lab";

/** What was built, and how long it took. Times in ms. */
export interface SetupFinding {
  readonly backend: string;
  /** Tool and kernel versions, as the backend's probe found them. */
  readonly versions: Readonly<Record<string, string>>;
  readonly nodes: number;
  readonly pods: number;
  readonly families: readonly IPFamily[];
  readonly stageMs: number;
  /** From the start of the proxies until every node had the shop's services in force. */
  readonly readyMs: number;
}

/** How one client's requests to a service were spread. */
export interface SpreadFinding {
  readonly service: string;
  readonly from: string;
  readonly family: IPFamily;
  /** Servers that should each get some. */
  readonly expected: readonly string[];
  readonly tally: Tally;
}

/** Whose address servers saw. */
export interface SourceFinding {
  readonly from: string;
  readonly to: string;
  readonly family: IPFamily;
  /** Names of places whose addresses should be seen, all of them and no other. */
  readonly expected: readonly string[];
  readonly seen: readonly string[];
  readonly why: string;
}

/** Where the requests of one client of a service with session affinity went. */
export interface AffinityFinding {
  readonly from: string;
  readonly family: IPFamily;
  readonly tally: Tally;
}

/** What became of asking a service without endpoints. */
export interface RefusedFinding {
  readonly family: IPFamily;
  readonly outcome: Outcome;
}

/** How long one change took on one node in one family; undefined: packets never followed. */
export interface ChangeFinding {
  readonly node: string;
  readonly family: IPFamily;
  readonly tookMs: number | undefined;
}

/** A rolling update under load: how many pods were replaced, and who answered after it. */
export interface RolloutFinding {
  readonly service: string;
  readonly replaced: number;
  readonly durationMs: number;
  readonly expected: readonly string[];
  readonly answering: readonly string[];
}

/** A UDP client that keeps its port while its server goes. */
export interface FlowFinding {
  readonly family: IPFamily;
  readonly port: number;
  readonly before: readonly string[];
  /** Who answers once the first server is no endpoint any more; undefined: nobody else ever did. */
  readonly after: string | undefined;
  readonly tookMs: number;
}

/** A proxy that was killed and started again while traffic went on. */
export interface RestartFinding {
  readonly node: string;
  readonly downMs: number;
  /** Requests answered while it was dead. */
  readonly answeredMeanwhile: number;
  /** From its new start until a change made while it was dead was followed, worst family. */
  readonly caughtUpMs: number | undefined;
  /** Kernel objects it is responsible for, and how many of them it wrote anew. */
  readonly objects: number;
  readonly written: number;
}

/** One of the loads that ran all the time. */
export interface TrafficFinding {
  readonly what: string;
  readonly tally: Tally;
}

/** What both demos see: that in namespaces and that on loopback. */
export interface CommonFindings {
  readonly spread: readonly SpreadFinding[];
  readonly affinity: readonly AffinityFinding[];
  readonly refused: readonly RefusedFinding[];
  readonly rollout: RolloutFinding;
  readonly flows: readonly FlowFinding[];
  readonly traffic: readonly TrafficFinding[];
  readonly held: readonly HoldStatus[];
  readonly trafficMs: number;
}

/** Everything the demo in namespaces saw. */
export interface Findings extends CommonFindings {
  readonly setup: SetupFinding;
  readonly sources: readonly SourceFinding[];
  readonly switches: readonly ChangeFinding[];
  readonly toZero: readonly ChangeFinding[];
  readonly fromZero: readonly ChangeFinding[];
  readonly restart: RestartFinding;
}
