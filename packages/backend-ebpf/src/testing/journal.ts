/** Takes back what programs did to memory, so that a question leaves nothing behind. */
export class Journal {
  #undo: (() => void)[] | undefined;

  /** Whether somebody will want to take things back. */
  get isKept(): boolean {
    return this.#undo !== undefined;
  }

  /** Note how to take back what is done now; nothing where nobody wants it. */
  note(undo: () => void): void {
    this.#undo?.push(undo);
  }

  /** Do something, and take back all that was noted meanwhile. */
  takingBack<T>(work: () => T): T {
    this.#undo = [];
    try {
      return work();
    } finally {
      for (const undo of this.#undo.toReversed()) undo();
      this.#undo = undefined;
    }
  }
}
