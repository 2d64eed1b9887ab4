/**
 * Tells our own commits from other people's: each section of ours that took effect is echoed once by the kernel's notifications, so an
 * echo nobody expects means that somebody else has been at the table.
 *
 * Edges: before {@link OwnCommits.start} nothing is expected, because nobody listens. After a change that failed half way the count may be
 * one too low, and an echo of ours is taken for a foreign one: that costs a look at the host, which follows a failure anyway.
 */
export class OwnCommits {
  #expected = 0;
  #isCounting = false;

  /** Begin with a clean slate. */
  start(): void {
    this.#expected = 0;
    this.#isCounting = true;
  }

  /** Expect the echoes of so many commits; negative: they failed. */
  expect(count: number): void {
    if (this.#isCounting) this.#expected = Math.max(0, this.#expected + count);
  }

  /** Count one echo off; false when none was due. */
  take(): boolean {
    if (this.#expected === 0) return false;
    this.#expected--;
    return true;
  }
}
