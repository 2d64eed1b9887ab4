import { TestClock } from "@turnout/core/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { createFakeNetlink } from "../testing/fake-netlink.ts";
import type { FakeNetlink } from "../testing/fake-netlink.ts";
import { EchoCount, OwnCommits } from "./own-commits.ts";

const never = new AbortController().signal;

describe("own commits", () => {
  let netlink: FakeNetlink;
  let own: OwnCommits;
  let clock: TestClock;
  beforeEach(() => {
    netlink = createFakeNetlink();
    own = new OwnCommits();
    clock = new TestClock(0);
  });
  const commit = (process: string): void => netlink.commitNft({ pid: 1, process, tables: ["ip6 nat"] });

  /** Ask since the beginning, while time passes. */
  async function isUndisturbed(passMs: number, meanwhile: () => Promise<void>): Promise<boolean | "still looking"> {
    const mark = await own.mark(netlink);
    const work = meanwhile();
    let answer: boolean | "still looking" = "still looking";
    void own.isUndisturbedSince(mark, netlink, clock, never).then((said) => (answer = said));
    for (let ms = 0; ms < passMs; ms += 50) {
      await new Promise((resolve) => setImmediate(resolve));
      await clock.advance(50);
    }
    await work;
    return answer;
  }

  it("knows those that are done", async () => {
    expect(await isUndisturbed(100, () => own.during(1, async () => commit("iptables")))).toBe(true);
  });

  it("waits for those under way, in several steps and longer than a second", async () => {
    const inSteps = (): Promise<void> =>
      own.during(3, async () => {
        for (let step = 0; step < 3; step++) {
          commit("ip6tables-resto");
          await clock.sleep(3_000, never);
        }
      });
    expect(await isUndisturbed(10_000, inSteps)).toBe(true);
  });

  it("finds somebody else's beside them, and when they are done", async () => {
    const alongside = (): Promise<void> =>
      own.during(1, async () => {
        commit("nft");
        await clock.sleep(3_000, never);
        commit("ip6tables-resto");
      });
    expect(await isUndisturbed(5_000, alongside)).toBe(false);
  });

  it("does not wait for ever for one that hangs", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    commit("nft");
    const hanging = own.during(1, () => promise);
    commit("nft");
    const mark = { generation: 0, commits: 0 };
    let answer: boolean | undefined;
    void own.isUndisturbedSince(mark, netlink, clock, never).then((said) => (answer = said));
    for (let ms = 0; ms < 40_000; ms += 50) {
      await new Promise((settle) => setImmediate(settle));
      await clock.advance(50);
    }
    expect(answer).toBe(false);
    resolve();
    await hanging;
  });

  it("does not count those that failed", async () => {
    const fails = async (): Promise<void> => {
      await expect(own.during(1, () => Promise.reject(new Error("refused")))).rejects.toThrow("refused");
    };
    expect(await isUndisturbed(100, fails)).toBe(true);
  });
});

describe("a commit without an echo", () => {
  it("hides nobody else's, and around it another's is not taken at its word", async () => {
    const echoes = new EchoCount();
    echoes.start();
    let nowMs = 0;
    const committing = Promise.withResolvers<undefined>();
    const done = echoes.without(
      () => committing.promise,
      () => nowMs,
    );
    expect(echoes.hear(10_000)).toBe("perhaps another's");
    nowMs = 10_000;
    committing.resolve(undefined);
    await done;
    expect([10_500, 11_500].map((atMs) => echoes.hear(atMs))).toEqual(["perhaps another's", "another's"]);
  });
});
