import { ProxyError, type BackendModule } from "@turnout/core";
import type { CreateFakeHost, Checkpoint } from "@turnout/conformance";

/** Where it is heard that nothing is left to do; `process` is one. */
export interface IdleSource {
  once(event: "beforeExit", listener: () => void): unknown;
  off(event: "beforeExit", listener: () => void): unknown;
}

/** Stands between the kit and a backend with its host, and knows which of their calls are under way. */
export class CallWatch {
  readonly module: BackendModule;
  readonly createFakeHost: CreateFakeHost;
  readonly #pending: string[] = [];
  #checkpoint: Pick<Checkpoint, "scenario" | "step"> | undefined;

  constructor(module: BackendModule, createFakeHost: CreateFakeHost) {
    this.module = this.#watched(module);
    this.createFakeHost = () => this.#watched(createFakeHost());
  }

  /** Hear where the kit looks now. */
  readonly onCheckpoint = (place: Checkpoint): void => {
    this.#checkpoint = place;
  };

  /**
   * Wait for the kit to end.
   *
   * Edges: notices when nothing in the whole process is left that could settle a call; a call that keeps the process busy is waited for.
   * @throws {ProxyError} `tool_failed` when a call can never settle, and whatever `work` rejects with.
   */
  async ended<T>(work: Promise<T>, idle: IdleSource): Promise<T> {
    let onIdle = (): void => undefined;
    const stalled = new Promise<never>((_resolve, reject) => {
      onIdle = (): void => {
        reject(this.#complaint());
      };
      idle.once("beforeExit", onIdle);
    });
    try {
      return await Promise.race([work, stalled]);
    } finally {
      idle.off("beforeExit", onIdle);
    }
  }

  #complaint(): ProxyError {
    const { scenario, step } = this.#checkpoint ?? { scenario: "none", step: "before the first" };
    return new ProxyError("tool_failed", `${this.#pending.join(", ") || "a call"} never settles`, {
      object: `backend ${this.module.name}, scenario ${JSON.stringify(scenario)}, step ${JSON.stringify(step)}`,
      hint: "what it waits for can't happen any more",
    });
  }

  /** The same object, its promises noted. Not a proxy of the object itself: that could be frozen, which a proxy has to respect. */
  #watched<T extends object>(inner: T): T {
    return new Proxy({} as T, {
      has: (_target, name) => name in inner,
      get: (_target, name) => {
        const value: unknown = Reflect.get(inner, name);
        if (typeof value !== "function") return value;
        return (...args: readonly unknown[]): unknown => {
          const result: unknown = Reflect.apply(value, inner, args);
          if (result instanceof Promise) return this.#noted(String(name), result);
          return name === "family" && typeof result === "object" && result !== null ? this.#watched(result) : result;
        };
      },
    });
  }

  async #noted(call: string, result: Promise<unknown>): Promise<unknown> {
    this.#pending.push(call);
    try {
      const value = await result;
      return call === "open" && typeof value === "object" && value !== null ? this.#watched(value) : value;
    } finally {
      this.#pending.splice(this.#pending.indexOf(call), 1);
    }
  }
}
