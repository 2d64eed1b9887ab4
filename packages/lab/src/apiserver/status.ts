/** The body an API server sends with an error, and for a delete. */
export interface StatusBody {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Readonly<Record<string, never>>;
  readonly status: "Failure" | "Success";
  readonly message?: string;
  readonly reason?: string;
  readonly code: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Something that either worked, or is answered with a Status. */
export type Result<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly failure: StatusBody };

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Expired",
  415: "UnsupportedMediaType",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

/** Make the Status of an error; `extra` overrides the reason that goes with `code` or adds details. */
export function failure(
  code: number,
  message: string,
  extra: { readonly reason?: string; readonly details?: Readonly<Record<string, unknown>> } = {},
): StatusBody {
  const reason = extra.reason ?? REASONS[code] ?? "Unknown";
  const details = extra.details === undefined ? {} : { details: extra.details };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code, ...details };
}

/** Make the Status that answers a successful delete. */
export function success(details: Readonly<Record<string, unknown>>): StatusBody {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 200, details };
}

/** Make the 410 an API server gives for a resourceVersion or continue token it no longer remembers. */
export function expired(what: string): StatusBody {
  return failure(410, what, { reason: "Expired" });
}

/** Wrap a value that worked. */
export function ok<T>(value: T): Result<T> {
  return { ok: true, value };
}

/** Wrap a Status as a result. */
export function failed<T>(status: StatusBody): Result<T> {
  return { ok: false, failure: status };
}
