import type { Coverage } from "./coverage.ts";
import type { Heartbeat } from "./heartbeat.ts";
import { mutate } from "./mutate.ts";
import type { Random } from "./random.ts";
import { execute } from "./target.ts";
import type { FuzzFinding, FuzzTarget } from "./target.ts";

/** Thread CPU time that one input may take, in ms. They take microseconds. */
const SLOW_MS = 1000;
/** Inputs between two looks at the coverage. */
const BATCH = 100;
/** Inputs kept for what they reached, beside the corpus. */
const KEPT_MAX = 2000;

/** What a player is told and tells. */
export interface RunnerParts {
  readonly target: FuzzTarget;
  /** Of all targets, for the heartbeat. */
  readonly index: number;
  readonly corpus: readonly Buffer[];
  readonly random: Random;
  readonly heartbeat: Heartbeat;
  readonly onFinding: (finding: FuzzFinding) => void;
}

/** Plays one target: its corpus first, then inputs made of it, and of those that reached new code. */
export class Runner {
  readonly #parts: RunnerParts;
  readonly #corpus: Buffer[];
  readonly #known = new Set<string>();
  #cases = 0;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#corpus = [...parts.corpus];
  }

  /** Inputs played so far. */
  get cases(): number {
    return this.#cases;
  }

  /** Inputs that were kept for the code they reached, the corpus left out. */
  get kept(): number {
    return this.#corpus.length - this.#parts.corpus.length;
  }

  /** Play the corpus as it is. */
  async replay(): Promise<void> {
    for (const input of this.#parts.corpus) await this.#execute(input);
  }

  /** Play so many new inputs. */
  async mutations(count: number): Promise<void> {
    for (let left = count; left > 0; left--) await this.#execute(this.#mutated());
  }

  /** Play new inputs until a time (ms since the epoch), and keep those that reach new code. */
  async guided(untilMs: number, coverage: Coverage): Promise<void> {
    while (Date.now() < untilMs) {
      const batch = Array.from({ length: BATCH }, () => this.#mutated());
      for (const input of batch) await this.#execute(input);
      if (!coverage.hasNews(false)) continue;
      for (const input of batch) {
        await this.#execute(input);
        if (coverage.hasNews(true) && this.kept < KEPT_MAX) this.#corpus.push(input);
      }
    }
  }

  #mutated(): Buffer {
    const { target, random } = this.#parts;
    return mutate(this.#corpus, target.form, random);
  }

  async #execute(input: Buffer): Promise<void> {
    const { target, index, heartbeat, onFinding } = this.#parts;
    heartbeat.beat(index, input);
    this.#cases++;
    const before = process.threadCpuUsage();
    const wrong = await execute(target, input);
    const { user, system } = process.threadCpuUsage(before);
    const ms = (user + system) / 1000;
    const what = wrong ?? (ms > SLOW_MS ? `it took ${Math.round(ms)} ms of CPU` : undefined);
    if (what === undefined) return;
    // One finding for each place in the code.
    const frames = what.split("\n").filter((line) => /^\s*at /.test(line));
    const place = frames.length === 0 ? "" : `${frames[0]} ${frames[1]}`;
    if (this.#known.has(place)) return;
    this.#known.add(place);
    onFinding({ target: target.name, input, what });
  }
}
