import type { Plain } from "@turnout/core";
import type { FindingsOptions } from "../checks/findings.ts";

/** How histories are made up. */
export interface HistoryOptions extends Pick<FindingsOptions, "onCheckpoint"> {
  /** Default 1. The life that starts at step n × `lifeSteps` has the seed `seed + n`, and is the first one of that seed. */
  readonly seed?: number;
  /** Changes altogether; default 1000. */
  readonly steps?: number;
  /** Changes on one host; default 500. */
  readonly lifeSteps?: number;
  /** Changes between two close looks; default 100. */
  readonly pollEvery?: number;
  /** Stop after as many findings; default 1. */
  readonly maxFindings?: number;
  /** Default true. False for a host that can't follow packets: flows and verdicts are not looked at, what is in force still is. */
  readonly looksAtPackets?: boolean;
  /** Options for the backend, by name. */
  readonly backendOptions?: Readonly<Record<string, Plain>>;
}
