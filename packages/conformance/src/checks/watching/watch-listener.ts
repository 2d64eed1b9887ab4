import type { Drift } from "@turnout/core";
import type { FamilyProcess } from "../../runner/family-process.ts";

/** Listens to what a backend's watch tells, from its making on. */
export class WatchListener {
  /** What it told of somebody else's changes. */
  readonly drifts: Drift[] = [];
  /** The facts it told last; undefined: none yet. */
  facts: unknown;
  /** How it ended; undefined: it goes on. */
  end: string | undefined;
  readonly #life = new AbortController();

  constructor(life: FamilyProcess) {
    void this.#listen(life);
  }

  stop(): void {
    this.#life.abort();
  }

  async #listen(life: FamilyProcess): Promise<void> {
    try {
      for await (const event of life.watch(this.#life.signal)) {
        if (event.kind === "drift") this.drifts.push(event);
        else this.facts = event.facts;
      }
      this.end = "it ended";
    } catch (error) {
      this.end = `it threw: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
}
