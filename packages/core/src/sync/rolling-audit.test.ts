import { describe, expect, it } from "vitest";
import type { Backend, KernelObject } from "../contract/backend.ts";
import { objectId } from "../contract/backend.ts";
import { ProxyError } from "../model/errors.ts";
import { createSyncBench } from "../test-support/sync-bench.ts";
import { ToyHost } from "../test-support/toy-backend.ts";
import type { ToyFacts, ToyStep } from "../test-support/toy-backend.ts";
import type { TestClock } from "../testing/clock.ts";
import { rawService } from "../testing/objects.ts";

/** A toy whose objects are looked up, each of which takes a while. */
class LookedUpHost extends ToyHost {
  clock: TestClock | undefined;
  /** How many objects were asked for, each time. */
  readonly asked: number[] = [];
  spentMs = 0;
  costMs = 0;
  failure: ProxyError | undefined;

  override open(): Backend<ToyFacts, KernelObject, ToyStep> {
    const lookup = async (some: readonly KernelObject[], signal: AbortSignal): Promise<ReadonlyMap<string, KernelObject>> => {
      this.asked.push(some.length);
      this.spentMs += this.costMs * some.length;
      await this.clock?.sleep(this.costMs * some.length, signal);
      if (this.failure !== undefined) throw this.failure;
      return new Map(
        some.flatMap((object) => {
          const found = this.objects.get(objectId(object));
          return found === undefined ? [] : [[objectId(found), found] as const];
        }),
      );
    };
    return { ...super.open(), looksUpCheaply: true, lookup };
  }
}

const SERVICES = Array.from({ length: 100 }, (_, n) => rawService(`s${n}`, { clusterIP: `10.96.1.${n + 1}` }));

async function lookedUpBench(): Promise<Awaited<ReturnType<typeof createSyncBench>> & { readonly looked: LookedUpHost }> {
  const looked = new LookedUpHost();
  const bench = await createSyncBench(SERVICES, { host: looked });
  looked.clock = bench.clock;
  return { ...bench, looked };
}

describe("an audit of one part after another", () => {
  it("finds what somebody removed or changed, and mends just that without comparing everything", async () => {
    const { looked, clock, observer } = await lookedUpBench();
    await clock.advance(10_000);
    expect(observer.syncs).toHaveLength(1);
    const [removed, changed] = [...looked.objects.values()].filter(({ kind }) => kind === "destination");
    if (removed === undefined || changed === undefined) throw new Error("there are destinations");
    const before = new Map(looked.objects);
    looked.objects.delete(objectId(removed));
    looked.objects.set(objectId(changed), { ...changed, value: "something else" });
    await clock.advance(40_000);
    expect(looked.objects).toEqual(before);
    expect(looked.observations).toBe(1);
    expect(observer.syncs.slice(1).reduce((sum, { drifted }) => sum + drifted, 0)).toBe(2);
    expect(observer.syncs.slice(1).every(({ full, repaired }) => !full && repaired)).toBe(true);
  });

  it("takes a thousandth of the time, in slices that grow to some milliseconds", async () => {
    const { looked, clock } = await lookedUpBench();
    looked.costMs = 0.25;
    looked.spentMs = 0;
    await clock.advance(600_000);
    expect(looked.spentMs).toBeGreaterThan(0.0006 * 600_000);
    expect(looked.spentMs).toBeLessThan(0.001 * 600_000);
    expect(Math.max(...looked.asked.slice(10))).toBe(20);
  });

  it("is no rarer on a busy machine, where a look takes long and little CPU time", async () => {
    const { looked, clock } = await lookedUpBench();
    looked.costMs = 1;
    Object.assign(clock, { cpuMs: () => looked.spentMs / 100 });
    await clock.advance(60_000);
    const before = looked.asked.length;
    await clock.advance(60_000);
    expect(looked.asked.length - before).toBeGreaterThan(20);
  });

  it("waits when the host can't be asked, and goes on then", async () => {
    const { looked, clock, observer } = await lookedUpBench();
    looked.failure = new ProxyError("tool_failed", "the host does not answer");
    await clock.advance(1_000);
    const asked = looked.asked.length;
    await clock.advance(25_000);
    expect(looked.asked).toHaveLength(asked);
    looked.failure = undefined;
    await clock.advance(30_000);
    expect(looked.asked.length).toBeGreaterThan(asked + 1);
    expect([observer.syncs.length, observer.failures.length]).toEqual([1, 0]);
  });
});
