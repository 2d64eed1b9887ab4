/** The body an API server sends with an error. */
export interface StatusBody {
  readonly kind: "Status";
  readonly apiVersion: "v1";
  readonly metadata: Readonly<Record<string, never>>;
  readonly status: "Failure";
  readonly message?: string;
  readonly reason?: string;
  readonly code: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** A request that is answered with a Status. */
export class Refusal extends Error {
  readonly status: StatusBody;

  constructor(status: StatusBody) {
    super(status.message ?? "");
    this.status = status;
  }
}

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
export function failure(code: number, message: string, extra: Pick<StatusBody, "reason" | "details"> = {}): StatusBody {
  const reason = REASONS[code] ?? "Unknown";
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message, reason, code, ...extra };
}

/** Refuse a request. @throws {Refusal} always */
export function refuse(...status: Parameters<typeof failure>): never {
  throw new Refusal(failure(...status));
}

/** Make the 410 an API server gives for a resourceVersion or continue token it no longer remembers. */
export function expired(what: string): StatusBody {
  return failure(410, what);
}
