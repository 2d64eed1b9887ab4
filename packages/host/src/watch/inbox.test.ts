import { TestClock } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { Inbox } from "./inbox.ts";
import { countedSource } from "../testing/index.ts";

interface News {
  readonly of: string;
}

describe("an inbox", () => {
  it("tells what comes, then that it is time, and ends with its signal", async () => {
    const clock = new TestClock(1_000);
    const stop = new AbortController();
    const inbox = new Inbox<News>(clock, stop.signal);
    inbox.put({ of: "a" });
    inbox.put({ of: "b" });
    expect([await inbox.next(0), await inbox.next()]).toEqual([{ of: "a" }, { of: "b" }]);
    expect(await inbox.next(1_000)).toBe("due");
    const due = inbox.next(1_500);
    await clock.advance(500);
    expect(await due).toBe("due");
    const later = inbox.next();
    inbox.put({ of: "c" });
    expect(await later).toEqual({ of: "c" });
    const last = inbox.next();
    stop.abort();
    expect([await last, await inbox.next()]).toEqual(["end", "end"]);
  });

  it("ends when a source does, with what it failed with", async () => {
    const inbox = new Inbox<News>(new TestClock(0), new AbortController().signal);
    inbox.follow(reportedOnce("last words"), (of) => ({ of }));
    expect([await inbox.next(), await inbox.next()]).toEqual([{ of: "last words" }, "end"]);
    inbox.follow(failing(), (of) => ({ of }));
    await expect(inbox.next()).rejects.toThrow("gone");
  });

  it("keeps nothing of what was told while another source is silent for long", async () => {
    const inbox = new Inbox<News>(new TestClock(0), new AbortController().signal);
    const silent = countedSource<string>();
    inbox.follow(silent, (of) => ({ of }));
    for (let count = 0; count < 100; count++) {
      const next = inbox.next();
      inbox.put({ of: String(count) });
      await next;
    }
    expect(silent.waiters).toBeLessThan(2);
  });
});

async function* reportedOnce(words: string): AsyncIterable<string> {
  yield await Promise.resolve(words);
}

// eslint-disable-next-line require-yield
async function* failing(): AsyncIterable<string> {
  await Promise.resolve();
  throw new Error("gone");
}
