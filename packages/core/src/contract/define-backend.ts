import type { IPFamily } from "../model/api-objects.ts";
import type { Backend, BackendModule, HostEvent, HostReport, KernelObject } from "./backend.ts";
import { kindsOf, readOptions } from "./declared-options.ts";
import type { OptionsOf } from "./declared-options.ts";
import type { World } from "./world.ts";

/**
 * What a backend consists of, for {@link defineBackend}: what {@link BackendModule} has, with options that are declared instead of parsed, facts
 * instead of a probe, and what both families share instead of a dataplane.
 *
 * Shape: options O, host facts H, kernel objects K, steps of a plan S, the world W, and what both families share, D.
 */
export type BackendDefinition<O, H, K extends KernelObject, S, W extends World, D> = BackendParts<O, H, K, S, W, D> &
  (FactSource<O, H, W> | FactsOfProbe<O, H, W>);

interface BackendParts<O, H, K extends KernelObject, S, W extends World, D> extends Omit<
  BackendModule<O, H, K, S, W>,
  "contract" | "options" | "parseOptions" | "probe" | "open"
> {
  readonly options: OptionsOf<O>;
  /** Change options that depend on one another. Pure. @throws {ProxyError} `invalid_object`. */
  readonly settle?: (options: O) => O;
  /** Make what both families share. Touches nothing yet. */
  readonly share: (options: O, world: W) => D;
  /** Make one family's backend; called once for each family in use. */
  readonly family: (family: IPFamily, shared: D) => Backend<H, K, S>;
  /** See `close` of `Dataplane`: let go of all families' handles. Absent: there are none. */
  readonly close?: (shared: D, signal: AbortSignal) => Promise<void>;
}

/** Facts are read by the probe, and again by `watch`. */
interface FactSource<O, H, W> {
  readonly facts: (options: O, world: W, signal: AbortSignal) => Promise<H>;
  /** Yields when facts may have changed; listens from the call on. Absent: facts stay, or a family's own `watch` reports them. */
  readonly factChanges?: (world: W, signal: AbortSignal) => AsyncIterable<unknown>;
  /** Look at tools, kernel and rights; absent: it runs on every host. Facts are read afterwards. */
  readonly probe?: (options: O, world: W, signal: AbortSignal) => Promise<Partial<HostReport<H>>>;
}

/** Facts and the rest of the report depend on each other. */
interface FactsOfProbe<O, H, W> {
  readonly facts?: never;
  readonly factChanges?: never;
  readonly probe: (options: O, world: W, signal: AbortSignal) => Promise<HostReport<H>>;
}

/** Make a backend module of what is special about a backend. */
export function defineBackend<O, H, K extends KernelObject, S, W extends World, D>(
  definition: BackendDefinition<O, H, K, S, W, D>,
): BackendModule<O, H, K, S, W> {
  const { options, settle = (read): O => read, facts, factChanges, probe: _probe, share, family, close, ...rest } = definition;
  return {
    ...rest,
    contract: 2,
    options: kindsOf(options),
    parseOptions: (raw) => settle(readOptions(rest.name, options, raw)),
    probe: async (read, world, signal) => {
      if (definition.facts === undefined) return await definition.probe(read, world, signal);
      const found = await definition.probe?.(read, world, signal);
      return { versions: {}, problems: [], ...found, facts: found?.facts ?? (await definition.facts(read, world, signal)) };
    },
    open: (read, world) => {
      const shared = share(read, world);
      return Promise.resolve({
        family(one) {
          const backend = family(one, shared);
          if (factChanges !== undefined)
            backend.watch ??= (signal) => reports(factChanges(world, signal), () => facts(read, world, signal));
          return backend;
        },
        close: async (signal) => await close?.(shared, signal),
      });
    },
  };
}

/** Report facts as they are, and whenever they may have changed. */
async function* reports<H>(changes: AsyncIterable<unknown>, read: () => Promise<H>): AsyncIterable<HostEvent<H>> {
  yield { kind: "facts", facts: await read() };
  for await (const _ of changes) yield { kind: "facts", facts: await read() };
}
