/** Something that reads what others wrote. Files `fuzz-targets.ts` of packages' test-support export a list of them as `FUZZ_TARGETS`. */
export interface FuzzTarget {
  /** Unique, e.g. `netlink-conntrack`: the name of its corpus, a folder below `test/fuzz` of its package. */
  readonly name: string;
  /** What inputs are, which says how they are changed: `bytes` are written as hexadecimal digits in the corpus. */
  readonly form: "bytes" | "text" | "json";
  /**
   * Read one input, as the process would: it returns, or throws a ProxyError. Any other error is a finding, and so is an input that takes
   * too long or too much memory.
   */
  run(input: Buffer): unknown;
}

/** What was found with one input. */
export interface FuzzFinding {
  readonly target: string;
  readonly input: Buffer;
  /** The error with its stack, or what else went wrong. */
  readonly what: string;
}

/** No input is longer, in bytes: what is read costs time in proportion, and no longer one shows more. */
export const INPUT_BYTES_MAX = 66_560;

/** Play one input. Gives what is wrong with what came of it, or undefined. Never throws. */
export async function execute(target: FuzzTarget, input: Buffer): Promise<string | undefined> {
  try {
    await target.run(input);
    return undefined;
  } catch (error) {
    // By its name: the package in question may have its own copy of core.
    if (error instanceof Error && error.name === "ProxyError") return undefined;
    return error instanceof Error ? (error.stack ?? error.message) : `it threw ${String(error)}`;
  }
}
