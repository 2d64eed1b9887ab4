import { servesExternalIPs, type RestClientMetrics, type RunConfig } from "@turnout/client/daemon";
import type { Clock, Issue, Log, ObjectKind, Store } from "@turnout/core";
import type { EventQueue } from "../kube/events/event-queue.ts";
import { openSource, type ObjectSourceSpec } from "./source.ts";

const EXTERNAL_IPS_HINT = "the feature gate AllowServiceExternalIPs=true serves all of them, --allowed-external-ip-cidrs some";

/** What sources look at besides their options. */
export interface SourceEnvironment {
  readonly hostname: string;
  readonly version: string;
  readonly variables: Readonly<Record<string, string | undefined>>;
}

/** Where a store's objects come from, and who hears of them. */
export interface FillOptions {
  readonly spec: ObjectSourceSpec;
  /** The one node whose Node object is wanted; undefined: all of them. */
  readonly nodeName: string | undefined;
  readonly config: Pick<RunConfig, "kubeconfig" | "master" | "allowedAddresses" | "followsClusterVersion">;
  readonly env: Pick<SourceEnvironment, "variables">;
  readonly clock: Clock;
  readonly log: Log;
  readonly report: (issue: Issue) => void;
  /** Hears of every object that comes or goes. */
  readonly onObject?: ((kind: ObjectKind) => void) | undefined;
  /** Hears what ails a part of the source, and "" when it works. */
  readonly onHealth?: ((part: string, problem: string) => void) | undefined;
  /** Hears of each list, change and bookmark that an API server sends of a kind. */
  readonly onHeard?: ((kind: ObjectKind) => void) | undefined;
  /** Hears of each request to the API server. */
  readonly requestMetrics?: RestClientMetrics | undefined;
  /** What an API server gets as events. */
  readonly events?: EventQueue | undefined;
  /** Hears, once, that the source has said everything it knows. */
  readonly onSynced?: (() => void) | undefined;
}

/** Keep a store filled from a source until `signal` aborts. @throws {ProxyError} what the source can't start with. */
export async function fillStore(store: Store, options: FillOptions, signal: AbortSignal): Promise<void> {
  const { spec, nodeName, config, env, clock, log, report, onObject, onSynced, onHealth, onHeard, requestMetrics, events } = options;
  const sink = {
    upsert: (kind: ObjectKind, raw: unknown): void => {
      onObject?.(kind);
      store.upsert(kind, raw);
    },
    remove: (kind: ObjectKind, namespace: string, name: string): void => {
      onObject?.(kind);
      store.remove(kind, namespace, name);
    },
    markSynced: (kind: ObjectKind): void => {
      const wasSynced = store.isSynced;
      store.markSynced(kind);
      if (store.isSynced && !wasSynced) onSynced?.();
    },
    holdIssues: (issues: readonly Issue[]): void => store.holdIssues(issues),
    noteSourceAddresses: (addresses: readonly string[]): void => store.noteSourceAddresses(addresses),
  };
  const { kubeconfig, master, allowedAddresses, followsClusterVersion } = config;
  const onVersion = (version: string | undefined): void => {
    if (servesExternalIPs({}, version) !== false) return;
    log.warn("externalIPs of Services are not served, as by kube-proxy of this cluster's version", { version, hint: EXTERNAL_IPS_HINT });
    store.limitAddresses({ ...allowedAddresses, externalIPs: [] });
  };
  const source = openSource(spec, {
    nodeName,
    kubeconfig,
    master,
    env: env.variables,
    clock,
    log,
    random: Math.random,
    report,
    onHealth,
    onHeard,
    requestMetrics,
    events,
    ...(followsClusterVersion ? { onVersion } : {}),
  });
  await source.run(sink, signal);
}
