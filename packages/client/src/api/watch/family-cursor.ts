import { ProxyError, Waiters, type ChangeSet, type IPFamily, type NodeSettings } from "@turnout/core";
import type { ChangeSet as WireChangeSet, Ask } from "../../gen/turnout/node/v1/node.ts";
import { DeliveryReader, type Delivery } from "../wire/change-set-codec.ts";
import type { PackedReader } from "../wire/packed-rows.ts";
import { FAMILY_WORDS, notUnderstood } from "../wire/words.ts";

/** What one family's consumer holds, and what it waits for; outlives the streams it comes over. */
export class FamilyCursor {
  readonly #family: IPFamily;
  readonly #reader: DeliveryReader;
  #instance = "";
  #revision = 0;
  #isAsked = false;
  /** What is asked for is a difference that is wanted no more. */
  #isOutdated = false;
  /** Arrived after whoever asked had gone. */
  #ready: ChangeSet | undefined;
  readonly #waiters = new Waiters<ChangeSet>();

  constructor(family: IPFamily, settings: NodeSettings, packed?: PackedReader) {
    this.#family = family;
    this.#reader = new DeliveryReader(family, settings, packed);
  }

  /** Somebody waits, and nobody asked for them yet. */
  get isDue(): boolean {
    return this.#waiters.size > 0 && !this.#isAsked;
  }

  /** Take what is there or wait for it. @throws {ProxyError} `canceled` on abort. */
  async next(signal: AbortSignal): Promise<ChangeSet> {
    const ready = this.#ready;
    this.#ready = undefined;
    if (ready !== undefined) return ready;
    if (this.#waiters.size > 0) throw new Error("a feed has one consumer");
    const changes = await this.#waiters.wait(signal);
    if (changes === undefined) throw new ProxyError("canceled", "waiting for node state was stopped");
    return changes;
  }

  /** The request for what changed since. */
  ask(): Ask {
    this.#isAsked = true;
    this.#isOutdated = false;
    return { family: FAMILY_WORDS.write(this.#family), instance: this.#instance, revision: this.#revision };
  }

  /** The stream is gone, and with it the request and what was on its way. */
  reset(): void {
    this.#isAsked = false;
    this.#reader.reset();
  }

  /** Whoever waits waits in vain. */
  fail(error: ProxyError): void {
    this.#waiters.reject(error);
  }

  /** Want everything again. An answer that is on its way is passed over, unless it is everything. */
  forget(): void {
    this.#instance = "";
    this.#revision = 0;
    this.#ready = undefined;
    this.#isOutdated = this.#isAsked;
  }

  /** Hand over what came another way, by which this API's revisions mean nothing any more. */
  give(changes: ChangeSet): void {
    this.#instance = "";
    this.#revision = 0;
    this.#writer(changes);
  }

  /**
   * Take a part of an answer; gives the delivery when it is whole.
   *
   * Edges: one that changes nothing a consumer sees (eligibility alone, or to what was forgotten) wakes nobody, and is due again.
   * @throws {ProxyError} `feed_lost` for an answer nobody asked for, or one that can't be.
   */
  receive(part: WireChangeSet): Delivery | undefined {
    if (!this.#isAsked) throw notUnderstood("an answer nobody asked for", part.instance);
    const delivery = this.#reader.receive(part);
    if (delivery === undefined) return undefined;
    const { changes } = delivery;
    if (this.#isOutdated && !changes.full) {
      this.#isAsked = false;
      return delivery;
    }
    if (!changes.full && changes.instance !== this.#instance) throw notUnderstood("a difference to something else", changes.instance);
    if (changes.full && changes.node === undefined) throw notUnderstood("a whole state without its node", changes.instance);
    this.#isAsked = false;
    this.#instance = changes.instance;
    this.#revision = changes.revision;
    if (!changes.full && changes.node === undefined && changes.set.length === 0 && changes.delete.length === 0) return delivery;
    this.#writer(changes);
    return delivery;
  }

  #writer(changes: ChangeSet): void {
    if (this.#waiters.size === 0) this.#ready = changes;
    else this.#waiters.resolve(changes);
  }
}
