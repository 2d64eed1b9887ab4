/** A program of this repository that a person starts by `npm run NAME -- …`. */
export interface CheckCommand<T> {
  /** Its name among npm's scripts. */
  readonly name: string;
  /** For `--help`. */
  readonly usage: string;
  /** Reads the arguments. Throws a TypeError, as `parseArgs` of node:util does, or a RangeError. */
  readonly read: (args: readonly string[]) => T;
  /** Does it; false where it found that not all is well. */
  readonly execute: (asked: T) => boolean | void | Promise<boolean | void>;
}

/**
 * Run a program: help where it is wanted, else what the command line asks for.
 *
 * Edges: exit code 2 for a wrong command line, with nothing done; 1 for what failed or was not well. Both are said in words, without a stack.
 */
export async function runCommand<T>({ name, usage, read, execute }: CheckCommand<T>): Promise<void> {
  const args = process.argv.slice(2);
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(`${usage.trimEnd()}\n`);
    return;
  }
  let asked: T;
  try {
    asked = read(args);
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    process.stderr.write(`${error.message.replaceAll("\n", " ")}; usage: npm run ${name} -- --help\n`);
    process.exitCode = 2;
    return;
  }
  try {
    if ((await execute(asked)) === false) process.exitCode = 1;
  } catch (error) {
    process.stderr.write(`${name}: ${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}

/** Read a whole number of at least `least`, and at most `most`. @throws {RangeError} naming the flag. */
export function wholeNumber(flag: string, text: string, least: number, most: number = Number.MAX_SAFE_INTEGER): number {
  const number = Number(text);
  const bounds = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  if (text.trim() === "" || !Number.isInteger(number) || number < least || number > most)
    throw new RangeError(`${flag} ${text}: a whole number ${bounds} is needed`);
  return number;
}

/** Read a name that has to be one of several. @throws {RangeError} that names them all. */
export function oneOf<T extends string>(flag: string, text: string, known: readonly T[]): T {
  const found = known.find((one) => one === text);
  if (found === undefined) throw new RangeError(`${flag} ${text}: choose from ${known.join(", ")}`);
  return found;
}
