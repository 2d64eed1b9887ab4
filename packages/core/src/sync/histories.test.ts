import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { applyChangeSet } from "../model/change-set.ts";
import type { ChangeSet, NodeState, ServicePort } from "../model/rows.ts";
import { NodeView } from "../state/node-view.ts";
import { RowDifference } from "../state/row-difference.ts";
import type { Store } from "../state/store.ts";
import { carryOut } from "../testing/history.ts";
import type { ObjectEvent } from "../testing/history.ts";
import { createSyncBench } from "../test-support/sync-bench.ts";
import { createStoreView, POD_SETTINGS } from "../testing/view.ts";
import { ToyHost } from "../test-support/toy-backend.ts";

const objectEvent: fc.Arbitrary<ObjectEvent> = fc.record({
  do: fc.constantFrom("service", "service", "slice", "slice", "node", "removeService", "removeSlice"),
  which: fc.nat(11),
  form: fc.nat(17),
});

const OPTIONS = { nodeName: "node1", family: "IPv4", settings: POD_SETTINGS } as const;

/** What somebody who applies change sets knows. */
class Follower {
  rows: ReadonlyMap<string, ServicePort> = new Map();
  node: NodeState["node"] | undefined;

  hear(changes: ChangeSet | undefined): void {
    if (changes === undefined) return;
    this.rows = applyChangeSet(this.rows, changes);
    this.node = changes.node ?? this.node;
  }
}

function fresh(store: Store): Follower {
  const follower = new Follower();
  follower.hear(new NodeView(store, OPTIONS).pull());
  return follower;
}

function sorted<T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] {
  return [...map].toSorted(([a], [b]) => (a < b ? -1 : 1));
}

/** The addresses and ports that a host answers. */
function answered({ objects }: ToyHost): ReadonlySet<string> {
  return new Set([...objects.values()].flatMap(({ kind, key }) => (kind === "destination" ? [key] : [])));
}

/** What a host holds after one sync of this store, from nothing. */
async function fromScratch(objectEvents: readonly ObjectEvent[]): Promise<ToyHost> {
  const bench = await createSyncBench([], { isSynced: false });
  for (const one of objectEvents) bench.carryOut(one);
  bench.markSynced();
  await bench.clock.advance(0);
  await bench.stop();
  return bench.host;
}

describe("R-57 any history of changes", () => {
  it("told in change sets, leaves the rows of a fresh view of the same store", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(objectEvent, fc.boolean()), { maxLength: 40 }), (history) => {
        const { store } = createStoreView([]);
        const view = new NodeView(store, OPTIONS);
        const follower = new Follower();
        for (const [one, isTaken] of history) {
          carryOut(store, one);
          if (isTaken) follower.hear(view.pull());
        }
        follower.hear(view.pull());
        const { rows, node } = fresh(store);
        expect(sorted(follower.rows)).toEqual(sorted(rows));
        expect(sorted(view.rows)).toEqual(sorted(rows));
        expect(follower.node).toEqual(node);
        expect(view.pull()).toBeUndefined();
      }),
      { numRuns: 300 },
    );
  });

  it("does not depend on the order in which the last word on each object came", () => {
    fc.assert(
      fc.property(fc.array(objectEvent, { maxLength: 15 }), fc.infiniteStream(fc.nat()), (objectEvents, order) => {
        const last = new Map(objectEvents.map((one) => [objectOf(one), one]));
        const shuffled = [...last.values()].map((one) => [order.next().value as number, one] as const).toSorted(([a], [b]) => a - b);
        const [{ store: one }, { store: other }] = [createStoreView([]), createStoreView([])];
        for (const each of last.values()) carryOut(one, each);
        for (const [, each] of shuffled) carryOut(other, each);
        expect(sorted(fresh(other).rows)).toEqual(sorted(fresh(one).rows));
      }),
    );
  });

  it("the difference of two sets of rows, applied to the first, gives the second", () => {
    fc.assert(
      fc.property(fc.array(objectEvent, { maxLength: 20 }), fc.array(objectEvent, { maxLength: 20 }), (before, more) => {
        const { store } = createStoreView([]);
        for (const one of before) carryOut(store, one);
        const from = fresh(store).rows;
        for (const one of more) carryOut(store, one);
        const to = fresh(store).rows;
        const difference = new RowDifference();
        difference.add([...from.values()], [...to.values()]);
        const changes: ChangeSet = {
          instance: "x",
          revision: 1,
          family: "IPv4",
          full: false,
          set: difference.set,
          delete: difference.delete,
          triggersMs: [],
        };
        expect(sorted(applyChangeSet(from, changes))).toEqual(sorted(to));
        expect(difference.add([...to.values()], [...to.values()])).toBe(false);
      }),
    );
  });
});

function objectOf({ do: what, which }: ObjectEvent): string {
  if (what === "node") return "node";
  return what === "slice" || what === "removeSlice" ? `slice ${which % 6}` : `service ${which % 4}`;
}

describe("R-58 any history of syncs", () => {
  it("leaves on the host what one full sync from nothing would; the next sync is empty", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(objectEvent, fc.boolean()), { maxLength: 25 }), async (history) => {
        const bench = await createSyncBench([]);
        for (const [one, isSynced] of history) {
          bench.carryOut(one);
          if (isSynced) await bench.clock.advance(0);
        }
        await bench.clock.advance(0);
        const { plans } = bench.host;
        bench.loop.audit();
        await bench.clock.advance(0);
        expect(bench.host.plans).toBe(plans);
        await bench.stop();
        expect(bench.observer.failures).toEqual([]);
        expect(sorted(bench.host.objects)).toEqual(sorted((await fromScratch(history.map(([one]) => one))).objects));
      }),
      { numRuns: 60 },
    );
  });

  it("in turns of one Service, leaves the same, and what is answered before and after is answered meanwhile", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(objectEvent, { minLength: 1, maxLength: 5 }), { maxLength: 12 }), async (history) => {
        const bench = await createSyncBench([], { turnMs: 0 });
        for (const some of history) {
          const before = answered(bench.host);
          for (const one of some) bench.carryOut(one);
          const seen: ReadonlySet<string>[] = [];
          bench.host.onPlan = (): void => void seen.push(answered(bench.host));
          await bench.clock.advance(100);
          const kept = [...answered(bench.host)].filter((place) => before.has(place));
          for (const during of seen) expect(kept.filter((place) => !during.has(place))).toEqual([]);
        }
        await bench.stop();
        expect([bench.observer.failures, bench.log.lines]).toEqual([[], []]);
        expect(sorted(bench.host.objects)).toEqual(sorted((await fromScratch(history.flat())).objects));
      }),
      { numRuns: 100 },
    );
  });

  it("with faults at random (before or after the effect, blind moments, a wiped host) loses nothing", async () => {
    const fault = fc.constantFrom("none", "none", "none", "before", "after", "blind", "wipe");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(objectEvent, fault, fc.nat(3)), { maxLength: 25 }), async (history) => {
        const bench = await createSyncBench([]);
        for (const [one, what, times] of history) {
          let left = times;
          const isDue = (): boolean => left-- > 0;
          if (what === "before" || what === "after") bench.host.faults = { apply: () => (isDue() ? what : undefined) };
          if (what === "blind") bench.host.faults = { apply: () => (isDue() ? "after" : undefined), observe: isDue };
          if (what === "wipe") {
            bench.host.objects.clear();
            bench.loop.audit();
          }
          bench.carryOut(one);
          await bench.clock.advance(times * 100);
        }
        bench.host.faults = {};
        await bench.clock.advance(120_000);
        expect([bench.loop.pendingSinceMs, bench.loop.lastError]).toEqual([undefined, undefined]);
        await bench.stop();
        expect(sorted(bench.host.objects)).toEqual(sorted((await fromScratch(history.map(([one]) => one))).objects));
      }),
      { numRuns: 60 },
    );
  });

  it("with a restart at any point adopts what is there", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(objectEvent, { maxLength: 12 }), fc.array(objectEvent, { maxLength: 12 }), async (before, after) => {
        const host = new ToyHost();
        const first = await createSyncBench([], { host });
        for (const one of before) first.carryOut(one);
        await first.clock.advance(0);
        await first.stop();
        const second = await createSyncBench([], { host, isSynced: false });
        for (const one of [...before, ...after]) second.carryOut(one);
        second.markSynced();
        await second.clock.advance(0);
        await second.stop();
        expect(sorted(host.objects)).toEqual(sorted((await fromScratch([...before, ...after])).objects));
      }),
      { numRuns: 40 },
    );
  });
});
