import { ProxyError, type Clock } from "@turnout/core";
import { backoffMs } from "./backoff.ts";
import type { KubeClient } from "./kube-client.ts";
import { HTTP } from "./refusal.ts";

/** What asking needs. */
export interface VersionQuestion {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
}

/** From the request to the whole answer. */
const ANSWER_MS = 10_000;
/** A server that answers something else is asked again so often. */
const TRIES = 3;
const WAIT_MS = 800;
const WAIT_MAX_MS = 5_000;

/**
 * Ask an API server for its version, e.g. `v1.37.2`, until it can be reached and accepts the credentials.
 *
 * Edges: undefined when a server that can be reached doesn't say it, and on abort. Never throws.
 */
export async function askServerVersion({ client, clock, random }: VersionQuestion, signal: AbortSignal): Promise<string | undefined> {
  let tries = 0;
  for (let failures = 1; !signal.aborted; failures++) {
    const answer = await askOnce(client, clock, signal);
    if (typeof answer === "string") return answer;
    if (answer.wasReached && ++tries >= TRIES) return undefined;
    await clock.sleep(backoffMs(failures, 0, random(), WAIT_MS, WAIT_MAX_MS), signal);
  }
  return undefined;
}

async function askOnce(client: KubeClient, clock: Clock, signal: AbortSignal): Promise<string | { readonly wasReached: boolean }> {
  const late = new AbortController();
  const done = new AbortController();
  const timer = clock.sleep(ANSWER_MS, AbortSignal.any([signal, done.signal])).then(() => late.abort());
  try {
    const answer = await client.ask({ path: "/version", idleMs: ANSWER_MS }, AbortSignal.any([signal, late.signal]));
    // Without valid credentials Services can't be listed either.
    if (answer.kind !== "open") return { wasReached: answer.kind === "refused" && answer.status !== HTTP.unauthorized };
    const parts: Buffer[] = [];
    for await (const chunk of answer.chunks) parts.push(chunk);
    return versionIn(Buffer.concat(parts).toString()) ?? { wasReached: true };
  } catch (error) {
    if (ProxyError.is(error)) return { wasReached: true };
    throw error;
  } finally {
    done.abort();
    await timer;
  }
}

function versionIn(text: string): string | undefined {
  try {
    const { gitVersion } = JSON.parse(text) as { readonly gitVersion?: unknown };
    return typeof gitVersion === "string" && /^v\d+\.\d+/.test(gitVersion) ? gitVersion : undefined;
  } catch {
    return undefined;
  }
}
