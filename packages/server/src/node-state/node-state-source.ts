import {
  eligibilityOf,
  IssueLog,
  isNodeKnown,
  NO_NODE_KNOWN,
  NODE_WAIT_MS,
  openNodeLink,
  parseApiTarget,
  type Eligibility,
  type NodeLink,
  type TlsFiles,
} from "@turnout/client";
import { issueEvents, refuseAllowOptions, STARTING, type ProxyEvent, type RestClientMetrics, type RunConfig } from "@turnout/client/daemon";
import { createFeed, isEqual, Store, type Clock, type Feed, type IPFamily, type Issue, type Log, type ObjectKind } from "@turnout/core";
import { EventQueue } from "../kube/events/event-queue.ts";
import { parseSourceSpec, type ObjectSourceSpec, type SourceSpec } from "./source.ts";
import { fillStore, type SourceEnvironment } from "./fill-store.ts";

/** A process that ends by itself waits so long for its last events to be written. */
const LAST_EVENTS_MS = 2_000;

/** Where one node's state comes from. */
export interface NodeStateOptions {
  /** `kube`, `file:PATH` or `api:TARGET`. */
  readonly source: string;
  /** For `api:tls://…`. */
  readonly tls: TlsFiles | undefined;
  readonly config: RunConfig;
  readonly env: SourceEnvironment;
  readonly clock: Clock;
  readonly log: Log;
  /** With `api:`: a node-state server that refuses is asked again until it doesn't; default: that is an error. */
  readonly isDaemon?: boolean;
  /** With `api:`: rules are made of it, so feeds wait for a Node object that is to come; default: they don't. */
  readonly awaitsNode?: boolean;
  /** Counts what is reported about objects, and is told what about: `Service shop/cart`. */
  readonly countIssue?: (object: string) => void;
  /** Hears of every report about an object. */
  readonly onIssue?: (issue: Issue) => void;
  /** Hears of every object that comes or goes. */
  readonly onObject?: (kind: ObjectKind) => void;
  /** Hears what ails a part of the source, and "" when it is followed. */
  readonly onHealth?: (part: string, problem: string) => void;
  /** Hears of each list, change and bookmark that an API server sends of a kind. */
  readonly onHeard?: (kind: ObjectKind) => void;
  /** Hears of each request to the API server. */
  readonly requestMetrics?: RestClientMetrics;
  /** An API server gets events: of the start, and those that are told later; default: it doesn't. */
  readonly reportsEvents?: boolean;
  /** Hears, once, that the source has said everything it knows. */
  readonly onSynced?: () => void;
}

/**
 * The node state of one node: computed in this process from a store that a source fills, or had from a node-state server.
 *
 * Edges: objects, and what is wrong with them, are heard of only where the store is.
 */
export class NodeStateSource {
  readonly #options: NodeStateOptions;
  readonly #spec: SourceSpec;
  readonly #issues: IssueLog;
  readonly store: Store;
  readonly #events: EventQueue | undefined;
  #link: Promise<NodeLink> | undefined;
  /** Of this node, as far as they were heard of. */
  #addresses: readonly string[] = [];
  #eligibility: Eligibility = { isEligible: false, reason: "the node-state server has not said anything of this node yet" };

  /** @throws {ProxyError} `invalid_object` for a source that is none. */
  constructor(options: NodeStateOptions) {
    this.#options = options;
    this.#spec = parseSourceSpec(options.source);
    const { allowedAddresses } = options.config;
    if (this.#spec.kind === "api") {
      parseApiTarget(this.#spec.target, options.tls);
      refuseAllowOptions(options.config, options.log);
    }
    if (options.reportsEvents === true) {
      const names = { nodeName: options.config.nodeName, hostname: options.env.hostname };
      this.#events = new EventQueue(names, options.clock, (service) => this.store.serviceIdentity(service));
      this.notify(STARTING);
    }
    this.#issues = new IssueLog({ log: options.log, clock: options.clock, count: options.countIssue });
    this.store = new Store({ report: this.report, allowedAddresses });
    this.store.onChange((change) => {
      if (change.kind === "node") this.#noteNode(change.key);
    });
  }

  /** What is reported about objects goes here too. */
  get report(): (issue: Issue) => void {
    const { onIssue } = this.#options;
    return (issue) => {
      onIssue?.(issue);
      for (const event of issueEvents(issue)) this.notify(event);
      this.#issues.report(issue);
    };
  }

  /** Whether load balancers should send the node traffic. */
  get eligibility(): Eligibility {
    return this.#spec.kind === "api" ? this.#eligibility : eligibilityOf(this.store.node(this.#options.config.nodeName));
  }

  /** The source is complete, and has no Node object of this node. */
  get lacksNode(): boolean {
    return this.store.isSynced && !this.hasNode;
  }

  /** The store has this node's Node object; a node-state server's clients can't tell. */
  get hasNode(): boolean {
    return this.#spec.kind === "api" || this.store.node(this.#options.config.nodeName) !== undefined;
  }

  /** Have an event sent, where the source is an API server that gets events. */
  notify(event: ProxyEvent): void {
    this.#events?.put(event);
  }

  /** Follow one family. */
  feed(family: IPFamily): Feed {
    if (this.#spec.kind === "api") {
      const link = (this.#link ??= this.#openLink(this.#spec.target));
      return { next: async (signal) => (await link).feed(family).next(signal) };
    }
    const { nodeName, settings, bindAddress } = this.#options.config;
    return createFeed(this.store, {
      nodeName,
      family,
      settings,
      report: this.report,
      ...(bindAddress === undefined ? {} : { bindAddress }),
    });
  }

  /**
   * Have the source run while `body` does; whichever fails first ends the other.
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
    const source = this.#spec.kind === "api" ? Promise.resolve() : guarded(this.#fill(this.#spec, either));
    await guarded(this.#ending(body(either), signal));
    stop.abort();
    await source;
    await (await this.#link)?.close();
    this.#issues.close();
    if (failure !== undefined) throw failure;
  }

  /** What ends with a failure may have told of it: the API server is to hear that first. */
  async #ending(body: Promise<void>, signal: AbortSignal): Promise<void> {
    try {
      await body;
    } catch (error) {
      if (!signal.aborted) await this.#events?.flushed(LAST_EVENTS_MS);
      throw error;
    }
  }

  /**
   * Wait until the own Node object says what rules need: addresses, and pod CIDRs in mode NodeCIDR. Half a minute at most: Services are
   * followed without it rather than not.
   */
  async nodeKnown(signal: AbortSignal): Promise<void> {
    const { clock, config, log } = this.#options;
    if (this.#isNodeKnown() || signal.aborted) return;
    log.info("waiting for this node's Node object", { node: config.nodeName });
    const known = new AbortController();
    const stopHearing = this.store.onChange(() => {
      if (this.#isNodeKnown()) known.abort();
    });
    await clock.sleep(NODE_WAIT_MS, AbortSignal.any([signal, known.signal]));
    stopHearing();
    if (this.#isNodeKnown() || signal.aborted) return;
    // An API server that is away is told of by itself.
    if (this.store.isSynced) log.warn(NO_NODE_KNOWN, { node: config.nodeName, hint: "check --node-name and the node's status" });
  }

  #noteNode(name: string): void {
    const { config, log } = this.#options;
    const node = this.store.lastingNode(name);
    if (name !== config.nodeName || node === undefined) return;
    const before = this.#addresses;
    this.#addresses = node.addresses;
    if (!this.hasNode) return log.warn("this node's Node object is gone, what it said last is still used", { node: name });
    if (before.length === 0 || isEqual(before, node.addresses)) return;
    log.info("this node's addresses changed, the new ones are used", { node: name, before, addresses: node.addresses });
  }

  #isNodeKnown(): boolean {
    const { nodeName, settings } = this.#options.config;
    return isNodeKnown(this.store.node(nodeName), settings);
  }

  async #fill(spec: ObjectSourceSpec, signal: AbortSignal): Promise<void> {
    const { config, env, clock, log, onObject, onHealth, onHeard, onSynced, requestMetrics } = this.#options;
    const hearers = { report: this.report, onObject, onHealth, onHeard, onSynced, requestMetrics };
    await fillStore(this.store, { spec, nodeName: config.nodeName, config, env, clock, log, events: this.#events, ...hearers }, signal);
  }

  async #openLink(target: string): Promise<NodeLink> {
    const { config, env, clock, log, tls, isDaemon, awaitsNode, onHealth } = this.#options;
    const failOnRefusal = isDaemon !== true;
    const { nodeName, settings, bindAddress } = config;
    const onEligibility = (eligibility: Eligibility): void => void (this.#eligibility = eligibility);
    return await openNodeLink({
      target,
      tls,
      nodeName,
      settings,
      bindAddress,
      version: `turnout ${env.version}`,
      clock,
      log,
      onEligibility,
      onHealth,
      failOnRefusal,
      awaitsNode,
    });
  }
}
