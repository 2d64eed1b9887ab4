/** A piece of the text that was read: offsets, the end one behind the last character. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** What nft or the kernel has against a command. Never leaves the fake: it is printed, as nft prints it. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly span: Span;
  /** The kernel says so; nft tells of its own complaints alone where it has some. */
  readonly isOfKernel: boolean;

  constructor(message: string, span: Span, isOfKernel: boolean = false) {
    super(message);
    this.span = span;
    this.isOfKernel = isOfKernel;
  }
}

/** What the kernel says; nft puts it behind "Could not process rule". */
export const KERNEL_WORDS = {
  ENOENT: "No such file or directory",
  EEXIST: "File exists",
  EBUSY: "Device or resource busy",
  EINVAL: "Invalid argument",
  EMLINK: "Too many links",
  ENFILE: "Too many open files in system",
  EOPNOTSUPP: "Operation not supported",
  ERANGE: "Numerical result out of range",
  EOVERFLOW: "Value too large for defined data type",
} as const;

/** Make a refusal by the kernel. */
export function kernelRefusal(errno: keyof typeof KERNEL_WORDS, span: Span): Refusal {
  return new Refusal(`Could not process rule: ${KERNEL_WORDS[errno]}`, span, true);
}

/**
 * Do something that the kernel may refuse while nft still reads on: an earlier complaint stays, what nft itself has against it is thrown.
 *
 * Shape: gives the complaint there is now, if any.
 */
export function deferKernelRefusal(earlier: Refusal | undefined, act: () => void): Refusal | undefined {
  try {
    act();
  } catch (error) {
    if (error instanceof Refusal && error.isOfKernel) return earlier ?? error;
    throw error;
  }
  return earlier;
}

/**
 * Print a refusal the way nft does: the complaint, the line, and carets beneath the words concerned.
 *
 * Shape: `file` is what nft calls its input (`/dev/stdin`); "" for an interactive nft, which gives no position.
 */
export function printRefusal({ message, span }: Refusal, text: string, file: string): string {
  const lineStart = text.lastIndexOf("\n", span.start - 1) + 1;
  const lineEnd = text.indexOf("\n", lineStart);
  const line = text.slice(lineStart, lineEnd === -1 ? undefined : lineEnd);
  const from = span.start - lineStart;
  const to = Math.max(from + 1, Math.min(span.end - lineStart, line.length));
  const row = text.slice(0, lineStart).split("\n").length;
  const place = file === "" ? "" : `${file}:${row}:${from + 1}-${to}: `;
  return `${place}Error: ${message}\n${line}\n${" ".repeat(from)}${"^".repeat(to - from)}\n`;
}
