import { expect, test } from "vitest";
import { RecentLatencies } from "./recent-latencies.ts";

test("a change counts from when it was first heard of until everything is in force, and the first sync is none", () => {
  const latencies = new RecentLatencies();
  latencies.queued(0);
  latencies.active(5_000);
  expect(latencies.summary).toBeUndefined();
  latencies.active(6_000);
  expect(latencies.summary).toBeUndefined();
  latencies.queued(10_000);
  latencies.queued(10_003);
  latencies.active(10_007);
  expect(latencies.summary).toEqual({ samples: 1, p50Ms: 7, p99Ms: 7, maxMs: 7 });
});

test("the last thousand count", () => {
  const latencies = new RecentLatencies();
  latencies.queued(0);
  latencies.active(0);
  for (let ms = 1; ms <= 1_500; ms++) {
    latencies.queued(0);
    latencies.active(ms);
  }
  expect(latencies.summary).toEqual({ samples: 1_000, p50Ms: 1_000, p99Ms: 1_490, maxMs: 1_500 });
});
