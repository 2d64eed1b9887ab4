import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { NodePlace } from "@turnout/lab";

const LOG_CHARACTERS_MAX = 100_000;

/** The real `turnout run` of one node, in the node's namespace. */
export interface DemoProxy {
  readonly node: NodePlace;
  readonly isRunning: boolean;
  /** The last it wrote, over all its lives. */
  log(): string;
  start(): void;
  /** Send a signal and wait for the end. */
  end(signal: NodeJS.Signals): Promise<void>;
}

/** This very command, as it was started: from sources in a checkout's tests, else from the build. */
export function turnoutArguments(): readonly string[] {
  const isSource = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(`../main.${isSource ? "ts" : "js"}`, import.meta.url));
  return isSource ? ["--conditions=@turnout/source", "--disable-warning=ExperimentalWarning", main] : [main];
}

/** Start `turnout run` on a node with these flags. */
export function startProxy(node: NodePlace, flags: readonly string[]): DemoProxy {
  let log = "";
  let child: ChildProcess;
  const start = (): void => {
    child = node.spawn(process.execPath, [...turnoutArguments(), "run", "--node-name", node.name, ...flags]);
    const take = (chunk: Buffer): void => {
      log = (log + chunk.toString()).slice(-LOG_CHARACTERS_MAX);
    };
    child.stdout?.on("data", take);
    child.stderr?.on("data", take);
    child.on("error", (error) => take(Buffer.from(`${error.message}\n`)));
  };
  start();
  return {
    node,
    get isRunning() {
      return child.exitCode === null && child.signalCode === null;
    },
    log: () => log,
    start,
    end: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill(signal);
      await ended;
    },
  };
}
