import { ProxyError, type Clock } from "@turnout/core";
import { backoffMs } from "./backoff.ts";
import type { KubeClient } from "./kube-client.ts";
import { collect } from "./list-page.ts";
import { HTTP } from "./refusal.ts";
import { Watchdog } from "./watchdog.ts";

/** What asking needs. */
export interface VersionQuestion {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  /** Whether the server has answered another request. */
  readonly isWorking: () => boolean;
}

/** How a try went: what the server says, that it does not say it, or that it may say it as soon as it works. */
type Answer = { readonly version: string } | "unsaid" | "failed" | "unreached";

/** From the request to the whole answer. */
const ANSWER_MS = 10_000;
/** A server that answers something else is asked again so often. */
const TRIES = 3;
const WAIT_MS = 800;
const WAIT_MAX_MS = 5_000;

/**
 * Ask an API server for its version, e.g. `v1.37.2`, until it works and accepts the credentials.
 *
 * Edges: undefined when a server that works doesn't say it, and on abort. A load balancer without a server, a login program that fails and a server that is
 * starting are waited for: Services can't be listed then either. Never throws.
 */
export async function askServerVersion(
  { client, clock, random, isWorking }: VersionQuestion,
  signal: AbortSignal,
): Promise<string | undefined> {
  let tries = 0;
  for (let failures = 1; !signal.aborted; failures++) {
    const answer = await askOnce(client, clock, signal);
    if (typeof answer === "object") return answer.version;
    const counts = answer === "unsaid" || (answer === "failed" && isWorking());
    if (counts && ++tries >= TRIES) return undefined;
    await clock.sleep(backoffMs(failures, 0, random(), WAIT_MS, WAIT_MAX_MS), signal);
  }
  return undefined;
}

async function askOnce(client: KubeClient, clock: Clock, signal: AbortSignal): Promise<Answer> {
  const late = new AbortController();
  const dog = new Watchdog(clock, ANSWER_MS, () => late.abort());
  try {
    const answer = await client.ask({ path: "/version", idleMs: ANSWER_MS }, AbortSignal.any([signal, late.signal]));
    if (answer.kind === "unreached") return "unreached";
    if (answer.kind === "refused") return refusal(answer.status);
    const version = versionIn(await collect(answer.chunks));
    return version === undefined ? "unsaid" : { version };
  } catch (error) {
    if (ProxyError.is(error)) return "failed";
    throw error;
  } finally {
    dog.stop();
  }
}

function refusal(status: number): Answer {
  if (status === HTTP.unauthorized) return "unreached";
  return status === HTTP.tooMany || status >= 500 ? "failed" : "unsaid";
}

function versionIn(text: string): string | undefined {
  try {
    const { gitVersion } = JSON.parse(text) as { readonly gitVersion?: unknown };
    return typeof gitVersion === "string" && /^v\d+\.\d+/.test(gitVersion) ? gitVersion : undefined;
  } catch {
    return undefined;
  }
}
