/** Takes a transaction back. */
export class UndoLog {
  readonly #steps: (() => void)[] = [];

  add(step: () => void): void {
    this.#steps.push(step);
  }

  /** Note something that changes nothing and yet is a commit to the kernel: declaring again what is there. */
  noteRepetition(): void {
    this.add(() => undefined);
  }

  /** Whether anything was changed. */
  get isEmpty(): boolean {
    return this.#steps.length === 0;
  }

  rollBack(): void {
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) step();
  }
}
