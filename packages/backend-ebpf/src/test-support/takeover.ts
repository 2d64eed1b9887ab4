// A proxy as `turnout run` is, on a host in memory where a former proxy's rules are in force.
import { setTimeout as sleep } from "node:timers/promises";
import { loadConfig, Metrics, run, runConfig } from "@turnout/client/daemon";
import { createFeed, Store } from "@turnout/core";
import type { BackendModule, IPFamily } from "@turnout/core";
import { FAMILIES } from "@turnout/core/backend";
import { upsertRaw } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { ebpfModule } from "../module.ts";
import type { EbpfFakeHost } from "../testing/index.ts";
import type { EbpfWorld } from "../world.ts";
import { objectsOf, SETTINGS } from "./states.ts";

const KINDS = ["Node", "ServiceCIDR", "Service", "EndpointSlice"] as const;

const TURNS = 20;
const STEP_MS = 2_000;
const PATIENCE_MS = 60_000;

/** A run of the module that takes a former proxy's place. */
export class Takeover {
  /** Families in which the former proxy's rules are in force. */
  readonly former: Set<IPFamily>;
  readonly #host: EbpfFakeHost;
  readonly #stores: Readonly<Record<IPFamily, Store>> = { IPv4: new Store(), IPv6: new Store() };
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;

  /** Start it; `alter` makes another world of the host's. */
  constructor(host: EbpfFakeHost, fixtures: readonly ServiceFixture[], alter: (world: EbpfWorld) => EbpfWorld = (world) => world) {
    this.#host = host;
    this.former = new Set(FAMILIES);
    const metrics = new Metrics({ clock: host.world.clock, version: "0.1.0" });
    const module = { ...ebpfModule, createWorld: () => alter(host.world) };
    const flags = { "healthz-bind-address": "", "metrics-bind-address": "" };
    for (const family of FAMILIES) this.#notify(family, fixtures);
    const running = run(module, {
      config: runConfig(loadConfig({ flags, file: undefined, hostname: "node1" }), { name: ebpfModule.name }),
      feed: (family) => createFeed(this.#stores[family], { nodeName: "node1", family, settings: SETTINGS }),
      world: host.world,
      hostAddresses: () => [],
      signal: this.#stop.signal,
      eligibility: () => ({ isEligible: true, reason: "" }),
      metrics,
      leftovers: { others: () => Promise.resolve([this.#formerProxy()]), isKept: false },
    });
    this.#running = running.finally(() => metrics.close());
  }

  /** Let time of the host pass, and enough of ours: probing reads files of this machine. */
  async wait(ms: number): Promise<void> {
    for (let turn = 0; turn < TURNS; turn += 1) {
      await sleep(1);
      await this.#host.advance(ms / TURNS);
    }
  }

  /** Let time pass until this is so, however slow this machine is; at most about a minute of ours. */
  async until(isSo: () => boolean): Promise<void> {
    const untilMs = performance.now() + PATIENCE_MS;
    while (!isSo() && performance.now() < untilMs) await this.wait(STEP_MS);
  }

  /** Let time pass until the former proxy's rules are gone. */
  async done(): Promise<void> {
    await this.until(() => this.former.size === 0);
  }

  /** What failed, as the log tells it. */
  get errors(): readonly string[] {
    return this.#host.lines.filter((line) => line.startsWith("error "));
  }

  /** Have the API tell of more services. */
  want(fixtures: readonly ServiceFixture[]): void {
    for (const family of FAMILIES) this.#notify(family, fixtures);
  }

  /** End it; what is in the kernel stays. */
  async end(): Promise<void> {
    this.#stop.abort();
    await this.#host.advance(0);
    await this.#running;
  }

  #notify(family: IPFamily, fixtures: readonly ServiceFixture[]): void {
    const store = this.#stores[family];
    for (const object of objectsOf(fixtures)) upsertRaw(store, object);
    for (const kind of KINDS) store.markSynced(kind);
  }

  #formerProxy(): BackendModule {
    const { former } = this;
    const { createWorld: _, ...module } = ebpfModule;
    return {
      ...(module as unknown as BackendModule),
      name: "former",
      open: () =>
        Promise.resolve({
          family: (family) => ({
            ...UNUSED,
            leftovers: () =>
              Promise.resolve(
                former.has(family) ? [{ what: `rules of ${family}`, remove: () => Promise.resolve(void former.delete(family)) }] : [],
              ),
          }),
          close: () => Promise.resolve(),
        }),
    };
  }
}

const unused = (): never => {
  throw new Error("only leftovers are asked for");
};
const UNUSED = { skeleton: unused, render: unused, plan: unused, observe: unused, apply: unused };
