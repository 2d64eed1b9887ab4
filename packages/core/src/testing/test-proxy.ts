import { objectId } from "../contract/backend.ts";
import type { Backend, BackendModule, Counts, KernelObject, Outcome, Plan, Plain, Turn } from "../contract/backend.ts";
import type { World } from "../contract/world.ts";
import { isEqual } from "../model/equal.ts";
import { haveManyEndpoints } from "../model/many-endpoints.ts";
import type { IPFamily } from "../model/api-objects.ts";
import { Ledger } from "../sync/ledger.ts";
import type { WantedState } from "./view.ts";

/** What a {@link TestProxy} works with: facts H of its host, and wanted states that a test gives as W. */
export interface TestProxyParts<H, W> {
  readonly host: H;
  readonly stateOf: (wanted: W) => WantedState;
  readonly nowMs: () => number;
}

/** What {@link TestProxy.open} takes; `raw` are options as they are given. */
export interface OpenParts<H, W> extends Pick<TestProxyParts<H, W>, "stateOf"> {
  readonly raw?: Readonly<Record<string, Plain>>;
  readonly family?: IPFamily;
  readonly host?: H;
}

/** A backend with its ledger, in one family: what a proxy process is to the host. A test says when it syncs. */
export class TestProxy<H, K extends KernelObject, S, W> {
  readonly ledger: Ledger<K>;
  readonly backend: Backend<H, K, S>;
  readonly #parts: TestProxyParts<H, W>;
  readonly #signal = new AbortController().signal;
  #skeleton: readonly K[] | undefined;
  #rows: ReadonlyMap<string, readonly K[]> = new Map();

  constructor(backend: Backend<H, K, S>, parts: TestProxyParts<H, W>) {
    this.backend = backend;
    this.ledger = new Ledger<K>(backend.keepPlaces?.bind(backend));
    this.#parts = parts;
  }

  /** Open one family of a backend on a world; by default the backend's own probe reads the facts. */
  static async open<O, H, K extends KernelObject, S, X extends World, W>(
    module: BackendModule<O, H, K, S, X>,
    world: X,
    { raw = {}, family = "IPv4", host, stateOf }: OpenParts<H, W>,
  ): Promise<TestProxy<H, K, S, W>> {
    const { signal } = new AbortController();
    const options = module.parseOptions(raw);
    const facts = host ?? (await module.probe(options, world, signal)).facts;
    const backend = (await module.open(options, world, signal)).family(family);
    return new TestProxy(backend, { host: facts, stateOf, nowMs: () => world.clock.nowMs() });
  }

  /** Want a state. Rows that stay as they are don't count as changed. */
  want(wanted: W): void {
    const { rows, node, hasManyEndpoints = haveManyEndpoints(rows.values()) } = this.#parts.stateOf(wanted);
    const context = { node, host: this.#parts.host, hasManyEndpoints };
    const skeleton = this.backend.skeleton(context);
    const rendered = new Map(Array.from(rows, ([key, row]) => [key, this.backend.render(row, context)]));
    if (this.#skeleton !== undefined && areSame(this.#skeleton, skeleton)) {
      const keys = new Set([...this.#rows.keys(), ...rendered.keys()]);
      const changed = [...keys].filter((key) => !areSame(this.#rows.get(key), rendered.get(key)));
      this.ledger.setRows(new Map(changed.map((key) => [key, rendered.get(key) ?? []])));
    } else this.ledger.setAll(skeleton, rendered);
    this.#skeleton = skeleton;
    this.#rows = rendered;
  }

  /** Take what the host holds as applied. @throws what observing fails with. */
  async adopt(): Promise<void> {
    this.ledger.adopt(await this.backend.observe(this.#signal));
  }

  /** The plan of the next sync. */
  plan(): Plan<S> {
    return this.backend.plan(this.ledger.delta(this.#parts.nowMs()));
  }

  /** The same as text, for a state that is wanted from now on. */
  planText(wanted?: W): string {
    if (wanted !== undefined) this.want(wanted);
    return this.backend.explain?.(this.plan()) ?? "";
  }

  /** Bring what is wanted into force, or this from now on. @throws what applying fails with. */
  async apply(wanted?: W, turn?: Turn): Promise<Outcome<K>> {
    if (wanted !== undefined) this.want(wanted);
    const delta = this.ledger.delta(this.#parts.nowMs());
    const outcome = await this.backend.apply(this.backend.plan(delta), this.#signal, turn);
    this.ledger.commit(delta, outcome, this.#parts.nowMs());
    return outcome;
  }

  /** As {@link apply}; resolves to how many objects had to change. */
  async sync(wanted?: W): Promise<number> {
    if (wanted !== undefined) this.want(wanted);
    const { put, remove } = this.ledger.delta(this.#parts.nowMs());
    await this.apply();
    return put.length + remove.length;
  }

  /** What was counted, by the row that it was counted for. */
  async counts(): Promise<Readonly<Record<string, Counts>>> {
    const read = await this.backend.counts?.(this.#signal, (id) => this.ledger.ownersOf([id]).size > 0);
    return Object.fromEntries(Array.from(read ?? [], ([id, one]) => [[...this.ledger.ownersOf([id])].join() || id, one]));
  }
}

function areSame(one: readonly KernelObject[] | undefined, other: readonly KernelObject[] | undefined): boolean {
  const [before, after] = [one, other].map((objects) => objects?.map((object) => [objectId(object), object.value]));
  return isEqual(before, after);
}
