import { Session, type Profiler } from "node:inspector";

/**
 * Tells by V8's block coverage whether inputs reach code that none reached before. Of this thread, and only of this repository's packages.
 *
 * Edges: a look takes milliseconds, so look at many inputs together first.
 */
export class Coverage {
  readonly #session = new Session();
  readonly #reached = new Set<string>();

  constructor() {
    this.#session.connect();
    this.#session.post("Profiler.enable");
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  }

  /** Whether something was reached since the last look that never was before; remembers it if `keeps`. */
  hasNews(keeps: boolean): boolean {
    const news = this.#take().filter((block) => !this.#reached.has(block));
    if (keeps) for (const block of news) this.#reached.add(block);
    return news.length > 0;
  }

  /** Stop counting. */
  close(): void {
    this.#session.disconnect();
  }

  #take(): readonly string[] {
    let scripts: readonly Profiler.ScriptCoverage[] = [];
    // Within one thread the answer is there before `post` returns.
    this.#session.post("Profiler.takePreciseCoverage", (_, answer) => (scripts = answer.result));
    return scripts
      .filter(({ url }) => url.includes("/packages/"))
      .flatMap(({ url, functions }) =>
        functions.flatMap(({ ranges }) =>
          ranges.filter(({ count }) => count > 0).map(({ startOffset, endOffset }) => `${url} ${startOffset} ${endOffset}`),
        ),
      );
  }
}
