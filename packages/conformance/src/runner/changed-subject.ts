import { objectId } from "@turnout/core";
import type { Backend, Dataplane, Delta, KernelObject, Plan, World } from "@turnout/core";
import { replacing } from "@turnout/core/testing";
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
    module: replacing(module, {
      async open(options, world, signal): Promise<Dataplane> {
        const dataplane = await module.open(options, world, signal);
        return replacing(dataplane, {
          family(family): AnyBackend {
            const inner = dataplane.family(family);
            return replacing(inner, change(inner, { dataplane, world }));
          },
        });
      },
    }),
  });
}

/** Make a subject whose host does something else than it would. */
export function withHost(change: (host: FakeHost) => Partial<FakeHost>): (subject: Subject) => Subject {
  return ({ module, createFakeHost }) => ({
    module,
    createFakeHost(): FakeHost {
      const host = createFakeHost();
      return replacing(host, change(host));
    },
  });
}

/** Plan as a backend does, and remember which difference each plan is of. */
export function rememberDeltas(inner: Pick<AnyBackend, "plan">): {
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

/** Note what a delta has put and removed, by identity. */
export function noteDone(objects: Map<string, KernelObject>, delta: Delta<KernelObject> | undefined): void {
  for (const { after } of delta?.put ?? []) objects.set(objectId(after), after);
  for (const object of delta?.remove ?? []) objects.delete(objectId(object));
}
