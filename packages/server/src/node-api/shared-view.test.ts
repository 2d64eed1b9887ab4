import { applyChangeSet, feedOf, isEqual, NodeView, type Store, type ChangeSet, type NodeContext, type ServicePort } from "@turnout/core";
import { carryOut, createStoreView, POD_SETTINGS, type ObjectEvent } from "@turnout/core/testing";
import * as fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { CommonRows } from "./common-rows.ts";
import { SharedView } from "./shared-view.ts";
import type { Cursor } from "./state-view.ts";

const never = new AbortController().signal;
const GOOD = { isEligible: true, reason: "" };
const views: SharedView[] = [];

afterEach(() => {
  for (const view of views.splice(0)) view.close();
});

interface ViewOptions {
  readonly changesKept?: number;
  readonly nodeName?: string;
  /** Whose rows it shares; default nobody's. */
  readonly common?: CommonRows;
}

function viewOf(store: Store, { changesKept, nodeName = "node1", common = new CommonRows() }: ViewOptions = {}): SharedView {
  const options = { nodeName, family: "IPv4", settings: POD_SETTINGS } as const;
  const view = new SharedView({
    feed: feedOf(new NodeView(store, options)),
    rows: common.open(),
    family: "IPv4",
    instance: "i",
    eligibility: GOOD,
    changesKept,
  });
  views.push(view);
  return view;
}

/** Somebody who asks now and then. */
class Watcher {
  rows: ReadonlyMap<string, ServicePort> = new Map();
  node: NodeContext | undefined;
  #cursor: Cursor = { instance: "", revision: 0 };

  /** Take what there is, if there is anything. */
  async look(view: SharedView): Promise<void> {
    const stop = new AbortController();
    const asked = view.next(this.#cursor, stop.signal).catch((error: unknown) => String(error));
    // An answer that is ready comes within a turn; one that is not would wait for ever.
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    const answer = await asked;
    if (typeof answer === "string") return;
    this.rows = applyChangeSet(this.rows, answer.changes);
    this.node = answer.changes.node ?? this.node;
    this.#cursor = answer.changes;
  }
}

const objectEvent: fc.Arbitrary<ObjectEvent> = fc.record({
  do: fc.constantFrom("service", "service", "slice", "slice", "node", "removeService", "removeSlice"),
  which: fc.nat(11),
  form: fc.nat(17),
});
/** Something happens, or one of four watchers looks. */
const step = fc.oneof(objectEvent, fc.nat(3));

describe("a shared view", () => {
  test("brings every watcher to the same state, whenever and however often each looks, beside another node's", async () => {
    const agree = async (steps: readonly (ObjectEvent | number)[], changesKept: number): Promise<boolean> => {
      const { store } = createStoreView([]);
      const common = new CommonRows();
      const nodes = ["node1", "node2"].map((nodeName) => ({ nodeName, view: viewOf(store, { changesKept, nodeName, common }) }));
      const watchers = [0, 0, 0, 1].map((node) => ({ watcher: new Watcher(), ...nodes[node]! }));
      for (const one of steps) {
        if (typeof one !== "number") carryOut(store, one);
        else await watchers[one]?.watcher.look(watchers[one].view);
      }
      for (const { watcher, view } of watchers) await watcher.look(view);
      for (const { watcher, nodeName } of watchers) {
        const truth = new Watcher();
        await truth.look(viewOf(store, { nodeName }));
        if (!isEqual(watcher.node, truth.node)) return false;
        if (!isEqual(Object.fromEntries(watcher.rows), Object.fromEntries(truth.rows))) return false;
      }
      for (const { view } of nodes) view.close();
      return common.size === 0;
    };
    const histories = fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.constantFrom(1, 3, 4_096), agree);
    await expect(fc.assert(histories, { numRuns: 60 })).resolves.toBeUndefined();
  });

  test("that is closed holds no row, also of an answer that comes after", async () => {
    const common = new CommonRows();
    const { promise, resolve } = Promise.withResolvers<ChangeSet>();
    const view = new SharedView({ feed: { next: () => promise }, rows: common.open(), family: "IPv4", instance: "i", eligibility: GOOD });
    const waiting = view.next({ instance: "", revision: 0 }, never);
    view.close();
    const set = [{ key: "k", endpoints: [] }] as unknown as ServicePort[];
    resolve({ instance: "f", revision: 1, family: "IPv4", full: true, set, delete: [], triggersMs: [] });
    await expect(waiting).rejects.toThrow(/^\[canceled\]/);
    expect(common.size).toBe(0);
  });

  test("that is closed cancels whoever waits", async () => {
    const view = viewOf(createStoreView([]).store);
    const { changes } = await view.next({ instance: "", revision: 0 }, never);
    const waiting = view.next(changes, never);
    view.close();
    await expect(waiting).rejects.toThrow(/^\[canceled\]/);
  });

  test("gives everything to who is further behind than it remembers", async () => {
    const { store } = createStoreView([]);
    const view = viewOf(store, { changesKept: 2 });
    const follower = new Watcher();
    const { changes: old } = await view.next({ instance: "", revision: 0 }, never);
    // Four Services come and go; what is left of them in the end is one.
    for (let turn = 0; turn < 12; turn++) {
      carryOut(store, { do: turn % 2 === 0 ? "service" : "removeService", which: Math.floor(turn / 2), form: 0 });
      await follower.look(view);
    }
    carryOut(store, { do: "service", which: 1, form: 0 });
    await follower.look(view);
    const late = await view.next(old, never);
    expect(late.changes.full).toBe(true);
    expect(late.changes.set.map(({ key }) => key)).toEqual([...follower.rows.keys()]);
  });

  test("says when the changes of an answer were triggered, those alone", async () => {
    const feed = [[], [1, 2], [3]].map((triggersMs, index) => ({
      instance: "f",
      revision: index,
      family: "IPv4" as const,
      full: index === 0,
      set: [{ key: `k${index}`, endpoints: [] }] as unknown as ServicePort[],
      delete: [],
      triggersMs,
    }));
    const next = (): Promise<(typeof feed)[number]> => {
      const one = feed.shift();
      return one === undefined ? new Promise(() => undefined) : Promise.resolve(one);
    };
    const view = new SharedView({ feed: { next }, rows: new CommonRows().open(), family: "IPv4", instance: "i", eligibility: GOOD });
    views.push(view);
    const first = await view.next({ instance: "", revision: 0 }, never);
    const second = await view.next(first.changes, never);
    const third = await view.next(second.changes, never);
    expect([second, third].map(({ changes }) => changes.triggersMs)).toEqual([[1, 2], [3]]);
    expect((await view.next(first.changes, never)).changes.triggersMs).toEqual([1, 2, 3]);
  });
});
