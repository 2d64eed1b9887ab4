import type { Clock } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";

const POLL_AGAIN_MS = 50;
const LOOKS_MAX = 20;
/** The same while a commit of ours is under way: a large one takes many seconds. */
const LOOKS_MAX_UNDER_WAY = 600;

/** A moment of the ruleset: its generation, and how many commits of ours had been made by then. */
export interface CommitMark {
  readonly generation: number;
  readonly commits: number;
}

/**
 * Counts the commits this process makes in one network namespace, in both families: every commit of anybody's raises the
 * ruleset's generation by one, so what the generation rose by beyond our own count is somebody else's.
 */
export class OwnCommits {
  #count = 0;
  #underWay = 0;

  /**
   * Make commits, counted if `work` succeeds.
   *
   * Edges: of work that fails some may have come about; they are taken for somebody else's.
   */
  async during<T>(commits: number, work: () => Promise<T>): Promise<T> {
    this.#underWay++;
    try {
      const done = await work();
      this.#count += commits;
      return done;
    } finally {
      this.#underWay--;
    }
  }

  /** A function that tells whether nothing of ours has been committed, or begun, since this moment. */
  sinceNow(): () => boolean {
    const count = this.#count;
    const isIdle = this.#underWay === 0;
    return () => isIdle && this.#underWay === 0 && this.#count === count;
  }

  /** Remember this moment. @throws {ProxyError} when the kernel can't be asked. */
  async mark(netlink: Netlink): Promise<CommitMark> {
    const commits = this.#count;
    return { generation: await netlink.nftGeneration(), commits };
  }

  /**
   * Remember a moment at which no commit of ours is under way: each of ours until then is done, and each later one comes after it.
   *
   * Edges: after half a minute, or when aborted, whatever moment it is.
   */
  async settledMark(netlink: Netlink, clock: Clock, signal: AbortSignal): Promise<CommitMark> {
    for (let looks = 0; ; looks++) {
      const isIdle = this.#underWay === 0;
      const mark = await this.mark(netlink);
      const isSettled = isIdle && this.#underWay === 0 && this.#count === mark.commits;
      if (isSettled || looks >= LOOKS_MAX_UNDER_WAY || signal.aborted) return mark;
      await clock.sleep(POLL_AGAIN_MS, signal);
    }
  }

  /** Tell whether nobody else has committed since a mark. Edges: as {@link OwnCommits.undisturbedMark}; true when aborted. */
  async isUndisturbedSince(mark: CommitMark, netlink: Netlink, clock: Clock, signal: AbortSignal): Promise<boolean> {
    return (await this.undisturbedMark(mark, netlink, clock, signal)) !== undefined || signal.aborted;
  }

  /**
   * A moment until which nobody else has committed since a mark, with every commit of ours that is in the kernel counted; undefined: somebody has.
   *
   * Edges: a commit of ours that is under way looks like somebody else's, so a difference is looked at again for a second, or for half a minute
   * while one is under way, in whichever family.
   */
  async undisturbedMark(mark: CommitMark, netlink: Netlink, clock: Clock, signal: AbortSignal): Promise<CommitMark | undefined> {
    let looks = 0;
    for (let total = 0; looks < LOOKS_MAX && total < LOOKS_MAX_UNDER_WAY && !signal.aborted; total++) {
      const now = await this.mark(netlink);
      if (now.generation - mark.generation === now.commits - mark.commits) return now;
      if (this.#underWay === 0) looks++;
      await clock.sleep(POLL_AGAIN_MS, signal);
    }
    return undefined;
  }
}

/** So long after an echo of ours another's commit is doubted, in ms: many times what an echo takes to be heard. */
const CALM_MS = 1_000;

/**
 * Tells our own commits from other people's: every commit of ours is echoed once by the kernel's notifications, so an echo nobody expects
 * means that somebody else has been at the table.
 */
export class EchoCount {
  #expected = 0;
  #underWay = 0;
  #unheard = 0;
  #isCounting = false;
  /** When an echo was counted off last or may have been missed, or a commit without one ended. */
  #heardMs = Number.NEGATIVE_INFINITY;

  /** Start with a clean slate: only what is under way is still to be heard of. Before this nothing is expected, because nobody listens. */
  start(nowMs: number = Number.NEGATIVE_INFINITY): void {
    this.#expected = this.#underWay;
    this.#isCounting = true;
    this.#heardMs = nowMs;
  }

  /** Expect the echo of a commit while it is made, and after it if it comes to be. @throws what `commit` throws. */
  async during<T>(commit: () => Promise<T>): Promise<T> {
    this.expect();
    this.#underWay++;
    try {
      return await commit();
    } catch (error) {
      this.expect(-1);
      throw error;
    } finally {
      this.#underWay--;
    }
  }

  /** Make a commit that has no echo; at its end it is `nowMs()`, in ms since the epoch. @throws what `commit` throws. */
  async without<T>(commit: () => Promise<T>, nowMs: () => number): Promise<T> {
    this.#unheard++;
    try {
      return await commit();
    } finally {
      this.#unheard--;
      this.#heardMs = Math.max(this.#heardMs, nowMs());
    }
  }

  /** Expect the echoes of so many commits; negative: they did not come to be. */
  expect(commits: number = 1): void {
    if (this.#isCounting) this.#expected = Math.max(0, this.#expected + commits);
  }

  /**
   * Hear a commit at a time, in ms since the epoch: whether it is ours, and if not, whether it is another's for sure.
   *
   * Edges: another's commit between ours and its echo is counted off as ours, and ours is taken for another's then. So around a commit of ours what
   * is heard of another's is not taken at its word.
   */
  hear(nowMs: number): "ours" | "another's" | "perhaps another's" {
    const isCalm = this.#underWay + this.#unheard === 0 && nowMs - this.#heardMs > CALM_MS;
    if (!this.consume()) return isCalm ? "another's" : "perhaps another's";
    this.#heardMs = nowMs;
    return "ours";
  }

  /** Count one echo off; false when none was due. */
  consume(): boolean {
    if (this.#expected === 0) return false;
    this.#expected--;
    return true;
  }
}
