import { setTimeout as sleep } from "node:timers/promises";
import type { Store } from "@turnout/core";
import { createStore, createSubject, createView, fillStore } from "../subject.ts";
import type { Subject } from "../subject.ts";
import { sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { firstSync } from "./cold-start.ts";

/** What to change. */
export interface ChangesParameters {
  readonly shape: Shape;
  readonly count: number;
  /** Quiet time after the cold start, ms. */
  readonly quietMs: number;
}

/** How long each change took, ms. */
export interface Changes {
  /** The first change of the process: nft starts, nothing is compiled yet. */
  readonly firstMs: number;
  readonly samplesMs: readonly number[];
}

/** Changes before those that count. */
export const WARM_UP = 20;
/** Services that lack an endpoint at any time. */
const OPEN_MAX = 10;
/** Between the end of one change and the start of the next: the proxy is quiet. */
export const PAUSE_MS = 5;
/** A prime, so that changes hit services all over the place. */
const STRIDE = 7919;

/**
 * After a cold start, take endpoints away and bring them back one at a time, each after quiet, and time each from the
 * event entering the store to nft's answer.
 */
export async function changes({ shape, count, quietMs }: ChangesParameters): Promise<Changes> {
  const store = createStore();
  const subject = await createSubject(createView(store));
  await fillStore(store, shape);
  await firstSync(subject);
  await sleep(quietMs);
  const stop = new AbortController();
  const running = subject.loop.run(stop.signal);
  const changer = createChanger(store, subject, shape);
  const all: number[] = [];
  for (let k = 0; k < WARM_UP + count; k++) {
    all.push(await changer());
    await sleep(PAUSE_MS);
  }
  stop.abort();
  await running;
  await subject.close();
  return { firstMs: all[0] ?? 0, samplesMs: all.slice(WARM_UP) };
}

/** Make a function that makes the next change and waits until it is in force; it resolves to the ms that took. Every other change undoes an earlier one. */
export function createChanger(store: Store, subject: Subject, shape: Shape): () => Promise<number> {
  const open: number[] = [];
  let count = 0;
  return async () => {
    const isBack = open.length >= Math.min(OPEN_MAX, shape.services - 1);
    const index = (isBack ? open.shift() : undefined) ?? (count * STRIDE) % shape.services;
    if (!isBack) open.push(index);
    const slice = sliceObject(index, shape, isBack ? {} : { missing: count % shape.endpoints });
    count++;
    const done = subject.nextSync();
    const startMs = performance.now();
    store.upsert("EndpointSlice", slice);
    await done;
    return performance.now() - startMs;
  };
}
