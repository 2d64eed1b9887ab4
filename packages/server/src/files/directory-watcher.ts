import { watch, type FSWatcher } from "node:fs";
import type { Log } from "@turnout/core";

interface Watched {
  readonly identity: string;
  readonly watcher: FSWatcher;
}

/** Watches a changing set of directories, none of them recursively. */
export class DirectoryWatcher {
  readonly #log: Log;
  readonly #onChange: () => void;
  readonly #watched = new Map<string, Watched>();
  #hasWarned = false;

  /** `onChange` is called for every event, often several times for one change. */
  constructor(log: Log, onChange: () => void) {
    this.#log = log;
    this.#onChange = onChange;
  }

  /** Watch exactly these paths; one whose identity changed is another directory now. Never throws: what can't be watched is polled. */
  set(directories: ReadonlyMap<string, string>): void {
    for (const [path, { identity, watcher }] of this.#watched) {
      if (directories.get(path) === identity) continue;
      watcher.close();
      this.#watched.delete(path);
    }
    for (const [path, identity] of directories) if (!this.#watched.has(path)) this.#add(path, identity);
  }

  close(): void {
    this.set(new Map());
  }

  #add(path: string, identity: string): void {
    try {
      const watcher = watch(path, () => this.#onChange());
      watcher.on("error", (error) => {
        watcher.close();
        this.#watched.delete(path);
        this.#warn(path, error);
      });
      this.#watched.set(path, { identity, watcher });
    } catch (error) {
      this.#warn(path, error);
    }
  }

  #warn(path: string, error: unknown): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#log.warn("a directory can't be watched; changes are found by polling, up to seconds later", {
      path,
      error: String(error),
    });
  }
}
