import { expect, it } from "vitest";
import { soak } from "./testing/soak.ts";

/** `npm run soak -- userspace` does a million. */
const CONNECTIONS = 20_000;
/** A leak of 100 bytes a connection would be 2 MB. */
const HEAP_MAX_BYTES = 1_500_000;

it(`has nothing left of ${CONNECTIONS} connections, half of them broken off, and a tenth as many UDP sessions`, async () => {
  const { before, after, outcomes } = await soak({ connections: CONNECTIONS });
  expect(outcomes).toEqual({ answered: 10_001, leave: 3_333, reset: 6_666 });
  expect(after.numbers).toEqual(before.numbers);
  expect(after.handles).toEqual(before.handles);
  expect(after.heapUsed - before.heapUsed).toBeLessThan(HEAP_MAX_BYTES);
}, 120_000);
