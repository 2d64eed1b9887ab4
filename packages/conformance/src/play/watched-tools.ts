import type { Exec, ExecSession, ProxyError, World } from "@turnout/core";

/** Who stands between a backend and its tools. */
export interface ToolWatcher {
  /** Called whenever a tool has done something. */
  look(): void;
  /** Asked before a tool does anything: with what it fails instead. */
  failure(): ProxyError | undefined;
}

/** The world as it is, with somebody who looks at the host whenever its tool has done something, and may have it fail. */
export function watchTools<W extends World>(world: W, watcher: ToolWatcher): Omit<W, "exec"> & Pick<World, "exec"> {
  const { exec } = world;
  const watched: Exec = {
    run: async (file, args, options) => {
      const failure = watcher.failure();
      if (failure !== undefined) throw failure;
      const result = await exec.run(file, args, options);
      watcher.look();
      return result;
    },
    open: (file, args) => watchSession(exec.open(file, args), watcher),
  };
  // Whatever else a host in memory has put there for its backend stays.
  return { ...world, exec: watched };
}

/** A tool that is fed lines works line by line, however they are handed over. */
function watchSession(session: ExecSession, watcher: ToolWatcher): ExecSession {
  let failed: ProxyError | undefined;
  return {
    write(text: string): void {
      failed ??= watcher.failure();
      if (failed !== undefined) return;
      for (const line of text.split(/(?<=\n)/)) {
        session.write(line);
        watcher.look();
      }
    },
    async readUntil(marker: string, timeoutMs: number): Promise<string> {
      if (failed !== undefined) throw failed;
      const answer = await session.readUntil(marker, timeoutMs);
      watcher.look();
      return answer;
    },
    get pid(): number | undefined {
      return session.pid;
    },
    close: () => session.close(),
  };
}
