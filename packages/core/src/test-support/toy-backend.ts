import { objectId } from "../contract/backend.ts";
import type { Backend, Context, Delta, Due, KernelObject, Observed, Outcome, Plain, Plan, Turn } from "../contract/backend.ts";
import { hostPort } from "../model/addresses.ts";
import { isEqual } from "../model/equal.ts";
import { ProxyError } from "../model/errors.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { ServicePort } from "../model/rows.ts";
import type { FlowFilter } from "../contract/world.ts";

/** Facts of the toy's host: only something that shows up in every object. */
export interface ToyFacts {
  readonly generation: number;
}

/** One step of the toy: what to do with one object. */
export interface ToyStep {
  readonly do: "put" | "remove" | "finish";
  readonly object: KernelObject;
  /** What is said to linger of what is put. */
  readonly lingering?: KernelObject | undefined;
}

/** What the toy's host does wrong. */
export interface ToyFaults {
  /** Throw before anything is done, or after everything is: the caller can't tell which. */
  readonly apply?: () => "before" | "after" | undefined;
  /** Of what is thrown before anything is done or for what is refused, and by looking; default `tool_failed`. */
  readonly code?: ErrorCode;
  /** Throw when the host is looked at. */
  readonly observe?: () => boolean;
  /** Objects this host never takes. */
  readonly refuses?: (object: KernelObject) => boolean;
  /** Refused objects are said in the outcome and the rest is done, instead of refusing the whole plan. */
  readonly isAtomic?: boolean;
  /** Removed objects stay on the host this long, in ms. */
  readonly lingersMs?: number;
  /** Steps of one plan after which the time of the turn is up; default: it never is. */
  readonly stepsPerTurn?: number;
  readonly forget?: () => boolean;
  /** Flows are forgotten only after this, as on a host that has many; throws when the signal does. */
  readonly forgetting?: (signal: AbortSignal) => Promise<void>;
}

/**
 * A host that only exists in memory, with a backend for it: one object per destination, one shared by all rows with as
 * many endpoints, and one that is always there.
 *
 * Shape: `objects` is what is in force; `plans` counts what was carried out. What is put must not be there in that form,
 * what is removed must be there, and what lingers must be told: anything else is noted in `violations`.
 */
export class ToyHost {
  readonly objects: Map<string, KernelObject> = new Map<string, KernelObject>();
  readonly forgotten: FlowFilter[][] = [];
  faults: ToyFaults = {};
  /** Plans that did not fit what the host held: defects of whoever made them. */
  readonly violations: string[] = [];
  plans = 0;
  observations = 0;
  /** Called when a plan was carried out. */
  onPlan: (() => void) | undefined;
  /** What each turn could last at most, in ms. */
  readonly turnsMs: number[] = [];
  readonly #lingering = new Map<string, KernelObject>();
  #nowMs = 0;

  /** Make the backend that works on this host. */
  open(): Backend<ToyFacts, KernelObject, ToyStep> {
    return {
      skeleton: ({ node, host }: Context<ToyFacts>): readonly KernelObject[] => [
        { kind: "base", key: "base", value: { bit: node.settings.masqueradeBit, ...host } },
      ],
      render: renderToy,
      isShared: ({ kind }: KernelObject): boolean => kind === "pick",
      plan: (delta: Delta<KernelObject>): Plan<ToyStep> => this.#plan(delta),
      explain: ({ steps }: Plan<ToyStep>): string => steps.map((step) => `${step.do} ${objectId(step.object)}`).join("\n"),
      observe: (): Promise<Observed<KernelObject> | undefined> => this.#observe(),
      apply: (plan: Plan<ToyStep>, _signal: AbortSignal, turn?: Turn): Promise<Outcome<KernelObject>> => this.#apply(plan, turn),
      forgetFlows: (flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> => this.#forget(flows, signal),
    };
  }

  #plan({ put, remove, lingering, nowMs }: Delta<KernelObject>): Plan<ToyStep> {
    this.#nowMs = nowMs;
    return {
      steps: [
        ...remove.map((object) => ({ do: "remove", object }) as const),
        ...put.map(({ after, lingering: left }) => ({ do: "put", object: after, lingering: left }) as const),
        ...lingering.map(({ object }: Due<KernelObject>) => ({ do: "finish", object }) as const),
      ],
    };
  }

  async #observe(): Promise<Observed<KernelObject> | undefined> {
    this.observations++;
    await Promise.resolve();
    if (this.faults.observe?.() === true) throw new ProxyError(this.faults.code ?? "tool_failed", "the toy host can't be looked at");
    return { objects: new Map(this.objects), lingering: [...this.#lingering.values()] };
  }

  async #apply({ steps }: Plan<ToyStep>, turn: Turn | undefined): Promise<Outcome<KernelObject>> {
    await Promise.resolve();
    this.plans++;
    if (turn !== undefined) this.turnsMs.push(turn.untilMs - this.#nowMs);
    const fault = this.faults.apply?.();
    if (fault === "before") throw new ProxyError(this.faults.code ?? "tool_failed", "the toy host failed");
    const { lingersMs, refuses: isRefused, stepsPerTurn = Number.POSITIVE_INFINITY } = this.faults;
    const now = steps.slice(0, stepsPerTurn);
    const refused = now.filter((step) => step.do === "put" && isRefused?.(step.object) === true);
    if (refused.length > 0 && this.faults.isAtomic !== false)
      throw new ProxyError(this.faults.code ?? "tool_failed", "the toy host refused the plan");
    for (const step of now.filter((one) => !refused.includes(one))) this.#carryOut(step);
    this.onPlan?.();
    if (fault === "after") throw new ProxyError("tool_failed", "the toy host failed");
    const failed = new Map(
      refused.map(({ object }) => [objectId(object), new ProxyError("tool_failed", "refused", { object: object.key })]),
    );
    const removed = lingersMs === undefined ? [] : now.filter((step) => step.do === "remove");
    return {
      ...(failed.size === 0 ? {} : { failed }),
      ...(now.length === steps.length ? {} : { deferred: new Set(steps.slice(now.length).map(({ object }) => objectId(object))) }),
      ...(removed.length === 0 ? {} : { lingering: removed.map(({ object }) => ({ object, afterMs: lingersMs ?? 0 })) }),
    };
  }

  #carryOut({ do: what, object, lingering }: ToyStep): void {
    const id = objectId(object);
    const present = this.objects.get(id);
    if (what === "finish") {
      if (!this.#lingering.delete(id)) this.violations.push(`finished ${id}, which did not linger`);
    } else if (what === "remove") {
      if (present === undefined) this.violations.push(`removed ${id}, which was not there`);
      if (present !== undefined && this.faults.lingersMs !== undefined) this.#lingering.set(id, present);
      this.objects.delete(id);
    } else {
      if (isEqual(present?.value, object.value)) this.violations.push(`put ${id}, which was there already`);
      if (!isEqual(lingering, this.#lingering.get(id))) this.violations.push(`put ${id}, of which more lingered than was said, or less`);
      this.#lingering.delete(id);
      this.objects.set(id, object);
    }
  }

  async #forget(flows: readonly FlowFilter[], signal: AbortSignal): Promise<number> {
    await (this.faults.forgetting?.(signal) ?? Promise.resolve());
    if (this.faults.forget?.() === true) throw new ProxyError("tool_failed", "the toy host remembers");
    this.forgotten.push([...flows]);
    return flows.length;
  }
}

/** What a row needs on the toy's host. Pure. */
export function renderToy(row: ServicePort, { host }: Context<ToyFacts>): readonly KernelObject[] {
  const pool = (indexes: readonly number[]): readonly string[] =>
    indexes.flatMap((index) => row.endpoints.slice(index, index + 1).map(({ ip, port }) => hostPort(ip, port)));
  const pools = { cluster: pool(row.cluster), local: pool(row.local), affinity: row.affinitySeconds ?? 0, ...host };
  const own = row.destinations.map(({ address, port, rules, sourceRanges }): KernelObject => {
    const value = { row: row.key, ...pools, rules: rules as unknown as Plain, ranges: sourceRanges ?? [] };
    return { kind: "destination", key: `${address === "" ? "*" : hostPort(address, port)} ${port}/${row.name.protocol}`, value };
  });
  const size = row.cluster.length;
  return size === 0 ? own : [...own, { kind: "pick", key: String(size), value: { size, ...host } }];
}

/** Addresses in force on a host, sorted. */
export function addressesOf({ objects }: ToyHost): readonly string[] {
  return [...objects.values()].flatMap(({ kind, key }) => (kind === "destination" ? [key.slice(0, key.lastIndexOf(":"))] : [])).toSorted();
}

/** Refuse what has this anywhere in its key and value. */
export function refuses(part: string): (object: KernelObject) => boolean {
  return ({ key, value }) => `${key} ${JSON.stringify(value)}`.includes(part);
}
