import { EventEmitter } from "node:events";
import { setImmediate } from "node:timers/promises";
import type { BackendModule } from "@turnout/core";
import { checkBackend, checkHistories, createPaperHost, paper, SCENARIOS } from "@turnout/conformance";
import { describe, expect, test } from "vitest";
import { CallWatch } from "./conformance-calls.ts";

const FEW = SCENARIOS.filter(({ rules }) => rules.includes("R-48"));

/** The paper backend, frozen; from the given call of apply on, that one never settles. */
function paperThatStalls(fromCall: number): BackendModule {
  let calls = 0;
  return Object.freeze({
    ...paper,
    open: async (...args: Parameters<typeof paper.open>) => {
      const dataplane = await paper.open(...args);
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
    const watch = new CallWatch(paperThatStalls(3), createPaperHost);
    const { module, createFakeHost, onPlace } = watch;
    const done = watch.ended(checkBackend(module, createFakeHost, FEW, { onPlace }), idle);
    void becomeIdle(idle);
    await expect(done).rejects.toThrow(/^\[tool_failed\] apply never settles: backend paper, scenario ".+", step ".+": what it waits for/);
  });

  test("is named in histories too", async () => {
    const idle = new EventEmitter();
    const watch = new CallWatch(paperThatStalls(9), createPaperHost);
    const { module, createFakeHost, onPlace } = watch;
    const done = watch.ended(checkHistories(module, createFakeHost, { seed: 7, steps: 50, onPlace }), idle);
    void becomeIdle(idle);
    await expect(done).rejects.toThrow(/apply never settles: backend paper, scenario "history 7", step "change \d+/);
  });
});

test("nobody is in the way of a backend whose calls settle", async () => {
  const idle = new EventEmitter();
  const watch = new CallWatch(paper, createPaperHost);
  const { findings } = await watch.ended(checkBackend(watch.module, watch.createFakeHost, FEW), idle);
  expect([findings, idle.listenerCount("beforeExit")]).toEqual([[], 0]);
});
