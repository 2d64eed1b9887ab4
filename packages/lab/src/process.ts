import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import type { Place } from "./cluster.ts";

const LOG_CHARACTERS_MAX = 1_000_000;

/** How a process ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A program at a place, over all its lives. */
export interface NodeProcess {
  readonly pid: number | undefined;
  readonly isRunning: boolean;
  /** Everything it wrote so far, newest last. */
  log(): string;
  /** Start it, or start it again after it ended. */
  start(file: string, args: readonly string[]): void;
  /** Start it again as it was. */
  again(): void;
  /** Send a signal. */
  signal(signal: NodeJS.Signals): void;
  /** Send a signal and wait for the end. */
  end(signal: NodeJS.Signals): Promise<Ending>;
  /** Wait for it to end by itself. */
  ended(): Promise<Ending>;
}

/** A program that is to run in the namespace of a place; nothing runs yet. */
export function createProcess(node: Pick<Place, "spawn">): NodeProcess {
  let log = "";
  let child: ChildProcess | undefined;
  let ending: Promise<Ending> = Promise.resolve({ code: null, signal: null });
  const take = (chunk: Buffer): void => {
    log = (log + chunk.toString()).slice(-LOG_CHARACTERS_MAX);
  };
  let last: readonly [file: string, args: readonly string[]] | undefined;
  const start = (file: string, args: readonly string[]): void => {
    last = [file, args];
    child = node.spawn(file, args);
    child.stdout?.on("data", take);
    child.stderr?.on("data", take);
    child.on("error", (error) => take(Buffer.from(`${error.message}\n`)));
    ending = once(child, "exit").then(([code, signal]) => ({ code: code as number | null, signal: signal as NodeJS.Signals | null }));
  };
  return {
    get pid() {
      return child?.pid;
    },
    get isRunning() {
      return child !== undefined && child.exitCode === null && child.signalCode === null;
    },
    log: () => log,
    start,
    again: () => {
      if (last === undefined) throw new Error("it never ran");
      start(...last);
    },
    signal: (signal) => void child?.kill(signal),
    end: (signal) => {
      child?.kill(signal);
      return ending;
    },
    ended: () => ending,
  };
}
