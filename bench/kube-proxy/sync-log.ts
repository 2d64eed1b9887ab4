import type { ChildProcess } from "node:child_process";
import { lineReader } from "../line-channel.ts";

/** What a proxy said of one sync that ended well. */
export interface ProxySync {
  readonly family: "IPv4" | "IPv6";
  /** How long it took by the proxy's own word, ms. */
  readonly elapsedMs: number;
  /** When its line arrived here, by `performance.now()`. */
  readonly atMs: number;
}

/** A proxy's log while it runs. */
export interface SyncLog {
  /** Wait for the next sync that ended well. @throws {Error} when one failed or the proxy ended. */
  next(): Promise<ProxySync>;
  /** What went wrong so far; undefined: nothing. */
  failure(): Error | undefined;
}

/** Lines to remember of a proxy that ends. */
const LAST_MAX = 5;

/** Follow a proxy's standard error to its end, reading lines as they come, whoever asks. `syncOf` reads one, and throws when it tells of trouble. */
export function followSyncs(child: ChildProcess, syncOf: (line: string, atMs: number) => ProxySync | undefined): SyncLog {
  const { stderr } = child;
  if (stderr === null) throw new Error("the proxy's standard error must be a pipe");
  const heard: ProxySync[] = [];
  const last: string[] = [];
  let end: Error | undefined;
  let wake: () => void = () => undefined;
  const follow = async (): Promise<void> => {
    const lines = lineReader(stderr);
    for (let line = await lines.next(); line !== undefined; line = await lines.next()) {
      last.push(line);
      if (last.length > LAST_MAX) last.shift();
      const sync = syncOf(line, performance.now());
      if (sync !== undefined) heard.push(sync);
      wake();
    }
    throw new Error(`the proxy ended: ${last.join("\n")}`);
  };
  follow().catch((error: unknown) => {
    end = error instanceof Error ? error : new Error(String(error));
    wake();
  });
  return {
    failure: () => end,
    next: async () => {
      for (;;) {
        const sync = heard.shift();
        if (sync !== undefined) return sync;
        if (end !== undefined) throw end;
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
