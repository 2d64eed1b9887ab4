import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BackendModule, IPFamily } from "@turnout/core";
import { loadConfig } from "../daemon/config/loaded-config.ts";
import { runConfig, type RunConfig } from "../daemon/config/run-config.ts";
import { run, type RunOptions } from "../daemon/run/main.ts";
import { Metrics } from "../daemon/metrics/metrics.ts";
import { flushPromises, ToyFeed, toyFull, ToyKernel, toyModule, toyNode, toyRow, toyWorld } from "./toys.ts";

/** What the toy backend calls the one service {@link ToyProxy.pushBoth} has. */
export const SERVICE = "service 10.96.0.10:80";

/** The defaults, without servers. */
export function toyConfig(overrides: Partial<RunConfig> = {}): RunConfig {
  const flags = { "healthz-bind-address": "", "metrics-bind-address": "" };
  return { ...runConfig(loadConfig({ flags, file: undefined, hostname: "node1" }), { name: "toy" }), ...overrides };
}

/** Everything around one run of the toy backend. */
export class ToyProxy {
  readonly kernel: ToyKernel = new ToyKernel();
  readonly feeds: Readonly<Record<IPFamily, ToyFeed>> = { IPv4: new ToyFeed(), IPv6: new ToyFeed() };
  readonly world: ReturnType<typeof toyWorld> = toyWorld();
  readonly stop: AbortController = new AbortController();
  readonly metrics: Metrics = new Metrics({ clock: this.world.clock, version: "0.1.0" });
  /** Where the socket of `turnout why` is. */
  readonly runDirectory: string = mkdtempSync(join(tmpdir(), "turnout-toy-"));
  #running: Promise<unknown> = Promise.resolve();

  /** Run; the outcome may be looked at any time later. */
  start(options: Partial<RunOptions> = {}, module: BackendModule = toyModule(this.kernel)): Promise<void> {
    const running = run(module, {
      config: toyConfig(),
      feed: (family) => this.feeds[family],
      world: this.world,
      hostAddresses: (family) => (family === "IPv4" ? ["127.0.0.1"] : ["::1"]),
      signal: this.stop.signal,
      eligibility: () => ({ isEligible: true, reason: "" }),
      metrics: this.metrics,
      runDirectory: this.runDirectory,
      ...options,
    });
    this.#running = Promise.allSettled([running]);
    return running;
  }

  /** Run, and have both families' first states come into force. */
  async started(options?: Partial<RunOptions>, module?: BackendModule): Promise<void> {
    void this.start(options, module);
    this.pushBoth();
    await flushPromises();
  }

  /** Give both families their first state: one service, and none. */
  pushBoth(): void {
    this.feeds.IPv4.push(toyFull([toyRow("cart")]));
    this.feeds.IPv6.push(toyFull([], toyNode({ family: "IPv6", addresses: [] })));
  }

  /** Stop and wait for the end, however it comes. */
  async end(): Promise<void> {
    this.stop.abort();
    await flushPromises();
    await this.#running;
    this.metrics.close();
    rmSync(this.runDirectory, { recursive: true, force: true });
  }
}
