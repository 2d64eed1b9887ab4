/**
 * Read a command line. What is wrong with it is said in one line, with the usage, and ends the process with exit code 2.
 *
 * Shape: `read` throws a TypeError, as `parseArgs` of node:util does, or a RangeError.
 */
export function readOrExit<T>(usage: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof TypeError || error instanceof RangeError)) throw error;
    process.stderr.write(`${error.message.replaceAll("\n", " ")}; usage: ${usage}\n`);
    process.exit(2);
  }
}

/** Read a whole number of at least `least`. @throws {RangeError} naming the flag. */
export function wholeNumber(flag: string, text: string, least: number): number {
  const number = Number(text);
  if (text.trim() === "" || !Number.isInteger(number) || number < least)
    throw new RangeError(`${flag} ${text}: a whole number of at least ${least} is needed`);
  return number;
}

/** Read a name that has to be one of several; undefined stays so. @throws {RangeError} that names them all. */
export function oneOf(flag: string, text: string | undefined, known: readonly string[]): string | undefined {
  if (text !== undefined && !known.includes(text)) throw new RangeError(`${flag} ${text}: choose from ${known.join(", ")}`);
  return text;
}
