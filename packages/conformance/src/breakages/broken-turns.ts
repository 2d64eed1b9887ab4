import { objectId } from "@turnout/core";
import type { Delta, Destination, KernelObject, Outcome, Turn, World } from "@turnout/core";
import { rememberDeltas, withBackend } from "../runner/changed-subject.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import type { Defect } from "./broken-backend.ts";

/** Defects of those that put things off, or take too long. */
export const BROKEN_TURNS: Readonly<Record<string, Defect>> = {
  "looks at all addresses for each of them": [
    "the contract: render",
    withBackend((inner) => ({
      render: (row, context) => inner.render({ ...row, destinations: row.destinations.filter(isFirst) }, context),
    })),
    ["contract"],
  ],
  "never comes back to what it has put off": [
    "R-58",
    withBackend((inner, { world }) => forgettingDeferred(inner, world)),
    ["error", "leftover", "not-idempotent"],
  ],
  "says it has put off what it has done": [
    "the contract: deferred",
    withBackend((inner, { world }) => sayingDeferred(inner, world)),
    // What is done already is wanted once more, and a host may refuse that.
    ["error", "contract"],
  ],
};

/** As one would take care that no address is there twice. */
function isFirst({ address }: Destination, index: number, all: readonly Destination[]): boolean {
  return all.findIndex((other) => other.address === address) === index;
}

function isOver(turn: Turn | undefined, { clock }: World): boolean {
  return turn !== undefined && clock.nowMs() >= turn.untilMs;
}

/** Say of the last of several objects that it was put off. */
function deferring({ put }: Delta<KernelObject>): Outcome<KernelObject> {
  const last = put.at(-1)?.after;
  return last === undefined || put.length < 2 ? {} : { deferred: new Set([objectId(last)]) };
}

/** It does all of it, and says that it has not. */
function sayingDeferred(inner: AnyBackend, world: World): Partial<AnyBackend> {
  const { plan, deltaOf } = rememberDeltas(inner);
  return {
    plan,
    async apply(planned, signal, turn) {
      // Without a turn: it is to do all of it, also where it could defer.
      const outcome = await inner.apply(planned, signal);
      const delta = deltaOf(planned);
      return delta === undefined || !isOver(turn, world) ? outcome : { ...outcome, ...deferring(delta) };
    },
  };
}

/** What it has put off it takes for done when it is asked again. */
function forgettingDeferred(inner: AnyBackend, world: World): Partial<AnyBackend> {
  const forgotten = new Set<string>();
  const without = (delta: Delta<KernelObject>): Delta<KernelObject> => ({
    ...delta,
    put: delta.put.filter(({ after }) => !forgotten.has(objectId(after))),
  });
  const { plan, deltaOf } = rememberDeltas({ plan: (delta) => inner.plan(without(delta)) });
  return {
    plan,
    async apply(planned, signal, turn) {
      const delta = deltaOf(planned);
      const outcome = delta === undefined || !isOver(turn, world) ? {} : deferring(without(delta));
      for (const id of outcome.deferred ?? []) forgotten.add(id);
      const now = delta === undefined ? planned : inner.plan(without(delta));
      return { ...(now.steps.length === 0 ? {} : await inner.apply(now, signal, turn)), ...outcome };
    },
  };
}
