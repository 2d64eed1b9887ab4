import { objectId } from "@turnout/core";
import type { Backend, Dataplane, Delta, FlowFilter, KernelObject, Observed, Outcome, Plan, World } from "@turnout/core";
import type { FakeHost } from "./fake-host.ts";
import type { Subject } from "./subject.ts";

/** A backend of whatever kind. */
export type AnyBackend = Backend<unknown, KernelObject, unknown>;

/** Where a changed backend was opened. */
export interface OpenedAt {
  readonly dataplane: Dataplane;
  readonly world: World;
}

/** Make a subject whose backends have some of their functions replaced. */
export function withBackend(change: (inner: AnyBackend, at: OpenedAt) => Partial<AnyBackend>): (subject: Subject) => Subject {
  return ({ module, createFakeHost }) => ({
    createFakeHost,
    module: {
      name: module.name,
      contract: 2,
      residence: module.residence,
      capabilities: module.capabilities,
      variants: module.variants ?? {},
      nodePortAddressesDefault: module.nodePortAddressesDefault ?? [],
      ...(module.countingOptions === undefined ? {} : { countingOptions: module.countingOptions }),
      parseOptions: (raw) => module.parseOptions(raw),
      probe: (options, world, signal) => module.probe(options, world, signal),
      async open(options, world, signal): Promise<Dataplane> {
        const dataplane = await module.open(options, world, signal);
        return {
          family(family): AnyBackend {
            const inner = dataplane.family(family);
            // Not spread: what is a getter stays one.
            return Object.defineProperties(delegate(inner), Object.getOwnPropertyDescriptors(change(inner, { dataplane, world })));
          },
          close: (stop) => dataplane.close(stop),
        };
      },
    },
  });
}

/** Make a subject whose host does something else than it would. */
export function withHost(change: (host: FakeHost) => Partial<FakeHost>): (subject: Subject) => Subject {
  return ({ module, createFakeHost }) => ({
    module,
    createFakeHost(): FakeHost {
      const host = createFakeHost();
      return {
        get world(): World {
          return host.world;
        },
        get flows(): FakeHost["flows"] {
          return host.flows;
        },
        advance: (ms) => host.advance(ms),
        setAddresses: (addresses) => host.setAddresses(addresses),
        trace: (packet, random) => host.trace(packet, random),
        connect: (packet, random) => host.connect(packet, random),
        setFault: (fault) => host.setFault(fault),
        refuse: (addresses) => host.refuse(addresses),
        tamper: (random) => host.tamper(random),
        own: () => host.own(),
        external: () => host.external(),
        ...(host.written === undefined ? {} : { written: () => host.written?.() ?? 0 }),
        ...(host.counted === undefined ? {} : { counted: () => host.counted?.() ?? 0 }),
        ...change(host),
      };
    },
  });
}

/** Plan as a backend does, and remember which difference each plan is of. */
export function rememberDeltas(inner: AnyBackend): {
  readonly plan: AnyBackend["plan"];
  readonly deltaOf: (plan: Plan<unknown>) => Delta<KernelObject> | undefined;
} {
  const deltas = new WeakMap<Plan<unknown>, Delta<KernelObject>>();
  return {
    plan: (delta) => {
      const plan = inner.plan(delta);
      deltas.set(plan, delta);
      return plan;
    },
    deltaOf: (plan) => deltas.get(plan),
  };
}

/** Keep what a delta would put, by what it would put it as. */
export function putsOf({ put }: Delta<KernelObject>): ReadonlyMap<string, KernelObject> {
  return new Map(put.map(({ after }) => [objectId(after), after]));
}

async function* noEvents(): AsyncIterable<never> {}

/** A plain object that hands everything on. */
export function delegate(inner: AnyBackend): AnyBackend {
  return {
    skeleton: (context) => inner.skeleton(context),
    render: (row, context) => inner.render(row, context),
    isShared: (object) => inner.isShared?.(object) === true,
    plan: (delta): Plan<unknown> => inner.plan(delta),
    observe: (signal): Promise<Observed<KernelObject> | undefined> => inner.observe(signal),
    apply: (plan, signal, turn): Promise<Outcome<KernelObject>> => inner.apply(plan, signal, turn),
    ...(inner.forgetFlows === undefined
      ? {}
      : {
          forgetFlows: (flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> =>
            inner.forgetFlows?.(flows, signal) ?? Promise.resolve(0),
        }),
    get reportsDrift(): boolean {
      return inner.reportsDrift === true;
    },
    ...(inner.watch === undefined ? {} : { watch: (signal: AbortSignal) => inner.watch?.(signal) ?? noEvents() }),
    ...(inner.counts === undefined ? {} : { counts: (signal, isKnown) => inner.counts?.(signal, isKnown) ?? Promise.resolve(new Map()) }),
    ...(inner.cleanup === undefined ? {} : { cleanup: (signal: AbortSignal) => inner.cleanup?.(signal) ?? Promise.resolve() }),
    ...(inner.leftovers === undefined
      ? {}
      : { leftovers: (isInUse: boolean, signal: AbortSignal) => inner.leftovers?.(isInUse, signal) ?? Promise.resolve([]) }),
  };
}
