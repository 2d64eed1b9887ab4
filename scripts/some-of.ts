/** Which tests of a list the normal run plays. */
export interface Share {
  /** One of so many. */
  readonly oneOf: number;
  /** The index of the first; whoever begins elsewhere plays others. Default 0. */
  readonly from?: number;
}

/** What of a list of costly tests is played: in the full run (`npm run test:full`) all, otherwise a share, always the same. */
export function someOf<T>(all: readonly T[], { oneOf, from = 0 }: Share, env: NodeJS.ProcessEnv = process.env): readonly T[] {
  return isFullRun(env) ? all : all.filter((_, index) => index % oneOf === from);
}

/** Whether this is the full run. */
export function isFullRun(env: NodeJS.ProcessEnv = process.env): boolean {
  return env["TURNOUT_E2E"] === "full";
}
