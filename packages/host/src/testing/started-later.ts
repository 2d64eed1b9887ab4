import type { Exec, StartedCommand } from "@turnout/core";

/** What a fake host gives for `open`: a command that runs as a whole when its input comes. */
export function startedLater(run: Exec["run"], file: string, args: readonly string[]): StartedCommand {
  return {
    finish: (input, options) => run(file, args, { ...options, input }),
    pid: 4_242,
    close: () => undefined,
  };
}
