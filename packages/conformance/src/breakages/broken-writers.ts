import { cleanUpBackend, FAMILIES, isEqual, objectId } from "@turnout/core";
import type { Delta, Destination, KernelObject, Leftover, Outcome, Rule, ServicePort } from "@turnout/core";
import { noteDone, rememberDeltas, withBackend, withHost } from "../runner/changed-subject.ts";
import { withoutEmptyPools } from "./broken-backend.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import type { Defect } from "./broken-backend.ts";

/** A row with other rules at its destinations. */
export function breakDestinations(row: ServicePort, rulesOf: (destination: Destination) => readonly Rule[]): ServicePort {
  return { ...row, destinations: row.destinations.map((destination) => ({ ...destination, rules: rulesOf(destination) })) };
}

/** Defects of those that act: planning, applying, observing, forgetting, cleaning up. */
export const BROKEN_APPLIERS: Readonly<Record<string, Defect>> = {
  "forgets to delete": [
    "R-48, R-58",
    withBackend((inner) => ({ plan: (delta) => inner.plan({ ...delta, remove: [] }) })),
    ["verdict", "leftover"],
  ],
  "forgets to change": [
    "R-22, R-58",
    withBackend((inner) => ({ plan: (delta) => inner.plan({ ...delta, put: delta.put.filter(({ before }) => before === undefined) }) })),
    ["verdict", "not-idempotent"],
  ],
  "trusts its memory after a failed apply": ["R-58", withBackend(fromMemory), ["error", "leftover"]],
  "keeps a cache that outlives the truth": ["R-58", withBackend(withCache), ["error", "leftover"]],
  "lets the first who came keep an address": ["R-53", withBackend(firstComeFirstServed)],
  "never gives up an address": ["R-48, R-64, R-65", withBackend((inner) => keepingAddresses(inner, () => true))],
  "keeps stale flows": ["R-41", withBackend(() => ({ forgetFlows: () => Promise.resolve(0) })), ["flow"]],
  "forgets flows that should stay": [
    "R-42",
    withBackend((inner) => ({
      forgetFlows: (flows, signal) =>
        inner.forgetFlows?.(
          flows.map((flow) => ({ ...flow, keep: [] })),
          signal,
        ) ?? Promise.resolve(0),
    })),
    ["flow"],
  ],
  "forgets flows although it is told to stop": [
    "the contract: forgetFlows",
    withBackend((inner) => ({ forgetFlows: (flows) => inner.forgetFlows?.(flows, new AbortController().signal) ?? Promise.resolve(0) })),
    ["contract"],
  ],
  "applies everything twice": [
    "the contract: apply",
    withBackend((inner) => ({
      async apply(plan, signal) {
        await inner.apply(plan, signal);
        return await inner.apply(plan, signal);
      },
    })),
    ["error", "contract"],
  ],
  "says nothing of what it applied": [
    "the contract: apply",
    withBackend((inner) => ({
      apply: (plan, signal) => inner.apply(plan, signal).then(() => undefined as unknown as Outcome<KernelObject>),
    })),
    ["error"],
  ],
  "does not recognise what it made": [
    "the contract: observe",
    withBackend((inner) => ({
      async observe(signal) {
        const observed = await inner.observe(signal);
        return observed === undefined ? undefined : { ...observed, objects: withoutLast(observed.objects) };
      },
    })),
    ["not-idempotent"],
  ],
  "answers one question in two ways": ["the contract: render is pure", withBackend(withMoods), ["contract"]],
  "leaves something behind at cleanup": [
    "the contract: cleanup",
    withBackend((inner, { world }) => ({
      async cleanup(signal) {
        const observed = await inner.observe(signal);
        const remove = [...withoutFirst(observed?.objects ?? new Map<string, KernelObject>()).values()];
        await inner.apply(inner.plan({ put: [], remove, lingering: [], nowMs: world.clock.nowMs() }), signal);
      },
    })),
    ["cleanup"],
  ],
  "lays hands on what isn't its own": [
    "the contract: only ours",
    // Nobody can say how for every host, so the host says that it happened.
    withHost((host) => ({ external: () => (host.own().length > 0 ? host.external().slice(1) : host.external()) })),
    ["cleanup"],
  ],
  "takes what is in use for a leftover": ["the contract: leftovers", withBackend(withLeftovers(() => true)), ["cleanup"]],
  "leaves itself in force beside whoever replaces it": ["the contract: leftovers", withBackend(withLeftovers(() => false)), ["cleanup"]],
  "calls its rules kube-proxy's": [
    "the contract: leftovers",
    withBackend(withLeftovers((isInUse) => !isInUse, { by: "kube-proxy" })),
    ["leftover"],
  ],
  "takes too much at cleanup": [
    "the contract: cleanup",
    withBackend((_, { dataplane, world }) => ({
      async cleanup(signal) {
        for (const family of FAMILIES) await cleanUpBackend(dataplane.family(family), world.clock, signal);
      },
    })),
    ["cleanup"],
  ],
};

/** It takes all of its own for a leftover, or nothing. */
function withLeftovers(isLeftover: (isInUse: boolean) => boolean, reported: Partial<Leftover> = {}): Parameters<typeof withBackend>[0] {
  return (inner, { world }) => ({
    leftovers: (isInUse) => {
      const remove = (stop: AbortSignal): Promise<void> => cleanUpBackend(inner, world.clock, stop);
      return Promise.resolve(isLeftover(isInUse) ? [{ what: "all of it", remove, ...reported }] : []);
    },
  });
}

/** It believes that nothing of a plan that failed was done. */
function fromMemory(inner: AnyBackend): Partial<AnyBackend> {
  const { plan, deltaOf } = rememberDeltas(inner);
  const memory = new Map<string, KernelObject>();
  let isUnknown = false;
  return {
    plan,
    async apply(planned, signal) {
      isUnknown = true;
      const outcome = await inner.apply(planned, signal);
      isUnknown = false;
      noteDone(memory, deltaOf(planned));
      return outcome;
    },
    async observe(signal) {
      const observed = await inner.observe(signal);
      if (isUnknown) return { objects: new Map(memory), lingering: [] };
      memory.clear();
      for (const [id, object] of observed?.objects ?? []) memory.set(id, object);
      return observed;
    },
  };
}

/** What it has put once it never puts again while it lives. */
function withCache(inner: AnyBackend): Partial<AnyBackend> {
  const cache = new Map<string, KernelObject>();
  const isNew = ({ after }: Delta<KernelObject>["put"][number]): boolean => !isEqual(cache.get(objectId(after))?.value, after.value);
  const { plan, deltaOf } = rememberDeltas({
    plan: (delta) => inner.plan({ ...delta, put: delta.put.filter(isNew) }),
  });
  return {
    plan,
    async apply(planned, signal) {
      const outcome = await inner.apply(planned, signal);
      noteDone(cache, deltaOf(planned));
      return outcome;
    },
  };
}

/** A row keeps an address that it once had, whoever is older. */
function firstComeFirstServed(inner: AnyBackend): Partial<AnyBackend> {
  const holders = new Map<string, string>();
  return keepingAddresses(inner, (address, row) => {
    const holder = holders.get(address) ?? row;
    holders.set(address, holder);
    return holder === row;
  });
}

/**
 * A row answers for ever where it once did, if the address was its own. Always: also where it has lost it to what is no row (a service range), or to one
 * that has another kind of it (a node port).
 */
function keepingAddresses(inner: AnyBackend, isOwn: (address: string, row: string) => boolean): Partial<AnyBackend> {
  const had = new Map<string, Map<string, Destination>>();
  return {
    render(row, context) {
      const mine = had.get(row.key) ?? new Map<string, Destination>();
      had.set(row.key, mine);
      for (const destination of row.destinations) {
        const address = `${destination.address} ${destination.port} ${row.name.protocol}`;
        if (isOwn(address, row.key)) mine.set(address, destination);
      }
      return inner.render(withoutEmptyPools({ ...row, destinations: [...mine.values()] }), context);
    },
  };
}

/** Every second answer lacks something. */
function withMoods(inner: AnyBackend): Partial<AnyBackend> {
  let asked = 0;
  return {
    render(row, context) {
      const objects = inner.render(row, context);
      return asked++ % 2 === 0 ? objects : objects.slice(0, -1);
    },
  };
}

function withoutLast(objects: ReadonlyMap<string, KernelObject>): ReadonlyMap<string, KernelObject> {
  return new Map([...objects].slice(0, -1));
}

function withoutFirst(objects: ReadonlyMap<string, KernelObject>): ReadonlyMap<string, KernelObject> {
  return new Map([...objects].slice(1));
}
