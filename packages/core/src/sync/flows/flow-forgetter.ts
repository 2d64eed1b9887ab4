import type { Backend, KernelObject } from "../../contract/backend.ts";
import { destinationKey } from "./conntrack.ts";
import { operatingError, ProxyError } from "../../model/errors.ts";
import type { IPFamily } from "../../model/api-objects.ts";
import type { SyncObserver } from "../observer.ts";
import type { Clock, FlowFilter, Log } from "../../contract/world.ts";

/** What forgetting needs. */
export interface FlowForgetterOptions {
  readonly backend: Pick<Backend<unknown, KernelObject, unknown>, "forgetFlows">;
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: SyncObserver;
}

/** What the backend is forgetting now. */
interface Batch {
  readonly flows: readonly FlowFilter[];
  readonly stop: AbortController;
}

/**
 * Has the backend forget connections beside the syncs, one batch at a time.
 *
 * Edges: what arrives while a batch runs is merged into the next; a failure is logged, never fails a sync, and what it
 * left is tried again after the next one. Flows are judged by rows in force: see {@link FlowForgetter.postpone}.
 */
export class FlowForgetter {
  readonly #options: FlowForgetterOptions;
  readonly #waiting = new WaitingFlows();
  /** Not to be judged before the sync that is under way has succeeded. */
  readonly #postponed = new WaitingFlows();
  #batch: Batch | undefined;
  /** What the backend threw that is no operating error: whoever asks next, ends with it. */
  #defect: { readonly error: unknown } | undefined;
  #isStopped = false;
  #running: Promise<void> | undefined;

  constructor(options: FlowForgetterOptions) {
    this.#options = options;
  }

  /**
   * A sync succeeded: have these forgotten soon, and what could not be before; returns at once.
   *
   * @param changing destinations that it left undone in part, as {@link FlowForgetter.postpone} has them: nothing is forgotten there yet
   * @throws a backend's defect, once it has shown.
   */
  forget(flows: readonly FlowFilter[], changing: Iterable<string> = []): void {
    if (this.#defect !== undefined) throw this.#defect.error;
    if (this.#options.backend.forgetFlows === undefined || this.#isStopped) return;
    const disputed = new Set(changing);
    for (const flow of [...this.#postponed.drain(), ...flows])
      (disputed.has(destinationKey(flow)) ? this.#postponed : this.#waiting).add(flow);
    if (this.#waiting.size > 0) this.#running ??= this.#run();
  }

  /**
   * A sync is about to change what is answered at these destinations: choose no more flows there until the next {@link FlowForgetter.forget}.
   *
   * A batch that looks at them is stopped: it would judge flows that the new rules have just let in by the rows of before. The rest of it
   * begins anew without them, so whoever changes all the time keeps nobody else's flows alive.
   *
   * Shape: keys as {@link destinationKey} makes them; only read when there is something to withhold.
   */
  postpone(destinations: Iterable<string>): void {
    if (this.#waiting.size === 0 && this.#batch === undefined) return;
    const disputed = new Set(destinations);
    const isDisputed = (flow: FlowFilter): boolean => disputed.has(destinationKey(flow));
    const batch = this.#batch;
    if (batch?.stop.signal.aborted === false && batch.flows.some(isDisputed)) {
      this.#putBack(batch);
      batch.stop.abort(new ProxyError("canceled", "the rows are changing"));
    }
    const waiting = this.#waiting.drain();
    for (const flow of waiting) (isDisputed(flow) ? this.#postponed : this.#waiting).add(flow);
  }

  /** Resolve when nothing is left to forget; once `signal` aborts, stop what runs and begin nothing more. */
  async idle(signal: AbortSignal): Promise<void> {
    const stop = (): void => {
      this.#isStopped = true;
      this.#batch?.stop.abort(signal.reason);
    };
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    await this.#running;
    signal.removeEventListener("abort", stop);
    if (this.#defect !== undefined) throw this.#defect.error;
  }

  async #run(): Promise<void> {
    const { backend, clock, family, log, observer } = this.#options;
    while (this.#waiting.size > 0 && !this.#isStopped) {
      const batch: Batch = { flows: this.#waiting.drain(), stop: new AbortController() };
      this.#batch = batch;
      const startMs = clock.nowMs();
      try {
        const count = (await backend.forgetFlows?.(batch.flows, batch.stop.signal)) ?? 0;
        observer.flowsForgotten({ family, count, durationMs: clock.nowMs() - startMs });
      } catch (error) {
        // What we stopped has failed as it should, and waits already.
        if (batch.stop.signal.aborted) continue;
        const failure = operatingError(error);
        if (failure === undefined) this.#defect = { error };
        else log.warn("stale connections could not be forgotten", { family, error: failure.message });
        this.#putBack(batch);
        break;
      } finally {
        this.#batch = undefined;
      }
    }
    this.#running = undefined;
  }

  /** What a batch left undone comes before what was said since. */
  #putBack({ flows }: Batch): void {
    for (const flow of [...flows, ...this.#waiting.drain()]) this.#waiting.add(flow);
  }
}

/** Flows to forget, by destination, and apart from them those that only concern some answerers. */
class WaitingFlows {
  readonly #flows = new Map<string, FlowFilter>();

  get size(): number {
    return this.#flows.size;
  }

  /** Merge one more in: a later word on a whole destination takes the place of all earlier ones. */
  add(flow: FlowFilter): void {
    const destination = destinationKey(flow);
    const part = `${destination} only`;
    if (flow.only === undefined) {
      this.#flows.delete(part);
      this.#flows.set(destination, flow);
    } else {
      const before = this.#flows.get(part)?.only ?? [];
      this.#flows.set(part, { ...flow, only: [...new Set([...before, ...flow.only])] });
    }
  }

  /** Take all out. */
  drain(): readonly FlowFilter[] {
    const flows = [...this.#flows.values()];
    this.#flows.clear();
    return flows;
  }
}
