import type { RestClientMetrics } from "@turnout/client/daemon";
import { OBJECT_KINDS, ProxyError, type Clock, type Log, type ObjectKind } from "@turnout/core";
import type { EventQueue } from "./events/event-queue.ts";
import { createKubeClient, proxyOf } from "./kube-client.ts";
import { LoggedProblems } from "./outage-log.ts";
import type { ObjectSink, Source } from "../source/object-sink.ts";
import { Reflector } from "./reflector.ts";
import { DEFAULT_TIMINGS, type ReflectorTimings } from "./reflector-timings.ts";
import { askServerVersion } from "./server-version.ts";
import { resolveAccess, type AccessOptions } from "./access/resolve-access.ts";
import { selectionFor } from "../source/selectors.ts";

/** Times of a kube source; those of {@link DEFAULT_TIMINGS} and of the client. */
export interface KubeTimings extends ReflectorTimings {
  /** To a connection, TLS included; default 10,000. */
  readonly connectTimeoutMs: number;
  /** From there to the answer's first byte; default 60,000. */
  readonly answerTimeoutMs: number;
}

/** What a kube source needs. */
export interface KubeSourceOptions extends AccessOptions {
  /** Only this Node is watched; undefined: all of them. */
  readonly nodeName?: string | undefined;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  /** Hears what ails a part of the source (a kind of object, or `files`) when a try failed, and "" whenever it works. */
  readonly onHealth?: ((part: string, problem: string) => void) | undefined;
  /** Hears of each list, change and bookmark of a kind. */
  readonly onHeard?: ((kind: ObjectKind) => void) | undefined;
  /** What is to be sent to the API server as events; undefined: none are. */
  readonly events?: EventQueue | undefined;
  /** Hears of each request to the API server. */
  readonly requestMetrics?: RestClientMetrics | undefined;
  /** Hears the API server's version, e.g. `v1.37.2`, before the first Service; undefined: it doesn't say. Absent: it isn't asked. */
  readonly onVersion?: ((version: string | undefined) => void) | undefined;
  /** Replaces single times. */
  readonly timings?: Partial<KubeTimings> | undefined;
}

/**
 * Make a source that follows an API server: one reflector for each kind over one agent.
 *
 * Edges: ServiceCIDR is optional, clusters before 1.33 don't have it. Nothing is opened before `run`.
 */
export function createKubeSource(options: KubeSourceOptions): Source {
  return {
    run: (sink: ObjectSink, signal: AbortSignal): Promise<void> => runReflectors(options, sink, signal),
  };
}

async function runReflectors(options: KubeSourceOptions, sink: ObjectSink, signal: AbortSignal): Promise<void> {
  const { clock, random, log, nodeName, env, onHealth, onHeard, onVersion, events, requestMetrics } = options;
  const timings: KubeTimings = { ...DEFAULT_TIMINGS, connectTimeoutMs: 10_000, answerTimeoutMs: 60_000, ...options.timings };
  const access = resolveAccess(options);
  // What can't work as configured is told now; what may heal (a login program that fails) is retried.
  const server = await access.endpoint().then(
    (endpoint) => ({ server: endpoint.server.origin, ...proxyField(proxyOf(endpoint, env)) }),
    (error: unknown) => {
      if (!ProxyError.is(error) || !error.retryable) throw error;
      return { server: "not known yet" };
    },
  );
  log.info("following the API server", { ...server, by: access.description });
  const { connectTimeoutMs, answerTimeoutMs } = timings;
  const onAddresses = (addresses: readonly string[]): void => sink.noteSourceAddresses?.(addresses);
  const client = createKubeClient({ access, clock, connectTimeoutMs, answerTimeoutMs, env, metrics: requestMetrics, onAddresses });
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const said = new LoggedProblems();
  let isWorking = false;
  const reflectors = OBJECT_KINDS.map(
    (kind) =>
      new Reflector({
        kind,
        selection: selectionFor(kind, nodeName),
        client,
        sink,
        clock,
        random,
        log,
        timings,
        said,
        prefersWatchList: true,
        isOptional: kind === "ServiceCIDR",
        onHealth,
        onHeard: (heard) => {
          isWorking = true;
          onHeard?.(heard);
        },
      }),
  );
  const question = { client, clock, random, isWorking: () => isWorking };
  const versionKnown = onVersion === undefined ? undefined : askServerVersion(question, either).then(onVersion);
  const tasks = reflectors.map(async (reflector, index) => {
    if (OBJECT_KINDS[index] === "Service") await versionKnown;
    await reflector.run(either);
  });
  if (events !== undefined) tasks.push(events.run({ client, clock, random }, log, either));
  try {
    await Promise.all(tasks);
  } finally {
    stop.abort();
    client.close();
  }
}

/** For the log: without its password. */
function proxyField(proxy: URL | undefined): { readonly proxy?: string } {
  return proxy === undefined ? {} : { proxy: `${proxy.protocol}//${proxy.host}` };
}
