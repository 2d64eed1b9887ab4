import { createFeed, ProxyError, Store, type Clock, type Feed, type IPFamily, type Issue, type Log, type ObjectKind } from "@turnout/core";
import type { RunConfig } from "@turnout/client";
import { openSource, parseSourceSpec } from "@turnout/server";
import type { Environment } from "./environment.ts";

/** A store that a source fills, and views of it. */
export interface NodeStateOptions {
  /** `kube` or `file:PATH`. */
  readonly source: string;
  readonly config: RunConfig;
  readonly env: Environment;
  readonly clock: Clock;
  readonly log: Log;
  readonly onIssue?: (issue: Issue) => void;
  /** Hears of every object that comes or goes. */
  readonly onObject?: (kind: ObjectKind) => void;
  /** Hears, once, that the source has said everything it knows. */
  readonly onSynced?: () => void;
}

/** kube-proxy waits as long for its own Node object. @source semantics.md 5.1 */
const NODE_WAIT_MS = 300_000;

/** The node state of one node, computed in this process. */
export class NodeStateSource {
  readonly store: Store;
  readonly #options: NodeStateOptions;
  readonly #report: (issue: Issue) => void;

  constructor(options: NodeStateOptions) {
    this.#options = options;
    this.#report = (issue) => {
      options.onIssue?.(issue);
      options.log.warn(issue.what, { object: issue.object, hint: issue.hint });
    };
    this.store = new Store({ report: this.#report });
  }

  /** What is reported about objects goes here too. */
  get report(): (issue: Issue) => void {
    return this.#report;
  }

  /** Follow one family. */
  feed(family: IPFamily): Feed {
    const { nodeName, settings, bindAddress } = this.#options.config;
    return createFeed(this.store, {
      nodeName,
      family,
      settings,
      report: this.#report,
      ...(bindAddress === undefined ? {} : { bindAddress }),
    });
  }

  /**
   * Fill the store while `body` runs; whichever fails first ends the other.
   * @throws {ProxyError} what the source or `body` failed with.
   */
  async during(body: (signal: AbortSignal) => Promise<void>, signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const either = AbortSignal.any([signal, stop.signal]);
    let failure: Error | undefined;
    const guarded = async (task: Promise<void>): Promise<void> => {
      try {
        await task;
      } catch (error) {
        failure ??= error instanceof Error ? error : new Error("a task failed", { cause: error });
        stop.abort();
      }
    };
    const source = guarded(this.#runSource(either));
    await guarded(body(either));
    stop.abort();
    await source;
    if (failure !== undefined) throw failure;
  }

  /**
   * Wait until the own Node object says what rules need: addresses, and pod CIDRs in mode NodeCIDR.
   * @throws {ProxyError} `timed_out` after 5 minutes.
   * @source semantics.md 5.1
   */
  async nodeKnown(signal: AbortSignal): Promise<void> {
    const { clock, config, log } = this.#options;
    if (this.#isNodeKnown() || signal.aborted) return;
    log.info("waiting for this node's Node object", { node: config.nodeName });
    const settled = new AbortController();
    const stopHearing = this.store.onChange(() => {
      if (this.#isNodeKnown()) settled.abort();
    });
    await clock.sleep(NODE_WAIT_MS, AbortSignal.any([signal, settled.signal]));
    stopHearing();
    if (this.#isNodeKnown() || signal.aborted) return;
    throw new ProxyError("timed_out", "the Node object did not appear with the addresses and pod CIDRs it needs", {
      object: `Node ${config.nodeName}`,
      hint: "check --node-name and the node's status",
    });
  }

  #isNodeKnown(): boolean {
    const node = this.store.node(this.#options.config.nodeName);
    const needsPodCIDRs = this.#options.config.settings.detectLocal.mode === "NodeCIDR";
    return node !== undefined && node.addresses.length > 0 && (!needsPodCIDRs || node.podCIDRs.length > 0);
  }

  async #runSource(signal: AbortSignal): Promise<void> {
    const { source, config, env, clock, log, onObject, onSynced } = this.#options;
    const { store } = this;
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
    };
    const { nodeName, kubeconfig, master } = config;
    const spec = parseSourceSpec(source);
    if (spec.kind === "api")
      throw new ProxyError("host_unsupported", "this version has no node-state API to read from", { object: source });
    await openSource(spec, {
      nodeName,
      kubeconfig,
      master,
      env: env.variables,
      clock,
      log,
      random: Math.random,
      report: this.#report,
    }).run(sink, signal);
  }
}

/**
 * Run `body` with a limit on its time.
 * @throws {ProxyError} `timed_out` naming `what` when the limit is reached first.
 */
export async function withTimeout(
  what: string,
  ms: number,
  clock: Clock,
  signal: AbortSignal,
  body: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const error = (cause?: unknown): ProxyError =>
    new ProxyError("timed_out", `nothing complete within ${ms / 1000} s`, {
      object: what,
      hint: "is it reachable? -v shows more; --timeout waits longer",
      cause,
    });
  const late = new AbortController();
  const done = new AbortController();
  const watchClock = async (): Promise<void> => {
    await clock.sleep(ms, AbortSignal.any([signal, done.signal]));
    if (!done.signal.aborted && !signal.aborted) late.abort();
  };
  const timer = watchClock();
  try {
    await body(AbortSignal.any([signal, late.signal]));
  } catch (cause) {
    throw late.signal.aborted ? error(cause) : cause;
  } finally {
    done.abort();
    await timer;
  }
  if (late.signal.aborted) throw error();
}
