import { objectId } from "@turnout/core";
import type {
  Backend,
  Context,
  Dataplane,
  Delta,
  Destination,
  FlowFilter,
  KernelObject,
  Observed,
  Outcome,
  Plan,
  Rule,
  ServicePort,
  World,
} from "@turnout/core";
import type { FakeHost, OptionalMember } from "../play/fake-host.ts";
import type { FindingKind } from "../checks/finding.ts";
import type { Subject } from "../play/subject.ts";

/** A backend of whatever kind. */
export type AnyBackend = Backend<unknown, KernelObject, unknown>;

/**
 * Defect of a backend or its host: what it offends against (rules, or a duty of the contract), how it comes about, as what it is found (default
 * `verdict`), and the optional member of the host without which it can't be.
 */
export type Defect = readonly [of: string, apply: (subject: Subject) => Subject, kinds?: readonly FindingKind[], needs?: OptionalMember];

/** Where a broken backend was opened. */
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

/** Make a subject whose backends see other rows than they are given. */
export function withRows(change: (row: ServicePort) => ServicePort): (subject: Subject) => Subject {
  return withBackend((inner) => ({ render: (row, context) => inner.render(change(row), context) }));
}

/** Make a subject whose backends see other rules than those of their rows. */
export function withRules(
  change: (rules: readonly Rule[], destination: Destination, row: ServicePort) => readonly Rule[],
): (subject: Subject) => Subject {
  return withRows((row) => ({
    ...row,
    destinations: row.destinations.map((destination) =>
      withSources({ ...destination, rules: change(destination.rules, destination, row) }),
    ),
  }));
}

/** Make a subject whose backends see another node than theirs. */
export function withNode(change: (context: Context<unknown>) => Context<unknown>): (subject: Subject) => Subject {
  return withBackend((inner) => ({
    skeleton: (context) => inner.skeleton(change(context)),
    render: (row, context) => inner.render(row, change(context)),
  }));
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
        foreign: () => host.foreign(),
        ...(host.written === undefined ? {} : { written: () => host.written?.() ?? 0 }),
        ...change(host),
      };
    },
  });
}

/** Indexes of a row's endpoints that fit. */
export function indexesOf({ endpoints }: ServicePort, fits: (endpoint: ServicePort["endpoints"][number]) => boolean): readonly number[] {
  return endpoints.flatMap((endpoint, index) => (fits(endpoint) ? [index] : []));
}

/** A row whose rules lead nowhere that is empty: an empty pool is refused instead. */
export function withoutEmptyPools(row: ServicePort): ServicePort {
  const isEmpty = ({ to }: Rule): boolean => (to === "cluster" || to === "local") && row[to].length === 0;
  const mend = (rule: Rule): Rule => (isEmpty(rule) ? { ...rule, to: "reject", masquerade: false } : rule);
  return { ...row, destinations: row.destinations.map((destination) => ({ ...destination, rules: destination.rules.map(mend) })) };
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

function withSources({ sourceRanges, ...destination }: Destination): Destination {
  const isUsed = destination.rules.some(({ from }) => from === "outsideSourceRanges");
  return sourceRanges === undefined || !isUsed ? destination : { ...destination, sourceRanges };
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
    get tellsDrift(): boolean {
      return inner.tellsDrift === true;
    },
    ...(inner.watch === undefined ? {} : { watch: (signal: AbortSignal) => inner.watch?.(signal) ?? noEvents() }),
    ...(inner.cleanup === undefined ? {} : { cleanup: (signal: AbortSignal) => inner.cleanup?.(signal) ?? Promise.resolve() }),
    ...(inner.leftovers === undefined
      ? {}
      : { leftovers: (isInUse: boolean, signal: AbortSignal) => inner.leftovers?.(isInUse, signal) ?? Promise.resolve([]) }),
  };
}
