/** Lets one after the other do something. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Run once all before are done, however they ended. */
  async run(run: () => Promise<void>): Promise<void> {
    const mine = this.#last.then(run);
    this.#last = Promise.allSettled([mine]);
    await mine;
  }
}
