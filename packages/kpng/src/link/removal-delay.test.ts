import { beforeEach, expect, test } from "vitest";
import { RecordingLog, TestClock } from "@turnout/core/testing";
import { RemovalDelay } from "./removal-delay.ts";

let clock: TestClock;
let log: RecordingLog;
let delay: RemovalDelay;
let missing: number;
let releases: number;

beforeEach(() => {
  clock = new TestClock();
  log = new RecordingLog();
  missing = 5;
  releases = 0;
  delay = new RemovalDelay({
    clock,
    log,
    missing: () => missing,
    onRelease: () => {
      releases += 1;
      missing = 0;
    },
  });
});

/** A Sync comes. */
function sync(): void {
  delay.heard();
  delay.synced();
}

test("what is missing goes when nothing came for three seconds, and that is said", async () => {
  sync();
  await clock.advance(2_999);
  delay.heard();
  await clock.advance(2_999);
  expect(releases).toBe(0);
  await clock.advance(1);
  expect(releases).toBe(1);
  expect(log.lines).toEqual([
    {
      level: "info",
      message: "the kpng server sent less than before; what is missing stays in force until it has been quiet",
      fields: { items: 5, quietMs: 3000 },
    },
    { level: "info", message: "what the kpng server no longer sends is gone", fields: { items: 5, afterMs: 5999 } },
  ]);
});

test("it goes after half a minute, however much comes", async () => {
  sync();
  for (let second = 1; second < 30; second++) {
    await clock.advance(1_000);
    sync();
  }
  expect(releases).toBe(0);
  await clock.advance(1_000);
  expect(releases).toBe(1);
});

test("nothing goes once all of it was told again, or when the stream is over", async () => {
  sync();
  missing = 0;
  sync();
  await clock.advance(60_000);
  missing = 5;
  sync();
  delay.stop();
  await clock.advance(60_000);
  expect(releases).toBe(0);
  sync();
  await clock.advance(3_000);
  expect(releases).toBe(1);
});

test("nothing is said or waited for when nothing is missing", async () => {
  missing = 0;
  sync();
  await clock.advance(60_000);
  expect([releases, log.lines]).toEqual([0, []]);
});
