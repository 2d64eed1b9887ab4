import type { Clock, Delta, KernelObject } from "@turnout/core";
import { cleanUpBackend, objectId, ProxyError } from "@turnout/core";
import { rememberDeltas, withBackend } from "../runner/changed-subject.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import type { Defect } from "./broken-backend.ts";

/** Defects of those that make others pay for trouble with one thing. */
export const BROKEN_RECOVERY: Readonly<Record<string, Defect>> = {
  "clears the host at its start": [
    "R-55, R-58",
    withBackend((inner) => {
      let isFirst = true;
      return rewriting(inner, () => {
        const isDue = isFirst;
        isFirst = false;
        return isDue;
      });
    }),
  ],
  "clears the host after a failure": [
    "R-55, R-58",
    withBackend((inner) => {
      let hasFailed = false;
      return rewriting(
        inner,
        () => hasFailed,
        (error) => void (hasFailed = error !== undefined),
      );
    }),
  ],
  "clears the host when it can't read it": [
    "R-55, R-58",
    withBackend((inner) => ({
      async observe(signal) {
        try {
          return await inner.observe(signal);
        } catch (error) {
          await clear(inner, 0, signal);
          throw error;
        }
      },
    })),
  ],
  "takes everything back when one row is refused": ["R-55, R-58", withBackend(takeBack), ["verdict"]],
  "clears the host when its base changes": [
    "R-55, R-58",
    withBackend((inner) => {
      let base = new Set<string>();
      let isThere = false;
      return {
        ...rewriting(
          inner,
          ({ put }) => isThere && put.some(({ after }) => base.has(objectId(after))),
          (error) => void (isThere ||= error === undefined),
        ),
        skeleton(context): readonly KernelObject[] {
          const objects = inner.skeleton(context);
          base = new Set(objects.map(objectId));
          return objects;
        },
      };
    }),
  ],
  "throws what isn't an operating error": [
    "R-55, R-58",
    withBackend((inner) => ({
      async apply(plan, signal) {
        try {
          return await inner.apply(plan, signal);
        } catch (cause) {
          throw new Error("something failed", { cause });
        }
      },
    })),
    ["error"],
  ],
};

/** When it is due, it removes all it holds before it applies a plan, and puts it back. */
function rewriting(
  inner: AnyBackend,
  isDue: (delta: Delta<KernelObject>) => boolean,
  onEnd: (error: unknown) => void = () => undefined,
): Partial<AnyBackend> {
  const { plan: remember, deltaOf } = rememberDeltas(inner);
  return {
    plan: remember,
    async apply(plan, signal) {
      const delta = deltaOf(plan);
      if (delta !== undefined && isDue(delta)) await rewrite(inner, delta, signal);
      let failure: unknown;
      try {
        return await inner.apply(plan, signal);
      } catch (error) {
        failure = error;
        throw error;
      } finally {
        onEnd(failure);
      }
    },
  };
}

async function rewrite(inner: AnyBackend, { nowMs }: Delta<KernelObject>, signal: AbortSignal): Promise<void> {
  const observed = await inner.observe(signal);
  await clear(inner, nowMs, signal);
  const put = [...(observed?.objects.values() ?? [])].map((after) => ({ after }));
  await inner.apply(inner.plan({ put, remove: [], lingering: [], nowMs }), signal);
}

/** What can't be removed by a plan goes as in cleaning up, and the other way round: one of them reaches what is in force. */
export async function clear(inner: AnyBackend, nowMs: number, signal: AbortSignal): Promise<void> {
  const remove = [...((await inner.observe(signal))?.objects.values() ?? [])];
  let atMs = nowMs;
  const hurried: Clock = {
    nowMs: () => atMs,
    sleep(ms) {
      atMs += ms;
      return Promise.resolve();
    },
  };
  // What lingers does so in spite of it.
  await cleanUpBackend(inner, hurried, signal).catch((error: unknown) => {
    if (!ProxyError.is(error, "timed_out")) throw error;
  });
  const left = new Set((await inner.observe(signal))?.objects.keys() ?? []);
  const rest = remove.filter((object) => left.has(objectId(object)));
  if (rest.length > 0) await inner.apply(inner.plan({ put: [], remove: rest, lingering: [], nowMs }), signal);
}

/** What it can't do as a whole it undoes as a whole. */
function takeBack(inner: AnyBackend): Partial<AnyBackend> {
  return {
    async apply(plan, signal) {
      try {
        return await inner.apply(plan, signal);
      } catch (error) {
        await clear(inner, 0, signal);
        throw error;
      }
    },
  };
}
