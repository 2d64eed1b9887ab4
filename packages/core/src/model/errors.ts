/** Closed list of reasons a Turnout operation can fail for; every other error is a programmer's. */
export type ErrorCode =
  | "invalid_object"
  | "host_unsupported"
  | "tool_missing"
  | "permission_denied"
  | "tool_failed"
  | "not_found"
  | "already_exists"
  | "limit_reached"
  | "timed_out"
  | "canceled"
  | "restart_needed"
  | "feed_lost";

/** Parts of an error's one line: `[code] what failed: which object: what to try`. */
export interface ErrorDetails {
  /** The object or file concerned, e.g. `Service shop/cart` or `services.yaml:12`. */
  readonly object?: string;
  /** What the reader can do about it. */
  readonly hint?: string;
  readonly cause?: unknown;
}

const RETRYABLE: Readonly<Record<ErrorCode, boolean>> = {
  invalid_object: false,
  host_unsupported: false,
  tool_missing: false,
  permission_denied: false,
  tool_failed: true,
  not_found: false,
  already_exists: false,
  limit_reached: true,
  timed_out: true,
  canceled: false,
  restart_needed: false,
  feed_lost: true,
};

/** Every code there is, e.g. to count from 0 before the first error of it. */
export const ERROR_CODES: readonly ErrorCode[] = Object.keys(RETRYABLE) as ErrorCode[];

/**
 * The one error class for operating errors.
 *
 * Shape: `message` is `[code] what: object: hint`, `what` is the first part alone.
 * Edges: ask with {@link ProxyError.is}; `instanceof` fails when two copies of core are installed.
 */
export class ProxyError extends Error {
  override readonly name = "ProxyError";
  readonly code: ErrorCode;
  readonly what: string;
  readonly object: string | undefined;
  readonly hint: string | undefined;

  constructor(code: ErrorCode, what: string, details: ErrorDetails = {}) {
    const parts = [`[${code}] ${what}`, details.object, details.hint].filter((part) => part !== undefined);
    super(parts.join(": "), details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.what = what;
    this.object = details.object;
    this.hint = details.hint;
  }

  /** Tell whether a retry may help; a table over codes. */
  get retryable(): boolean {
    return RETRYABLE[this.code];
  }

  /** Tell whether `error` is a ProxyError (of `code`, if given), whichever copy of core made it. Never throws. */
  static is(error: unknown, code?: ErrorCode): error is ProxyError {
    if (typeof error !== "object" || error === null) return false;
    const candidate = error as { name?: unknown; code?: unknown };
    if (candidate.name !== "ProxyError" || typeof candidate.code !== "string") return false;
    return code === undefined ? candidate.code in RETRYABLE : candidate.code === code;
  }

  /** Wrap anything thrown: a ProxyError stays itself, the rest becomes `code` with the original as cause. */
  static from(error: unknown, code: ErrorCode, what: string, details: ErrorDetails = {}): ProxyError {
    if (ProxyError.is(error)) return error;
    const text = error instanceof Error ? error.message : String(error);
    return new ProxyError(code, `${what} (${text})`, { ...details, cause: error });
  }
}

/**
 * Tell an operating error from a defect in what somebody's dealings with the host threw.
 *
 * Edges: besides {@link ProxyError} it is one when Node says that a system call failed (then it becomes `tool_failed`); undefined: all else (a
 * TypeError, a failed assertion) is a defect of whoever threw it.
 */
export function operatingError(thrown: unknown): ProxyError | undefined {
  if (ProxyError.is(thrown)) return thrown;
  const isSystems = thrown instanceof Error && "syscall" in thrown;
  return isSystems ? ProxyError.from(thrown, "tool_failed", "the host could not be dealt with") : undefined;
}

/**
 * Stop the program when something its author held to be impossible has happened.
 * @throws {Error} when `condition` is false; rules already in the kernel keep forwarding.
 */
export function invariant(condition: boolean, message: string): asserts condition {
  if (!condition) throw new Error(`invariant violated: ${message}`);
}
