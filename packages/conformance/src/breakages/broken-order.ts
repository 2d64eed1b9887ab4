import { rememberDeltas, withBackend } from "../runner/changed-subject.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import type { Subject } from "../runner/subject.ts";

/** Defects of those that end where they should and go there the wrong way. */
export const BROKEN_ORDER: Readonly<Record<string, readonly [of: string, (subject: Subject) => Subject]>> = {
  "tears down and rebuilds": ["the contract: apply is atomic", withBackend(tearDownAndRebuild)],
};

/** It removes whatever a change is about, and then puts in its place what should be there: right in the end, and nothing is served in between. */
function tearDownAndRebuild(inner: AnyBackend): Partial<AnyBackend> {
  const { plan: remember, deltaOf } = rememberDeltas(inner);
  return {
    plan: remember,
    async apply(plan, signal) {
      const delta = deltaOf(plan);
      const old = (delta?.put ?? []).flatMap(({ before }) => (before === undefined ? [] : [before]));
      if (delta === undefined || old.length === 0) return await inner.apply(plan, signal);
      await inner.apply(inner.plan({ ...delta, put: [], remove: [...old, ...delta.remove], lingering: [] }), signal);
      return await inner.apply(inner.plan({ ...delta, put: delta.put.map(({ after }) => ({ after })), remove: [] }), signal);
    },
  };
}
