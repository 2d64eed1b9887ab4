import { ProxyError, type Clock, type Log, type ObjectKind } from "@turnout/core";
import { backoffMs, Retries, type Problem } from "./backoff.ts";
import { InitialEvents } from "./initial-events.ts";
import type { KubeClient } from "./kube-client.ts";
import { KnownObjects } from "./known-objects.ts";
import { LineSplitter } from "./line-splitter.ts";
import { readList } from "./list-page.ts";
import type { ObjectSink } from "../source/object-sink.ts";
import { AT_ONCE, lacksWatchList, outcomeOf, watchListFailure, type Outcome, type Pause } from "./outcome.ts";
import { OutageLog, type LoggedProblems } from "./outage-log.ts";
import { keyOf } from "../source/raw-object.ts";
import type { ReflectorTimings } from "./reflector-timings.ts";
import { HTTP, refusalError, type Refusal } from "./refusal.ts";
import type { Selection } from "../source/selectors.ts";
import { parseWatchEvent } from "./watch-event.ts";

/** What a reflector works with. */
export interface ReflectorOptions {
  readonly kind: ObjectKind;
  readonly selection: Selection;
  readonly client: KubeClient;
  readonly sink: ObjectSink;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
  readonly timings: ReflectorTimings;
  /** Shared by the reflectors of one server. */
  readonly said: LoggedProblems;
  /** Ask for the first objects by watch (sendInitialEvents); lists take its place where that doesn't work. */
  readonly prefersWatchList: boolean;
  /** An API server without this API, or without the right to it, counts as an empty list. */
  readonly isOptional: boolean;
  /** Hears what ails a part of the source (a kind of object, or `files`) when a try failed, and "" whenever it works. */
  readonly onHealth?: ((part: string, problem: string) => void) | undefined;
  /** Hears of each list, change and bookmark. */
  readonly onHeard?: ((kind: ObjectKind) => void) | undefined;
}

const PAGE_LIMIT = 500;

/**
 * Keeps a sink equal to one kind of the API server's objects: lists once, then watches, and recovers from everything.
 *
 * Shape: remembers keys and resourceVersions only; the objects live in the sink.
 * Edges: an outage removes nothing; after a relist the vanished ones go. A throw of the sink is a programmer's error and ends `run`.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  readonly #known: KnownObjects;
  readonly #outage: OutageLog;
  /** Where the next watch begins; "" asks for a list. */
  #revision = "";
  #isSynced = false;
  /** Until then lists are used, as a watch-list did not work. */
  #listsUntilMs = 0;
  /** After a 410 the watch cache is not believed: a quorum read, "" instead of "0". */
  #listsFromCache = true;
  /** A continue token that expired is not tried again: the next list is whole. */
  #pages = true;
  /** The last request was a watch-list, and its first objects did not become complete. */
  #isInWatchList = false;
  readonly #retries: Retries;
  /** It listed anew since a watch last lived: a server that forgets at once is not asked for everything each time. */
  #hasStartedOver = false;
  #openedMs: number | undefined;
  /** How often in a row the API was not there. */
  #absences = 0;

  constructor(options: ReflectorOptions) {
    this.#options = options;
    this.#known = new KnownObjects(options.kind, options.sink);
    const { clock, log, timings, said, onHealth, random } = options;
    this.#retries = new Retries(timings, random);
    this.#outage = new OutageLog(options.kind, { clock, log, remindMs: timings.remindMs, said, onHealth });
  }

  /** Deliver until `signal` aborts. Rejects only when the sink throws. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.#openedMs = undefined;
      // Before the try: credentials that come meanwhile are new to it.
      const stamp = this.#options.client.accessStamp();
      const outcome = await this.#step(signal);
      if (signal.aborted) return;
      await this.#rest(this.#react(outcome), stamp, signal);
    }
  }

  async #rest({ ms, endsWithAccess }: Pause, stamp: string, signal: AbortSignal): Promise<void> {
    const { client, clock, timings } = this.#options;
    const sliceMs = endsWithAccess ? timings.credentialsMs : ms;
    for (let leftMs = ms; leftMs > 0 && !signal.aborted; leftMs -= sliceMs) {
      await clock.sleep(Math.min(leftMs, sliceMs), signal);
      if (endsWithAccess && client.accessStamp() !== stamp) return;
    }
  }

  async #step(signal: AbortSignal): Promise<Outcome> {
    const { clock, prefersWatchList } = this.#options;
    this.#isInWatchList = false;
    try {
      if (this.#revision !== "") return await this.#watch(signal, undefined);
      if (prefersWatchList && clock.nowMs() >= this.#listsUntilMs) return await this.#watchList(signal);
      return await this.#list(signal);
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      return { is: "broken", error };
    }
  }

  /** Decide what follows from an outcome; returns how long to wait before the next request. */
  #react(outcome: Outcome): Pause {
    const { steadyMs } = this.#options.timings;
    const hasLived = this.#openedMs !== undefined && this.#options.clock.nowMs() - this.#openedMs >= steadyMs;
    if (hasLived) {
      this.#retries.reset();
      this.#hasStartedOver = false;
    }
    if (outcome.is === "listed") return AT_ONCE;
    const failure = this.#isInWatchList ? watchListFailure(outcome) : undefined;
    if (failure !== undefined) return this.#listInstead(failure, outcome);
    if (outcome.is === "refused") return this.#reactToRefusal(outcome.refusal);
    if (outcome.is === "unreached") return this.#retry("unreached", outcome.error, 0);
    if (outcome.is === "broken") return this.#retry("refused", outcome.error, 0);
    if (hasLived) return AT_ONCE;
    return this.#retry("refused", new ProxyError("feed_lost", "the API server ended the watch at once"), 0);
  }

  #reactToRefusal(refusal: Refusal): Pause {
    const { client, isOptional } = this.#options;
    const { status } = refusal;
    if (status === HTTP.gone || refusal.isFutureRevision) return this.#startOver(refusal);
    if (isOptional && (status === HTTP.notFound || status === HTTP.forbidden)) return this.#doWithout(refusal);
    if (status === HTTP.unauthorized) {
      client.refreshCredentials();
      // Tokens rotate; the new one is tried at once, and only once.
      if (this.#retries.count("unauthorized") === 0) {
        this.#retries.note("unauthorized");
        return AT_ONCE;
      }
      return this.#retry("unauthorized", refusalError(refusal), refusal.retryAfterMs);
    }
    return this.#retry("refused", refusalError(refusal), refusal.retryAfterMs);
  }

  /** All nodes may have to do so together, and a list is expensive: it is spread, unless the server has just said that it can. */
  #listInstead(error: ProxyError, outcome: Outcome): Pause {
    const { kind, log, clock, random, timings, isOptional } = this.#options;
    const isAbsent = lacksWatchList(outcome, isOptional);
    log[isAbsent ? "debug" : "info"](`${kind}: watch-list does not work, listing instead`, { error: error.message });
    this.#listsUntilMs = clock.nowMs() + timings.watchListRestMs * (0.5 + random());
    return isAbsent ? AT_ONCE : { ms: timings.listSpreadMs * random(), endsWithAccess: false };
  }

  /** A server that says it forgot where we were works: whatever failed before, it is asked for a list at once. */
  #startOver(refusal: Refusal): Pause {
    const { kind, log } = this.#options;
    if (this.#revision === "") this.#pages = false;
    this.#revision = "";
    this.#listsFromCache = false;
    if (this.#hasStartedOver) return this.#retry("refused", refusalError(refusal), refusal.retryAfterMs);
    this.#hasStartedOver = true;
    log.info(`${kind}: listing again, the API server no longer has our resourceVersion`, { message: refusal.message });
    return { ms: refusal.retryAfterMs, endsWithAccess: false };
  }

  #doWithout(refusal: Refusal): Pause {
    const { kind, log, random, timings } = this.#options;
    if (!this.#isSynced) {
      const hint = refusal.status === HTTP.notFound ? "the API server is older" : "allow list and watch in the ClusterRole";
      log.info(`${kind}: not available, going on without`, { status: refusal.status, hint });
    }
    if (refusal.status === HTTP.notFound) this.#known.deleteOthers(new Set());
    this.#revision = "";
    this.#markSynced();
    // Soon at first: an API server that has just started forbids what it will allow in a moment.
    const ms = backoffMs(++this.#absences, 0, random(), timings.backoffBaseMs, timings.missingApiMs);
    return { ms, endsWithAccess: false };
  }

  #retry(problem: Problem, error: ProxyError, retryAfterMs: number): Pause {
    this.#retries.note(problem);
    const ms = this.#retries.waitMs(problem, retryAfterMs);
    this.#outage.failed(error, ms);
    return { ms, endsWithAccess: problem !== "refused" };
  }

  async #list(signal: AbortSignal): Promise<Outcome> {
    const { kind, client, timings } = this.#options;
    const seen = new Set<string>();
    let changed = 0;
    let revision = "";
    let token = "";
    do {
      const resourceVersion = token === "" && this.#listsFromCache ? "0" : "";
      const limit = this.#pages ? String(PAGE_LIMIT) : "";
      const answer = await client.ask({ path: this.#url({ limit, continue: token, resourceVersion }), idleMs: timings.listIdleMs }, signal);
      if (answer.kind !== "open") return outcomeOf(answer);
      const page = await readList(answer.chunks, kind, (object) => {
        if (this.#known.put(object, seen)) changed++;
      });
      // All pages are of the first one's revision.
      if (revision === "") revision = page.revision;
      token = page.token;
    } while (token !== "");
    this.#complete(seen, changed, revision);
    return { is: "listed" };
  }

  /** Watch from the objects as they are, which come first. */
  async #watchList(signal: AbortSignal): Promise<Outcome> {
    const { clock, timings } = this.#options;
    const initial = new InitialEvents(clock, timings.watchListIdleMs);
    this.#isInWatchList = true;
    try {
      return await this.#watch(AbortSignal.any([signal, initial.silent]), initial);
    } catch (error) {
      throw signal.aborted ? error : (initial.timeout ?? error);
    } finally {
      initial.stop();
      this.#isInWatchList = !initial.isComplete;
    }
  }

  /** Watch from the known revision, or with `initial` from the objects as they are. */
  async #watch(signal: AbortSignal, initial: InitialEvents | undefined): Promise<Outcome> {
    const { client, timings, clock, random } = this.#options;
    const path = this.#url({
      watch: "true",
      allowWatchBookmarks: "true",
      timeoutSeconds: String(Math.round(timings.watchSeconds * (1 + random()))),
      resourceVersion: this.#revision,
      ...(initial && { sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" }),
    });
    const answer = await client.ask({ path, idleMs: timings.watchIdleMs, isWatch: true }, signal);
    if (answer.kind !== "open") return outcomeOf(answer);
    this.#retries.answered();
    this.#openedMs = clock.nowMs();
    if (initial === undefined) this.#outage.recovered();
    const lines = new LineSplitter();
    for await (const chunk of answer.chunks) {
      for (const line of lines.push(chunk)) {
        const refusal = this.#receive(line, initial);
        if (refusal !== undefined) return { is: "refused", refusal };
      }
    }
    if (initial?.isComplete === false) throw new ProxyError("feed_lost", "the watch ended before its first list was complete");
    return { is: "ended" };
  }

  /** Take one line of a watch; `initial` is what comes first, of a watch-list. */
  #receive(line: string, initial: InitialEvents | undefined): Refusal | undefined {
    const { kind, onHeard } = this.#options;
    const event = parseWatchEvent(line, kind);
    if (event.type === "error") return event.refusal;
    onHeard?.(kind);
    const listing = initial?.isComplete === false ? initial : undefined;
    listing?.heard(event.type === "put" && event.isAdded);
    if (event.type === "put" && this.#known.put(event.object, listing?.seen) && listing !== undefined) listing.changed++;
    if (event.type === "delete") {
      listing?.seen.delete(keyOf(event.object));
      this.#known.delete(keyOf(event.object));
    }
    if (listing === undefined) this.#revision = event.revision;
    else if (event.type === "bookmark" && event.endsInitialEvents) {
      listing.complete();
      this.#complete(listing.seen, listing.changed, event.revision);
    }
    return undefined;
  }

  #complete(seen: ReadonlySet<string>, changed: number, revision: string): void {
    const { kind, log, onHeard } = this.#options;
    onHeard?.(kind);
    const vanished = this.#known.deleteOthers(seen);
    this.#revision = revision;
    this.#pages = true;
    this.#absences = 0;
    this.#retries.answered();
    this.#outage.recovered();
    log[this.#isSynced ? "debug" : "info"](`${kind}: listed`, { objects: this.#known.size, changed, vanished, revision });
    this.#markSynced();
  }

  #markSynced(): void {
    this.#isSynced = true;
    this.#options.sink.markSynced(this.#options.kind);
  }

  #url(query: Readonly<Record<string, string>>): string {
    const { path, labelSelector, fieldSelector } = this.#options.selection;
    const given = Object.entries({ labelSelector, fieldSelector, ...query }).filter(([, value]) => value !== "");
    return `${path}?${new URLSearchParams(given).toString()}`;
  }
}
