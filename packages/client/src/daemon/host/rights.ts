import type { Rights } from "@turnout/core";

/** What becomes of this process's capabilities. */
export interface RightsChoice {
  /** In this process. */
  readonly process: readonly string[];
  /** In programs that it starts. */
  readonly children: readonly string[];
  /** Needed by the backend and not there, with what that means. */
  readonly lacking: readonly string[];
  /** Of no use to the backend, and missed in looking for rules of former proxies. */
  readonly lackingMeanwhile: readonly string[];
}

/** What the process around a backend needs. Nobody misses it who has no port below 1024. */
const OWN: Rights = { CAP_NET_BIND_SERVICE: "answer health checks and metrics on ports below 1024" };

/**
 * Choose which Linux capabilities to keep. Pure.
 *
 * Shape: `backend` is what the backend needs, `meanwhile` what looking for rules of former proxies takes, `files` why this process has to pass
 * over the permissions of files, if it has to.
 */
export function chooseRights(held: readonly string[], backend: Rights, meanwhile: Rights, files: readonly string[]): RightsChoice {
  const has = new Set(held);
  const forFiles = files.length === 0 ? [] : [FILE_RIGHT];
  const children = [...new Set([...Object.keys(backend), ...Object.keys(meanwhile)])].filter((name) => has.has(name));
  const process = [...new Set([...children, ...Object.keys(OWN), ...forFiles])].filter((name) => has.has(name));
  const missing = (rights: Rights, others: Rights): readonly string[] =>
    Object.entries(rights).flatMap(([name, what]) => (has.has(name) || name in others ? [] : [`${name} (to ${what})`]));
  return {
    process: process.toSorted(),
    children: children.toSorted(),
    lacking: missing(backend, {}),
    lackingMeanwhile: missing(meanwhile, backend),
  };
}

/** Lets root use files that belong to others. */
export const FILE_RIGHT = "CAP_DAC_OVERRIDE";
