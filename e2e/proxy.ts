import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { NodePlace } from "@turnout/lab";

/** The command, as it is installed. */
export const TURNOUT: string = fileURLToPath(new URL("../packages/cli/bin/turnout", import.meta.url));
const LOG_CHARACTERS_MAX = 1_000_000;

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The real `turnout run` of one node, in the node's namespace. */
export interface Proxy {
  readonly node: NodePlace;
  readonly pid: number | undefined;
  readonly isRunning: boolean;
  /** Everything it wrote so far, over all its lives, newest last. */
  log(): string;
  /** Start it again after it ended; `flags` replace the ones before. */
  start(flags?: readonly string[]): void;
  /** Send a signal and wait for the end. */
  end(signal: NodeJS.Signals): Promise<Ending>;
  /** Wait for it to end by itself. */
  ended(): Promise<Ending>;
}

/** Start `turnout run` on a node. `firstFlags` stay until {@link Proxy.start} is given others. */
export function startProxy(node: NodePlace, common: readonly string[], firstFlags: readonly string[]): Proxy {
  let flags = firstFlags;
  let log = "";
  let child: ChildProcess;
  let ending: Promise<Ending>;
  const start = (newFlags: readonly string[] = flags): void => {
    flags = newFlags;
    child = node.spawn(TURNOUT, ["run", "--node-name", node.name, ...common, ...flags]);
    const take = (chunk: Buffer): void => {
      log = (log + chunk.toString()).slice(-LOG_CHARACTERS_MAX);
    };
    child.stdout?.on("data", take);
    child.stderr?.on("data", take);
    ending = once(child, "exit").then(([code, signal]) => ({ code: code as number | null, signal: signal as NodeJS.Signals | null }));
  };
  start();
  return {
    node,
    get pid() {
      return child.pid;
    },
    get isRunning() {
      return child.exitCode === null && child.signalCode === null;
    },
    log: () => log,
    start,
    end: (signal) => {
      child.kill(signal);
      return ending;
    },
    ended: () => ending,
  };
}
