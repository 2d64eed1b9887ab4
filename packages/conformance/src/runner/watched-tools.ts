import type { ExecResult, ProxyError, StartedCommand, World } from "@turnout/core";

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
  const watched = async (work: () => Promise<ExecResult>): Promise<ExecResult> => {
    const failure = watcher.failure();
    if (failure !== undefined) throw failure;
    const result = await work();
    watcher.look();
    return result;
  };
  const run: World["exec"]["run"] = (file, args, options) => watched(() => exec.run(file, args, options));
  const open = (file: string, args: readonly string[]): StartedCommand => {
    const started = exec.open(file, args);
    return {
      finish: (input, options) => watched(() => started.finish(input, options)),
      pid: started.pid,
      close: () => started.close(),
    };
  };
  // Whatever else a host in memory has put there for its backend stays.
  return { ...world, exec: { run, open } };
}
