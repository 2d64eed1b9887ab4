import { resolve } from "node:path";
import { OBJECT_KINDS, ProxyError, type Clock, type Issue, type Log } from "@turnout/core";
import { watch, type FSWatcher } from "node:fs";
import { FileReader } from "./file-reader.ts";
import { scanPath } from "./file-scan.ts";
import type { ObjectSink, Source } from "../source/object-sink.ts";

interface Watched {
  readonly identity: string;
  readonly watcher: FSWatcher;
}

/** Watches a changing set of directories, none of them recursively. */
class DirectoryWatcher {
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

/** Times of a file source. */
export interface FileTimings {
  /** Quiet time after a change before files are read; default 50. */
  readonly debounceMs: number;
  /** How long a file that looks half-written, or is gone, is given to become whole; default 250. */
  readonly graceMs: number;
  /** How often everything is looked at without any event; default 10,000. */
  readonly pollMs: number;
}

/** What a file source needs. */
export interface FileSourceOptions {
  /** A file, or a directory with files below it. */
  readonly path: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Hears of what is wrong, once per version; default: a warning in the log. */
  readonly report?: ((issue: Issue) => void) | undefined;
  /** Hears what ails the `files` when they can't be looked at, and "" whenever they can. */
  readonly onHealth?: ((part: string, problem: string) => void) | undefined;
  /** Replaces single times. */
  readonly timings?: Partial<FileTimings> | undefined;
}

const DEFAULT_TIMINGS: FileTimings = { debounceMs: 50, graceMs: 250, pollMs: 10_000 };
const GRACE_ROUNDS_MAX = 8;
const PART = "files";

/**
 * Make a source that follows Kubernetes objects in files.
 *
 * Edges: all kinds are synced after the first complete read, also when there are none. A file that can't be parsed keeps
 * what it said before. A single file that is deleted takes its objects along; a whole directory that is gone keeps them.
 */
export function createFileSource(options: FileSourceOptions): Source {
  return { run: (sink: ObjectSink, signal: AbortSignal): Promise<void> => follow(options, sink, signal) };
}

async function follow(options: FileSourceOptions, sink: ObjectSink, signal: AbortSignal): Promise<void> {
  const { clock, log, onHealth = (): void => undefined } = options;
  const path = resolve(options.path);
  const timings: FileTimings = { ...DEFAULT_TIMINGS, ...options.timings };
  const report = options.report ?? ((issue: Issue) => log.warn(`${issue.object}: ${issue.what}: ${issue.hint}`));
  const reader = new FileReader({ root: path, sink, log, report });
  const bell = new Bell();
  const watcher = new DirectoryWatcher(log, () => bell.ring());
  try {
    let round = 0;
    let isComplete = false;
    // The first read is waited for until it is whole: a file being written at the start must not look like fewer services.
    while (!isComplete && !signal.aborted) {
      if (round > 0) await clock.sleep(timings.graceMs, signal);
      const scan = await scanPath(path);
      watcher.set(scan.directories);
      isComplete = await reader.read(scan, { acceptsSuspects: ++round > GRACE_ROUNDS_MAX, isFirst: true });
    }
    if (signal.aborted) return;
    for (const kind of OBJECT_KINDS) sink.markSynced(kind);
    onHealth(PART, "");
    log.info("following files", { path, objects: reader.size });
    while (!signal.aborted) {
      await bell.wait(clock, isComplete ? timings.pollMs : timings.graceMs, signal);
      // Writers come in bursts: read after a quiet moment, but not for ever later.
      for (let quiet = 0; quiet < GRACE_ROUNDS_MAX && bell.consume(); quiet++) await clock.sleep(timings.debounceMs, signal);
      if (!signal.aborted) isComplete = await readAgain(path, reader, watcher, onHealth);
    }
  } finally {
    watcher.close();
  }
}

async function readAgain(
  path: string,
  reader: FileReader,
  watcher: DirectoryWatcher,
  onHealth: (part: string, problem: string) => void,
): Promise<boolean> {
  try {
    const scan = await scanPath(path);
    watcher.set(scan.directories);
    const isComplete = await reader.read(scan, { acceptsSuspects: false, isFirst: false });
    onHealth(PART, "");
    return isComplete;
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    onHealth(PART, error.message);
    return reader.rootFailed(error);
  }
}

/** Wakes the loop; rings while nobody waits are not lost. */
class Bell {
  #hasRung = false;
  #waiting: AbortController | undefined;

  ring(): void {
    this.#hasRung = true;
    this.#waiting?.abort();
  }

  /** Tell whether it rang since the last time, and forget it. */
  consume(): boolean {
    const hasRung = this.#hasRung;
    this.#hasRung = false;
    return hasRung;
  }

  /** Wait for a ring, at most `ms`. */
  async wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
    if (this.#hasRung) return;
    this.#waiting = new AbortController();
    await clock.sleep(ms, AbortSignal.any([signal, this.#waiting.signal]));
    this.#waiting = undefined;
  }
}
