export { Buffer } from "buffer/index.js";

/** What little is asked of Node's process. */
export const process: { readonly platform: string; readonly version: string; readonly env: Readonly<Record<string, string>> } = {
  platform: "linux",
  version: "a browser",
  env: {},
};

/** A timer as Node's: it can be told not to keep a process alive, which a page has no use for. A browser's `clearTimeout` takes it for its number. */
class Timer {
  readonly #id: number;
  constructor(id: number) {
    this.#id = id;
  }
  unref(): this {
    return this;
  }
  valueOf(): number {
    return this.#id;
  }
}

/** `setTimeout` with Node's kind of timer. */
export function setTimeout(run: () => void, ms?: number): Timer {
  return new Timer(Number(globalThis.setTimeout(run, ms)));
}
