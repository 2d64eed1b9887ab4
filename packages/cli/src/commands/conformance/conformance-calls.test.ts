import { EventEmitter } from "node:events";
import { setImmediate } from "node:timers/promises";
import type { BackendModule } from "@turnout/core";
import { checkBackend, checkHistories, createReferenceHost, referenceBackend, SCENARIOS } from "@turnout/conformance";
import { describe, expect, test } from "vitest";
import { CallWatch } from "./conformance-calls.ts";

const FEW = SCENARIOS.filter(({ rules }) => rules.includes("R-48"));

/** The reference backend, frozen; from the given call of apply on, that one never settles. */
function referenceThatStalls(fromCall: number): BackendModule {
  let calls = 0;
  return Object.freeze({
    ...referenceBackend,
    open: async (...args: Parameters<typeof referenceBackend.open>) => {
      const dataplane = await referenceBackend.open(...args);
      const family: typeof dataplane.family = (one) => {
        const inner = dataplane.family(one);
        const apply: typeof inner.apply = (plan, signal) =>
          ++calls < fromCall ? inner.apply(plan, signal) : new Promise<never>(() => undefined);
        return Object.freeze({ ...inner, apply });
      };
      return Object.freeze({ ...dataplane, family });
    },
  });
}

/** Let everything happen that still can, then say that nothing is left. */
async function becomeIdle(idle: EventEmitter): Promise<void> {
  for (let turns = 0; turns < 50; turns++) await setImmediate();
  idle.emit("beforeExit");
}

describe("a call that never settles", () => {
  test("is named, with its scenario and step", async () => {
    const idle = new EventEmitter();
    const watch = new CallWatch(referenceThatStalls(3), createReferenceHost);
    const { module, createFakeHost, onCheckpoint } = watch;
    const done = watch.ended(checkBackend(module, createFakeHost, FEW, { onCheckpoint }), idle);
    void becomeIdle(idle);
    await expect(done).rejects.toThrow(
      /^\[tool_failed\] apply never settles: backend reference, scenario ".+", step ".+": what it waits for/,
    );
  });

  test("is named in histories too", async () => {
    const idle = new EventEmitter();
    const watch = new CallWatch(referenceThatStalls(9), createReferenceHost);
    const { module, createFakeHost, onCheckpoint } = watch;
    const done = watch.ended(checkHistories(module, createFakeHost, { seed: 7, steps: 50, onCheckpoint }), idle);
    void becomeIdle(idle);
    await expect(done).rejects.toThrow(/apply never settles: backend reference, scenario "history 7", step "change \d+/);
  });
});

test("nobody is in the way of a backend whose calls settle", async () => {
  const idle = new EventEmitter();
  const watch = new CallWatch(referenceBackend, createReferenceHost);
  const { findings } = await watch.ended(checkBackend(watch.module, watch.createFakeHost, FEW), idle);
  expect([findings, idle.listenerCount("beforeExit")]).toEqual([[], 0]);
});
