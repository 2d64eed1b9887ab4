import { parseJSON, ProxyError } from "@turnout/core";
import { isRecord } from "../source/raw-object.ts";
import { RETRY_AFTER_MAX_MS } from "./backoff.ts";

/** The answers that mean something of their own. */
export const HTTP = {
  ok: 200,
  created: 201,
  badRequest: 400,
  unauthorized: 401,
  forbidden: 403,
  notFound: 404,
  conflict: 409,
  gone: 410,
  unprocessable: 422,
  tooMany: 429,
  serverError: 500,
} as const;

/** An answer that isn't what was asked for: an HTTP status, or the object of a watch's ERROR event. */
export interface Refusal {
  readonly kind: "refused";
  /** HTTP status or Status.code; 0 when unknown. */
  readonly status: number;
  readonly reason: string;
  readonly message: string;
  /** At most five minutes; 0: the server didn't say. */
  readonly retryAfterMs: number;
  /** It is about a resourceVersion the server hasn't reached (an API server behind, or restored from a backup). */
  readonly isFutureRevision: boolean;
}

/** Read a refused HTTP answer; the body may or may not be a Status. Retry-After in seconds only. Never throws. */
export function parseRefusal(httpStatus: number, retryAfter: string | undefined, body: string): Refusal {
  const refusal = refusalOf(parsed(body), httpStatus, body);
  const seconds = Number(retryAfter ?? "0");
  return seconds > 0 ? { ...refusal, retryAfterMs: retryMs(seconds) } : refusal;
}

/** Read a Status object; `fallbackText` is shown when it has no message. Never throws. */
export function refusalOf(status: unknown, fallbackStatus = 0, fallbackText = ""): Refusal {
  const fields = isRecord(status) ? status : {};
  const details = isRecord(fields["details"]) ? fields["details"] : {};
  const message = typeof fields["message"] === "string" ? fields["message"] : fallbackText;
  const seconds = typeof details["retryAfterSeconds"] === "number" ? details["retryAfterSeconds"] : 0;
  const causes: readonly unknown[] = Array.isArray(details["causes"]) ? details["causes"] : [];
  return {
    kind: "refused",
    status: typeof fields["code"] === "number" ? fields["code"] : fallbackStatus,
    reason: typeof fields["reason"] === "string" ? fields["reason"] : "",
    message: message.slice(0, 300),
    retryAfterMs: retryMs(seconds),
    isFutureRevision:
      causes.some((cause) => isRecord(cause) && cause["reason"] === "ResourceVersionTooLarge") ||
      message.startsWith("Too large resource version"),
  };
}

function retryMs(seconds: number): number {
  return Math.min(RETRY_AFTER_MAX_MS, Math.max(0, seconds) * 1000);
}

/** Say a refusal as an error, with what to try. */
export function refusalError(refusal: Refusal): ProxyError {
  const { status, message } = refusal;
  const hints: Readonly<Record<number, string>> = {
    [HTTP.unauthorized]: "check the token or certificate",
    [HTTP.forbidden]: "bind the ClusterRole system:node-proxier",
    [HTTP.notFound]: "check the server's address; Kubernetes 1.21 is needed",
  };
  const hint = hints[status];
  const code = hint === undefined || status === HTTP.notFound ? "feed_lost" : "permission_denied";
  const answer = message === "" ? `${status}` : `${status} (${message})`;
  return new ProxyError(code, `the API server answered ${answer}`, hint === undefined ? {} : { hint });
}

function parsed(body: string): unknown {
  if (!body.startsWith("{")) return undefined;
  try {
    return parseJSON(body);
  } catch (error) {
    // A proxy in between may send anything; the text itself is shown then.
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
