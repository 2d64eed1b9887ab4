import type { ProxyError } from "../model/errors.ts";

/**
 * What came of the last attempt at objects that are not in force: it failed, or there was no time for one.
 *
 * Shape: an object that failed rests until it changes or is retried. What the host holds of it is in doubt until it is put, removed or looked at.
 */
export class Attempts<K> {
  readonly #failed = new Map<string, ProxyError>();
  readonly #doubtful = new Map<string, K>();
  readonly #deferred = new Set<string>();

  /** Objects that the host refused, and what it said. */
  get failed(): ReadonlyMap<string, ProxyError> {
    return this.#failed;
  }

  /** Objects that there was no time for. */
  get deferred(): ReadonlySet<string> {
    return this.#deferred;
  }

  /** Whether an object rests. */
  hasFailed(id: string): boolean {
    return this.#failed.size > 0 && this.#failed.has(id);
  }

  /** What was tried last of an object that failed: the host may hold it, what it held before, or something between. Undefined: there is no doubt. */
  unconfirmed(id: string): K | undefined {
    return this.#doubtful.size === 0 ? undefined : this.#doubtful.get(id);
  }

  /** There was no time for it. */
  defer(id: string): void {
    this.#deferred.add(id);
  }

  /** The host refused it; `tried`: what was to be there, or to go. */
  fail(id: string, error: ProxyError, tried: K | undefined): void {
    this.#deferred.delete(id);
    this.#failed.set(id, error);
    if (tried !== undefined) this.#doubtful.set(id, tried);
  }

  /** The host did what it was asked. */
  succeed(id: string): void {
    this.#deferred.delete(id);
    this.#doubtful.delete(id);
  }

  /** What came of it before counts no more, as something else may be wanted now. What the host holds is as doubtful as before. */
  forget(id: string): void {
    this.#failed.delete(id);
    this.#deferred.delete(id);
  }

  /** Try again whatever failed. */
  retry(): void {
    this.#failed.clear();
  }

  /** The host was looked at: nothing is in doubt. */
  clearUnconfirmed(): void {
    this.#doubtful.clear();
  }
}
