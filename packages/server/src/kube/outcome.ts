import { ProxyError } from "@turnout/core";
import type { Unreached } from "./kube-client.ts";
import { HTTP, refusalError, type Refusal } from "./refusal.ts";

/** How one request to the API server went. */
export type Outcome =
  /** The list is complete, a watch can begin. */
  | { readonly is: "listed" }
  /** The server ended the watch properly. */
  | { readonly is: "ended" }
  | { readonly is: "refused"; readonly refusal: Refusal }
  | { readonly is: "unreached"; readonly error: ProxyError }
  | { readonly is: "broken"; readonly error: ProxyError };

/** When to ask again. */
export interface Pause {
  readonly ms: number;
  /** Sooner when credentials or the server's address change: nothing else will help, or they may. */
  readonly endsWithAccess: boolean;
}

/** No pause. */
export const AT_ONCE: Pause = { ms: 0, endsWithAccess: false };

/** The outcome of a request without a body to read. */
export function outcomeOf(answer: Refusal | Unreached): Outcome {
  return answer.kind === "refused" ? { is: "refused", refusal: answer } : { is: "unreached", error: answer.error };
}

/**
 * Say what was wrong with a watch-list, if a list may work in its place.
 *
 * Edges: undefined for a server that wasn't reached, didn't accept the credentials, or asks to wait: a list would meet the same, or make it worse.
 */
export function watchListFailure(outcome: Outcome): ProxyError | undefined {
  if (outcome.is === "broken") return ProxyError.is(outcome.error, "tool_failed") ? undefined : outcome.error;
  if (outcome.is !== "refused") return undefined;
  const { status, retryAfterMs } = outcome.refusal;
  if (status === HTTP.unauthorized || status === HTTP.tooMany || retryAfterMs > 0) return undefined;
  return refusalError(outcome.refusal);
}

/** Whether a server says that it has no watch-list, or no such API: 5,000 nodes that list at once cost it no more than they always did. */
export function lacksWatchList(outcome: Outcome, isOptional: boolean): boolean {
  if (outcome.is !== "refused") return false;
  const { status } = outcome.refusal;
  const isAbsent = status === HTTP.badRequest || status === HTTP.unprocessable;
  return isAbsent || (isOptional && (status === HTTP.forbidden || status === HTTP.notFound));
}
