import { objectId } from "../contract/backend.ts";
import type { Backend, Delta, KernelObject, LeftObjects, Outcome, Plan, Turn } from "../contract/backend.ts";
import { demandObserved, demandOutcome } from "../contract/check-module.ts";
import { plainWords } from "../contract/plain-words.ts";
import { operatingError, ProxyError } from "../model/errors.ts";
import type { Drifted, Ledger } from "./ledger.ts";
import type { IPFamily } from "../model/api-objects.ts";
import type { Clock, Log } from "../contract/world.ts";

/** How many objects were brought into force and taken away, and how many there was no time for. */
export interface AppliedCount {
  readonly put: number;
  readonly removed: number;
  readonly deferred: number;
}

/** Objects that an error names. */
const NAMED_MAX = 3;

/** Objects that a finding names. */
const FOUND_MAX = 3;

const NOTHING_FOUND: Findings = { hasLooked: false, lookingMs: 0, hasRepaired: false, drifted: 0, driftedSome: [] };

/** Nothing was done, and nothing had to be. */
const NOTHING_APPLIED: AppliedCount = { put: 0, removed: 0, deferred: 0 };

/** What came of looking at the host. */
export interface Findings {
  /** It was looked at. */
  readonly hasLooked: boolean;
  /** What that took, in ms. */
  readonly lookingMs: number;
  /** What somebody was seen to leave of objects was believed, without looking. */
  readonly hasRepaired: boolean;
  /** How many objects were otherwise than we had left them. */
  readonly drifted: number;
  /** What was done to some of them, for people: `removed element … of map … (shop/cart:http)`. */
  readonly driftedSome: readonly string[];
}

/** What a link works with. */
export interface HostLinkOptions<H, K extends KernelObject, S> {
  readonly backend: Backend<H, K, S>;
  readonly ledger: Ledger<K>;
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Called with each plan as text instead of applying it. */
  readonly dryRun?: ((text: string) => void) | undefined;
  /** How long a backend should take at most before it defers the rest, in ms. */
  readonly turnMs: number;
}

/**
 * Carries a ledger's difference to the host, and looks at the host where what the ledger believes of it may be wrong.
 *
 * Edges: it may be wrong at first, after {@link HostLink.distrust}, and after an application that threw.
 */
export class HostLink<H, K extends KernelObject, S> {
  readonly #options: HostLinkOptions<H, K, S>;
  #isKnown = false;
  /** The host was looked at once, and no application has thrown since: only a foreign hand can have made the ledger wrong. */
  #isOurs = false;
  #findings: Findings = NOTHING_FOUND;

  constructor(options: HostLinkOptions<H, K, S>) {
    this.#options = options;
  }

  /** Nothing speaks against what the ledger believes: the next application doesn't look. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** What came of looking since this was asked last. */
  drainFindings(): Findings {
    const findings = this.#findings;
    this.#findings = NOTHING_FOUND;
    return findings;
  }

  /** Somebody left so much of what the host held. Where everything is compared anyway, that finds it. */
  trust(left: LeftObjects): void {
    if (!this.#isKnown) return;
    if (left !== "nothing" && "covers" in left && !left.isCurrent()) return this.distrust();
    this.#found(this.#options.ledger.trust(left));
    this.#findings = { ...this.#findings, hasRepaired: true };
  }

  #found(drifted: readonly Drifted<K>[]): void {
    const { driftedSome } = this.#findings;
    const reported = drifted.slice(0, FOUND_MAX - driftedSome.length).map((one) => this.#textOf(one));
    this.#findings = { ...this.#findings, drifted: this.#findings.drifted + drifted.length, driftedSome: [...driftedSome, ...reported] };
  }

  /** What was done to what, in the words of people who ask about a packet, and to which of many rows it belongs. */
  #textOf({ id, fate, object, found }: Drifted<K>): string {
    const { backend, ledger } = this.#options;
    const { what, isGone } = backend.describe?.(object, found) ?? plainWords(object);
    const [row, ...others] = ledger.ownersOf([id]);
    const more = others.length === 0 ? "" : ` and ${others.length} more`;
    return `${isGone === true ? "removed" : fate} ${what}${row === undefined ? "" : ` (${row}${more})`}`;
  }

  /** Look at the host before the next application. */
  distrust(): void {
    this.#isKnown = false;
  }

  /**
   * Bring the host in step with the ledger, as far as that can be done in a turn. Objects that failed by themselves are in
   * {@link Ledger.failed}, those there was no time for in {@link Ledger.deferred}, everything else is in force.
   * @throws {ProxyError} what the host failed with: look again then. What else is thrown is a defect of the backend.
   */
  async apply(signal: AbortSignal): Promise<AppliedCount> {
    const { backend, clock, dryRun, ledger, turnMs } = this.#options;
    if (!this.#isKnown) {
      // Before the reading: an audit asked for meanwhile must not be forgotten.
      this.#isKnown = true;
      await this.#look(signal);
    }
    const delta = ledger.delta(clock.nowMs());
    if (delta.put.length + delta.remove.length + delta.lingering.length === 0) return NOTHING_APPLIED;
    const plan = backend.plan(delta);
    let outcome: Outcome<K> = {};
    if (dryRun === undefined) {
      this.#isOurs = false;
      outcome = await applied(backend, plan, signal, { untilMs: clock.nowMs() + turnMs });
      demandOutcome(outcome, delta);
      this.#isOurs = true;
    } else dryRun(backend.explain?.(plan) ?? JSON.stringify(plan, undefined, 2));
    ledger.commit(delta, outcome, clock.nowMs());
    return countOf(delta, outcome);
  }

  /**
   * Read what the host holds. Where that can't be done there any more (`host_unsupported`) and nothing of ours failed, what we did is taken to
   * be there: following what changes is worth more than finding what a foreign hand undid.
   */
  async #look(signal: AbortSignal): Promise<void> {
    const { backend, clock, family, ledger, log } = this.#options;
    const sinceMs = clock.nowMs();
    try {
      const observed = await backend.observe(signal);
      demandObserved(observed);
      // Only what nobody but a foreign hand can have done counts.
      if (this.#isOurs) this.#found(ledger.differencesTo(observed));
      ledger.adopt(observed);
      this.#findings = { ...this.#findings, hasLooked: true, lookingMs: this.#findings.lookingMs + clock.nowMs() - sinceMs };
      this.#isOurs = true;
    } catch (error) {
      if (!this.#isOurs || !ProxyError.is(error, "host_unsupported")) return rethrow(error);
      log.warn("the host can't be looked at; what was put there is taken to be there", { family, error: error.message });
    }
  }
}

/** Have a plan carried out. @throws {ProxyError} what the host failed with. @throws {Error} a defect of the backend. */
async function applied<H, K extends KernelObject, S>(
  backend: Backend<H, K, S>,
  plan: Plan<S>,
  signal: AbortSignal,
  turn: Turn,
): Promise<Outcome<K>> {
  try {
    return await backend.apply(plan, signal, turn);
  } catch (error) {
    return rethrow(error);
  }
}

/** Throw what a backend's dealings with the host threw: as an operating error where it is one. */
function rethrow(cause: unknown): never {
  throw operatingError(cause) ?? cause;
}

/** @throws {ProxyError} `timed_out` when all was deferred: to plan that again at once would go on for ever. */
function countOf<K extends KernelObject>(delta: Delta<K>, { failed, deferred, lingering }: Outcome<K>): AppliedCount {
  const { put, remove } = delta;
  if (deferred === undefined || deferred.size === 0) {
    if (failed === undefined || failed.size === 0) return { put: put.length, removed: remove.length, deferred: 0 };
  }
  const isTried = (object: K): boolean => deferred?.has(objectId(object)) !== true || failed?.has(objectId(object)) === true;
  const isDone = (object: K): boolean => isTried(object) && failed?.has(objectId(object)) !== true;
  const wanted = put.map(({ after }) => after);
  const due = delta.lingering.map(({ object }) => object);
  const untried = [...wanted, ...remove, ...due].filter((object) => !isTried(object));
  // What lingers on is no progress: it may do so for ever.
  const staying = new Set(lingering?.map(({ object }) => objectId(object)));
  const hasProgressed =
    wanted.some(isTried) || remove.some(isTried) || due.some((object) => isTried(object) && !staying.has(objectId(object)));
  if (untried.length > 0 && !hasProgressed)
    throw new ProxyError("timed_out", "the backend deferred everything it was to do", {
      object: untried.slice(0, NAMED_MAX).map(objectId).join(", "),
      hint: "it has to do at least one thing in each turn",
    });
  return { put: wanted.filter(isDone).length, removed: remove.filter(isDone).length, deferred: untried.length };
}
