import { expect, test } from "vitest";
import { terminationSignal } from "./signals.ts";

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("the first %s aborts, the second one ends the process", (name) => {
  const listeners = new Map<string, () => void>();
  const exits: number[] = [];
  const signal = terminationSignal({ on: (event, listener) => listeners.set(event, listener), exit: (code) => exits.push(code) });
  expect([...listeners.keys()]).toEqual(["SIGTERM", "SIGINT", "SIGHUP"]);
  expect(signal.aborted).toBe(false);
  listeners.get(name)?.();
  expect([signal.aborted, exits]).toEqual([true, []]);
  listeners.get(name)?.();
  expect(exits).toEqual([130]);
});
