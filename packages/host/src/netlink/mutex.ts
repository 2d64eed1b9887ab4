/** Lets one after the other do something. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  /** Run once all before are done, however they ended. */
  run<T>(run: () => Promise<T>): Promise<T> {
    const mine = this.#last.then(run);
    this.#last = Promise.allSettled([mine]);
    return mine;
  }
}
