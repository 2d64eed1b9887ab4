import type { Counts } from "@turnout/core";
import { withBackend } from "../runner/changed-subject.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import type { Subject } from "../runner/subject.ts";
import type { Defect } from "./broken-backend.ts";

type Counting = NonNullable<AnyBackend["counts"]>;
type Counted = ReadonlyMap<string, Counts>;

/** Make a subject whose backends count otherwise, and say that they do. */
function withCounts(change: (counted: Counted, asked: number) => Counted): (subject: Subject) => Subject {
  return (subject) => {
    const broken = withBackend((inner) => ({ counts: changed(inner, change) }))(subject);
    return { ...broken, module: { ...broken.module, countingOptions: subject.module.countingOptions ?? {} } };
  };
}

function changed(inner: AnyBackend, change: (counted: Counted, asked: number) => Counted): Counting {
  let asked = 0;
  return async (signal, isKnown) => change((await inner.counts?.(signal, isKnown)) ?? new Map<string, Counts>(), ++asked);
}

/** No object has this identity. */
const ANYTHING = "nothing of anybody";

/** Defects of those that count. */
export const BROKEN_COUNTS: Readonly<Record<string, Defect>> = {
  "counts for what no row owns": [
    "the contract: counts",
    withCounts((counted) => new Map([...counted, [ANYTHING, { connections: 1 }]])),
    ["contract"],
    "counted",
  ],
  "does not count connections": ["the contract: counts", withCounts(() => new Map()), ["contract"], "counted"],
  "counts each connection twice": ["the contract: counts", withCounts((counted) => times(counted, 2)), ["contract"], "counted"],
  "counts below nothing": [
    "the contract: counts",
    withCounts((counted) => new Map(Array.from([...counted, [ANYTHING, {}] as const], ([id]) => [id, { connections: -1 }]))),
    ["contract"],
    "counted",
  ],
};

function times(counted: Counted, factor: number): Counted {
  return new Map(Array.from(counted, ([id, counts]) => [id, { ...counts, connections: (counts.connections ?? 0) * factor }]));
}
