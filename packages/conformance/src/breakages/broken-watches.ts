import { Waiters } from "@turnout/core";
import type { HostEvent, KernelObject, LeftObjects } from "@turnout/core";
import { noteDone, rememberDeltas, withBackend } from "../runner/changed-subject.ts";
import type { AnyBackend } from "../runner/changed-subject.ts";
import type { Defect } from "./broken-backend.ts";

/** Defects of those that should tell what happens to the host, or look. */
export const BROKEN_WATCHES: Readonly<Record<string, Defect>> = {
  "ends its watch at once": [
    "the contract: watch",
    withBackend((inner) => ({ reportsDrift: true, watch: (signal) => firstOf(inner, signal) })),
    ["contract"],
  ],
  "says that it tells what others do, and doesn't": [
    "the contract: reportsDrift",
    withBackend((inner) => ({ reportsDrift: true, watch: (signal) => factsOf(inner, signal) })),
    ["contract"],
  ],
  "tells nothing of what others do, and doesn't look either": [
    "the contract: observe",
    withBackend((inner) => ({ reportsDrift: false, ...neverLooking(inner) })),
    ["contract"],
  ],
  "says that a foreign change left everything as it was": [
    "the contract: left",
    withBackend((inner) => ({ watch: (signal) => withLeft(inner, signal, () => Promise.resolve(new Map())) })),
    ["contract"],
  ],
  "takes what it saw for current when it has written since": [
    "the contract: isCurrent",
    withBackend((inner) => ({ watch: (signal) => withLeft(inner, signal, () => allSeen(inner, signal)) })),
    ["contract"],
  ],
  "does not tell the facts that changed before it watched": [
    "the contract: watch",
    withBackend((inner) => ({ watch: (signal) => withoutFacts(inner, signal, (count) => count === 1) })),
    ["contract"],
  ],
  "tells no facts that change while it watches": [
    "the contract: watch",
    withBackend((inner) => ({ watch: (signal) => withoutFacts(inner, signal, (count) => count > 1) })),
    ["contract"],
  ],
};

/** What a backend's watch tells, without those of its facts that `isLost` says of, counted from 1. */
async function* withoutFacts(
  inner: AnyBackend,
  signal: AbortSignal,
  isLost: (count: number) => boolean,
): AsyncIterable<HostEvent<unknown>> {
  let count = 0;
  for await (const event of inner.watch?.(signal) ?? []) if (event.kind !== "facts" || !isLost(++count)) yield event;
}

/** What a backend's watch tells, but something else of what a foreign change has left. */
async function* withLeft(inner: AnyBackend, signal: AbortSignal, leftBy: () => Promise<LeftObjects>): AsyncIterable<HostEvent<unknown>> {
  for await (const event of inner.watch?.(signal) ?? []) yield event.kind === "drift" ? { ...event, left: await leftBy() } : event;
}

async function allSeen(inner: AnyBackend, signal: AbortSignal): Promise<LeftObjects> {
  const objects = (await inner.observe(signal))?.objects ?? new Map<string, KernelObject>();
  return { covers: () => true, objects, isCurrent: () => true };
}

/** The first thing that a backend's watch tells, and the end. */
async function* firstOf(inner: AnyBackend, signal: AbortSignal): AsyncIterable<HostEvent<unknown>> {
  for await (const event of inner.watch?.(signal) ?? []) {
    yield event;
    return;
  }
}

/** What a backend's watch tells of facts, and nothing else. */
async function* factsOf(inner: AnyBackend, signal: AbortSignal): AsyncIterable<HostEvent<unknown>> {
  for await (const event of inner.watch?.(signal) ?? untilAborted(signal)) if (event.kind === "facts") yield event;
}

// eslint-disable-next-line require-yield
async function* untilAborted(signal: AbortSignal): AsyncIterable<never> {
  await new Waiters().wait(signal);
}

/** It looks at the host once, and then believes what it has done itself. */
function neverLooking(inner: AnyBackend): Partial<AnyBackend> {
  const { plan: remember, deltaOf } = rememberDeltas(inner);
  let memory: Map<string, KernelObject> | undefined;
  return {
    plan: remember,
    async apply(plan, signal) {
      const outcome = await inner.apply(plan, signal);
      if (memory !== undefined) noteDone(memory, deltaOf(plan));
      return outcome;
    },
    async observe(signal) {
      memory ??= new Map((await inner.observe(signal))?.objects);
      return { objects: new Map(memory), lingering: [] };
    },
  };
}
