import { TestClock } from "@turnout/core/testing";
import { expect, it } from "vitest";
import { Serving } from "./serving.ts";

const LINK = { kind: "link", key: "turnout_conn4", value: { program: "", cgroup: "1" } } as never;
const FILLED = { kind: "filled", key: "IPv4", value: true } as never;
const REFUSED = new Error() as never;

it("a family waits until the first one's programs are there", async () => {
  const serving = new Serving();
  const clock = new TestClock();
  let isDone = false;
  const waiting = serving.demand(clock, new AbortController().signal).then(() => (isDone = true));
  serving.found([FILLED]);
  serving.applied({ failed: new Map([["link turnout_conn4", REFUSED]]) });
  serving.applied({ deferred: new Set(["table inet turnout-ebpf"]) });
  await clock.advance(100);
  expect(isDone).toBe(false);
  serving.applied({ failed: new Map([["service 10.96.0.1:80/TCP", REFUSED]]) });
  await clock.advance(100);
  await waiting;
  expect(isDone).toBe(true);
});

it("what was found serves already", async () => {
  const serving = new Serving();
  serving.found([FILLED, LINK]);
  expect(await serving.demand(new TestClock(), new AbortController().signal)).toBeUndefined();
});

it("says so when they don't come, and stops when it is told", async () => {
  const clock = new TestClock();
  const late = new Serving().demand(clock, new AbortController().signal).catch((error: unknown) => String(error));
  await clock.advance(31_000);
  expect(await late).toContain("[timed_out]");
  await expect(new Serving().demand(clock, AbortSignal.abort())).rejects.toThrow("[canceled]");
});
