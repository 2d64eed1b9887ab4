import { objectId, ProxyError } from "@turnout/core";
import type { Delta, KernelObject, Outcome, Plan } from "@turnout/core";
import { withBackend } from "./changed-subject.ts";
import type { AnyBackend } from "./changed-subject.ts";
import type { Subject } from "./subject.ts";

const KIND = "conformance-kit";

/** A plan of ours, with the backend's own inside. */
interface WrappedPlan extends Plan<unknown> {
  /** Undefined: there is nothing for the backend to do. */
  readonly inner: Plan<unknown> | undefined;
  readonly failing: readonly string[];
}

/**
 * Make a subject whose host never takes one object more, of the rows of a Service or of the skeleton; the backend itself never hears of it.
 *
 * @param owner whose object it is
 * @param service name of the Service, when it is a row's
 */
export function failingObject(subject: Subject, owner: "row" | "skeleton", service: string): Subject {
  return withBackend((inner) => ({
    skeleton: (context) => (owner === "skeleton" ? [...inner.skeleton(context), objectOf("skeleton")] : inner.skeleton(context)),
    render: (row, context) => {
      const objects = inner.render(row, context);
      return owner === "row" && row.name.name === service ? [...objects, objectOf(row.key)] : objects;
    },
    plan: (delta): WrappedPlan => planWithout(inner, delta),
    async apply(plan, signal): Promise<Outcome<KernelObject>> {
      const { inner: innerPlan, failing } = plan as WrappedPlan;
      const outcome = innerPlan === undefined ? {} : await inner.apply(innerPlan, signal);
      const error = new ProxyError("tool_failed", "the conformance kit has this fail");
      return { ...outcome, failed: new Map([...(outcome.failed ?? []), ...failing.map((id) => [id, error] as const)]) };
    },
  }))(subject);
}

/** Whether a sync failed with nothing but what the kit has fail. */
export function isOfKit(error: unknown): boolean {
  return ProxyError.is(error) && error.object !== undefined && error.object.split(", ").every((one) => one.startsWith(`${KIND} `));
}

function objectOf(key: string): KernelObject {
  return { kind: KIND, key, value: true };
}

function planWithout(inner: AnyBackend, delta: Delta<KernelObject>): WrappedPlan {
  const put = delta.put.filter(({ after }) => after.kind !== KIND);
  const failing = delta.put.flatMap(({ after }) => (after.kind === KIND ? [objectId(after)] : []));
  if (put.length + delta.remove.length + delta.lingering.length === 0) return { steps: [], inner: undefined, failing };
  const plan = inner.plan({ ...delta, put });
  return { ...plan, inner: plan, failing };
}
