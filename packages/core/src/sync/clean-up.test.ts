import { beforeEach, describe, expect, it } from "vitest";
import { objectId } from "../contract/backend.ts";
import type { KernelObject, Outcome } from "../contract/backend.ts";
import { ProxyError } from "../model/errors.ts";
import { flushPromises, TestClock } from "../testing/clock.ts";
import { ToyHost } from "../test-support/toy-backend.ts";
import { cleanUpBackend } from "./clean-up.ts";

const NEVER = new AbortController().signal;
const errorOf = (ended: Promise<void>): Promise<unknown> =>
  ended.then(
    () => undefined,
    (error: unknown) => error,
  );
type ToyBackend = ReturnType<ToyHost["open"]>;

describe("cleaning up", () => {
  let clock: TestClock;
  beforeEach(() => {
    clock = new TestClock();
  });
  const put = (host: ToyHost): void => void host.objects.set("base base", { kind: "base", key: "base", value: 1 });

  it("removes what is observed", async () => {
    const host = new ToyHost();
    put(host);
    await cleanUpBackend(host.open(), clock, NEVER);
    expect([host.objects.size, host.violations]).toEqual([0, []]);
    await cleanUpBackend(host.open(), clock, NEVER);
    expect(host.plans).toBe(1);
  });

  it("is the backend's own where it has one", async () => {
    const host = new ToyHost();
    put(host);
    await cleanUpBackend({ ...host.open(), cleanup: () => Promise.resolve(host.objects.clear()) }, clock, NEVER);
    expect([host.objects.size, host.observations]).toEqual([0, 0]);
  });

  it("tells of an object that is refused, and of a host that can't be looked at", async () => {
    const host = new ToyHost();
    put(host);
    const refused = new ProxyError("tool_failed", "it stays");
    const outcome: Outcome<never> = { failed: new Map([["base base", refused]]) };
    await expect(cleanUpBackend({ ...host.open(), apply: () => Promise.resolve(outcome) }, clock, NEVER)).rejects.toBe(refused);
    const blind = { ...host.open(), observe: () => Promise.resolve(undefined) };
    await expect(cleanUpBackend(blind, clock, NEVER)).rejects.toMatchObject({ code: "tool_failed" });
  });

  /** A backend that removes as its outcomes say: one after the other, the last one for ever. */
  function scripted(
    host: ToyHost,
    ...outcomes: readonly Outcome<KernelObject>[]
  ): { readonly backend: ToyBackend; readonly removed: readonly string[][] } {
    const inner = host.open();
    const removed: string[][] = [];
    let planned: readonly KernelObject[] = [];
    const backend: ToyBackend = {
      ...inner,
      plan(delta) {
        planned = [...delta.remove, ...delta.lingering.map(({ object }) => object)];
        return inner.plan(delta);
      },
      apply() {
        removed.push(planned.map(objectId));
        return Promise.resolve(outcomes[Math.min(removed.length, outcomes.length) - 1] as Outcome<never>);
      },
    };
    return { backend, removed };
  }
  const base = { kind: "base", key: "base", value: 1 };

  it("plans again what was deferred, until that gets no less", async () => {
    const host = new ToyHost();
    put(host);
    const later = { deferred: new Set(["base base"]) };
    const slow = scripted(host, later, {});
    await cleanUpBackend(slow.backend, clock, NEVER);
    expect(slow.removed).toEqual([["base base"], ["base base"]]);
    await expect(cleanUpBackend(scripted(host, later).backend, clock, NEVER)).rejects.toMatchObject({
      code: "timed_out",
      object: "base base",
    });
  });

  it("waits for what lingers, and names what does so for long", async () => {
    const host = new ToyHost();
    put(host);
    const short = scripted(host, { lingering: [{ object: base, afterMs: 2_000 }] }, {});
    const done = cleanUpBackend(short.backend, clock, NEVER);
    await clock.advance(1_999);
    expect(short.removed).toHaveLength(1);
    await clock.advance(1);
    await done;
    expect(short.removed).toEqual([["base base"], ["base base"]]);
    const always = scripted(host, { lingering: [{ object: base, afterMs: 0 }] });
    const ended = errorOf(cleanUpBackend(always.backend, clock, NEVER));
    await clock.advance(20_000);
    expect(await ended).toMatchObject({ code: "timed_out", object: "base base" });
    expect(always.removed.length).toBeLessThan(200);
    const stop = new AbortController();
    const stopped = errorOf(cleanUpBackend(scripted(host, { lingering: [{ object: base, afterMs: 2_000 }] }).backend, clock, stop.signal));
    await flushPromises();
    stop.abort();
    expect(await stopped).toMatchObject({ code: "canceled" });
    const long = cleanUpBackend(scripted(host, { lingering: [{ object: base, afterMs: 60_000 }] }).backend, clock, NEVER);
    await expect(long).rejects.toMatchObject({ code: "timed_out", object: "base base" });
  });
});
