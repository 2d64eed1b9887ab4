/** Which tests of a costly list a run has. */
export interface Share {
  /** One of so many. */
  readonly oneOf: number;
  /** It is a share of a kernel kit, which `npm run test:rest` runs whole. Default: all of it in `npm run test:full` only. */
  readonly isKernelKit?: true;
}

type Env = Readonly<Record<string, string | undefined>>;

/** What of a list of costly tests is run: a share that is another one each day, or all (see {@link Share}). */
export function someOf<T>(all: readonly T[], { oneOf, isKernelKit }: Share, env: Env = process.env): readonly T[] {
  if (isFullRun(env) || (isKernelKit === true && isRestRun(env))) return all;
  const from = shareSeed(env) % oneOf;
  return all.filter((_, index) => index % oneOf === from);
}

/**
 * Which share is run: TURNOUT_SHARE, which vitest.config.ts sets to the days since 1970, or 0 outside of vitest.
 * @throws {Error} for anything but a whole number from 0: no test would be chosen.
 */
export function shareSeed(env: Env = process.env): number {
  const text = env["TURNOUT_SHARE"] ?? "0";
  if (!/^\d+$/.test(text)) throw new Error(`TURNOUT_SHARE=${text} is no whole number from 0`);
  return Number(text);
}

/** Whether this is the full run (`npm run test:full`). */
export function isFullRun(env: Env = process.env): boolean {
  return env["TURNOUT_TESTS"] === "full";
}

/** Whether this is the run of what `npm test` has no time for (`npm run test:rest`). */
export function isRestRun(env: Env = process.env): boolean {
  return env["TURNOUT_TESTS"] === "rest";
}
