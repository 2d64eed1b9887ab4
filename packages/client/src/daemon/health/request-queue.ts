import type { Clock } from "@turnout/core";
import { TimeBudget } from "../../process/time-budget.ts";

/** What the requests of one queue may take of the time of this process, which its syncs need as well. */
const SHARE = 0.1;
const CREDIT_MAX_MS = 100;
/** One large or slow answer keeps the next one waiting for no longer. */
const WAIT_MAX_MS = 1_000;
/** What a request costs at least, with its connection. */
const REQUEST_MS = 0.1;

/** Makes one answer; resolves when it is sent, and never rejects. */
type Answer = () => Promise<void>;

/** Who asks: clients take turns by network, and within one by address. */
export interface Asker {
  readonly network: string;
  readonly address: string;
}

/**
 * Answers requests within a share of the time, in turn by the clients' networks and addresses: a client that asks a lot waits, and others don't wait for it.
 *
 * Edges: one answer is made at a time, and its whole time counts, with what it waits for; after {@link WAIT_MAX_MS} the next one begins all the same.
 */
export class RequestQueue {
  readonly #clock: Clock;
  readonly #budget: TimeBudget;
  /** By network and address; the first of each is next. */
  readonly #waiting = new Map<string, Map<string, Set<Answer>>>();
  #isDraining = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#budget = new TimeBudget({ share: SHARE, creditMaxMs: CREDIT_MAX_MS, waitMaxMs: WAIT_MAX_MS }, clock);
  }

  /** Answer a client's request when its turn comes; returns how to drop it while it waits. */
  add({ network, address }: Asker, answer: Answer): () => void {
    const ofNetwork = this.#waiting.get(network) ?? new Map<string, Set<Answer>>();
    const ofAddress = ofNetwork.get(address) ?? new Set<Answer>();
    this.#waiting.set(network, ofNetwork.set(address, ofAddress.add(answer)));
    if (!this.#isDraining) void this.#drain();
    return () => this.#drop({ network, address }, answer);
  }

  async #drain(): Promise<void> {
    this.#isDraining = true;
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      const { waitMs } = this.#budget;
      if (waitMs > 0) await this.#clock.sleep(Math.max(1, waitMs), NEVER);
      else await this.#run(next.asker, next.answer);
    }
    this.#isDraining = false;
  }

  #next(): { readonly asker: Asker; readonly answer: Answer } | undefined {
    for (const [network, ofNetwork] of this.#waiting)
      for (const [address, ofAddress] of ofNetwork) for (const answer of ofAddress) return { asker: { network, address }, answer };
    return undefined;
  }

  /** Answer one that waits; those of its network and of its address come last now. */
  async #run(asker: Asker, answer: Answer): Promise<void> {
    const ofNetwork = this.#waiting.get(asker.network);
    const ofAddress = ofNetwork?.get(asker.address);
    this.#drop(asker, answer);
    if (ofNetwork !== undefined && this.#waiting.delete(asker.network)) this.#waiting.set(asker.network, ofNetwork);
    if (ofAddress !== undefined && ofNetwork?.delete(asker.address) === true) ofNetwork.set(asker.address, ofAddress);
    const startMs = this.#clock.nowMs();
    const over = new AbortController();
    await Promise.race([answer(), this.#clock.sleep(WAIT_MAX_MS, over.signal)]);
    over.abort();
    this.#budget.spend(Math.max(REQUEST_MS, this.#clock.nowMs() - startMs));
  }

  #drop({ network, address }: Asker, answer: Answer): void {
    const ofNetwork = this.#waiting.get(network);
    const ofAddress = ofNetwork?.get(address);
    ofAddress?.delete(answer);
    if (ofAddress?.size === 0) ofNetwork?.delete(address);
    if (ofNetwork?.size === 0) this.#waiting.delete(network);
  }
}

const NEVER = new AbortController().signal;
