import { demandOutcome, isEqual, objectId } from "@turnout/core";
import type { Backend, Context, Delta, FlowFilter, KernelObject, Observed, Outcome, Plan, ServicePort, Turn } from "@turnout/core";
import { firstDifference } from "./first-difference.ts";

/** What was noticed of a backend since the last {@link BackendNotes.clear}. */
export class BackendNotes {
  /** Calls that rejected. */
  readonly failures: { readonly call: string; readonly error: unknown }[] = [];
  /** Pure functions that gave two answers to one question. */
  readonly impure: string[] = [];
  /** Differences that were planned. */
  readonly deltas: Delta<KernelObject>[] = [];
  /** Objects told to be deferred that are in force all the same. */
  readonly untrue: string[] = [];
  /** Ask every pure function twice. */
  asksTwice = true;
  /** What lingers by what the backend said, by identity. */
  lingering: ReadonlySet<string> = new Set();
  /** It is reading what the host holds. */
  isReading = false;
  /** Called when a call that changes the host has failed. */
  onFailure: (() => void) | undefined;

  clear(): void {
    this.failures.length = 0;
    this.impure.length = 0;
    this.deltas.length = 0;
    this.untrue.length = 0;
  }
}

/** The backend as it is, with somebody who takes notes between it and its caller. */
export function watchBackend(inner: Backend<unknown, KernelObject, unknown>, notes: BackendNotes): Backend<unknown, KernelObject, unknown> {
  const twice = <T>(what: string, ask: () => T): T => {
    const answer = ask();
    if (notes.asksTwice && !isEqual(answer, ask())) notes.impure.push(what);
    return answer;
  };
  const noted = async <T>(call: string, run: () => Promise<T>): Promise<T> => {
    try {
      return await run();
    } catch (error) {
      notes.failures.push({ call, error });
      if (call === "apply") notes.onFailure?.();
      throw error;
    }
  };
  let planned: Delta<KernelObject> | undefined;
  return {
    skeleton: (context: Context<unknown>) => twice("skeleton", () => inner.skeleton(context)),
    render: (row: ServicePort, context: Context<unknown>) => twice(`render of ${row.key}`, () => inner.render(row, context)),
    ...(inner.keepPlaces === undefined
      ? {}
      : {
          keepPlaces: (wanted: KernelObject, held: KernelObject): KernelObject =>
            twice("keepPlaces", () => inner.keepPlaces?.(wanted, held) ?? wanted),
        }),
    isShared: (object) => inner.isShared?.(object) === true,
    isOptional: (object) => inner.isOptional?.(object) === true,
    plan(delta: Delta<KernelObject>): Plan<unknown> {
      notes.deltas.push(delta);
      planned = delta;
      return twice("plan", () => inner.plan(delta));
    },
    async observe(signal: AbortSignal): Promise<Observed<KernelObject> | undefined> {
      notes.isReading = true;
      try {
        return await noted("observe", () => inner.observe(signal));
      } finally {
        notes.isReading = false;
      }
    },
    async apply(plan: Plan<unknown>, signal: AbortSignal, turn?: Turn): Promise<Outcome<KernelObject>> {
      const outcome = await noted("apply", () => inner.apply(plan, signal, turn));
      if (planned !== undefined) demandOutcome(outcome, planned);
      if (planned !== undefined) notes.lingering = stillLingering(notes.lingering, planned, outcome);
      const { deferred = new Set<string>() } = outcome;
      if (deferred.size === 0 || planned === undefined) return outcome;
      const observed = await noted("observe", () => inner.observe(signal));
      notes.untrue.push(...active(planned, deferred, observed));
      return outcome;
    },
    ...(inner.forgetFlows === undefined
      ? {}
      : {
          forgetFlows: (flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> =>
            noted("forgetFlows", () => inner.forgetFlows?.(flows, signal) ?? Promise.resolve(0)),
        }),
    ...(inner.explain === undefined ? {} : { explain: (plan: Plan<unknown>): string => inner.explain?.(plan) ?? "" }),
  };
}

function stillLingering(
  before: Iterable<string>,
  { put, remove, lingering }: Delta<KernelObject>,
  outcome: Outcome<KernelObject>,
): Set<string> {
  const left = new Set(before);
  for (const object of [...put.map(({ after }) => after), ...remove, ...lingering.map((due) => due.object)]) left.delete(objectId(object));
  for (const id of outcome.deferred ?? []) if (lingering.some(({ object }) => objectId(object) === id)) left.add(id);
  for (const { object } of outcome.lingering ?? []) left.add(objectId(object));
  return left;
}

/** Objects that should be as they were and are as they were to be. */
function active(
  { put, remove }: Delta<KernelObject>,
  deferred: ReadonlySet<string>,
  observed: Observed<KernelObject> | undefined,
): readonly string[] {
  if (observed === undefined) return [];
  const isThere = (object: KernelObject): boolean => isEqual(observed.objects.get(objectId(object))?.value, object.value);
  return [...put.map(({ after }) => after).filter(isThere), ...remove.filter((object) => !observed.objects.has(objectId(object)))]
    .map(objectId)
    .filter((id) => deferred.has(id));
}

/** Say in one line what a difference would change, and of what changes its first field that differs. */
export function deltaText({ put, remove }: Pick<Delta<KernelObject>, "put" | "remove">): string {
  const lines = [
    ...put.map(({ before, after }) =>
      before === undefined ? `add ${objectId(after)}` : `change ${objectId(after)} (${firstDifference(before.value, after.value)})`,
    ),
    ...remove.map((object) => `remove ${objectId(object)}`),
  ];
  return lines.length > 8 ? `${lines.slice(0, 8).join(", ")} and ${lines.length - 8} more` : lines.join(", ");
}
