import { expect, test } from "vitest";
import { RecentLatencies } from "./recent-latencies.ts";

test("each change set counts from when it was received until it is in force, and the first sync is none", () => {
  const latencies = new RecentLatencies();
  latencies.active([0], 5_000);
  expect(latencies.summary).toBeUndefined();
  latencies.active([], 6_000);
  expect(latencies.summary).toBeUndefined();
  latencies.active([10_000, 10_003], 10_007);
  expect(latencies.summary).toEqual({ samples: 2, p50Ms: 4, p99Ms: 7, maxMs: 7 });
});

test("the last thousand count", () => {
  const latencies = new RecentLatencies();
  latencies.active([0], 0);
  for (let ms = 1; ms <= 1_500; ms++) latencies.active([0], ms);
  expect(latencies.summary).toEqual({ samples: 1_000, p50Ms: 1_000, p99Ms: 1_490, maxMs: 1_500 });
});
