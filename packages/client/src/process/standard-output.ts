const FAILED = 1;

/**
 * Have a program end sensibly when what it prints can't be written.
 *
 * Edges: a reader that goes away (`print | head`) ends it quietly; anything else, such as a full disk, with 1 and a line. A
 * log that nobody takes any more is no reason to stop following services, and nobody can be told.
 */
export function guardOutput(name: string): void {
  process.stderr.on("error", () => undefined);
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    process.stderr.write(
      `${name}: [tool_failed] what was asked for can't be written (${error.message}): standard output: is the disk full?\n`,
    );
    process.exit(FAILED);
  });
}

/** End the process once everything printed has been taken, or could not be. */
export async function exitPrinted(code: number): Promise<void> {
  // Not from the callback itself: what can't be written is told by the stream's error, which comes right after.
  const status = await new Promise<number>((resolve) => process.stdout.write("", (error) => resolve(error ? FAILED : code)));
  process.exit(status);
}
