import { NodeView } from "@turnout/core";
import { createStore, fillStore, NODE_VIEW } from "../subject.ts";
import { SERVICE_PORT, serviceObject, sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";

/** What to feed a store with. */
export interface StoreParameters {
  readonly shape: Shape;
  /** Events between two looks at the rows. */
  readonly eventsPerPull: number;
  readonly mix: Mix;
  readonly rounds: number;
  readonly eventsPerRound: number;
}

/** Which objects change: Services (their port), slices (readiness of one endpoint), or one of each in turn. */
export type Mix = "services" | "slices" | "both";

/** Events per second, one sample per round. */
export interface StoreRates {
  /** By the clock. */
  readonly perSecond: readonly number[];
  /** By the CPU time of all threads, garbage collection included: what one undisturbed core does. */
  readonly perCpuSecond: readonly number[];
}

/**
 * Objects made ahead at a time: making them is not what is measured. Few, so that they die young, as what a source reads does:
 * with 100, two thirds of what the young generation passed on were objects of this bench.
 */
const CHUNK = 20;
/** Rounds before those that count. */
const WARM_UP = 2;
const STRIDE = 7919;

/** Feed changed objects to a full store with one view, and take the rows out. */
export async function storeOnly({ shape, eventsPerPull, mix, rounds, eventsPerRound }: StoreParameters): Promise<StoreRates> {
  const store = createStore();
  const view = new NodeView(store, NODE_VIEW);
  await fillStore(store, shape);
  view.pull();
  const perSecond: number[] = [];
  const perCpuSecond: number[] = [];
  let serial = 0;
  for (let round = 0; round < WARM_UP + rounds; round++) {
    let wallMs = 0;
    let cpuMs = 0;
    let rows = 0;
    for (let done = 0; done < eventsPerRound; done += CHUNK) {
      const events = Array.from({ length: CHUNK }, () => eventAt(serial++, mix, shape));
      const cpu = process.cpuUsage();
      const startMs = performance.now();
      for (const [k, { kind, object }] of events.entries()) {
        store.upsert(kind, object);
        if ((done + k + 1) % eventsPerPull === 0) rows += view.pull()?.set.length ?? 0;
      }
      wallMs += performance.now() - startMs;
      const { user, system } = process.cpuUsage(cpu);
      cpuMs += (user + system) / 1000;
    }
    if (rows !== eventsPerRound) throw new Error(`${eventsPerRound} events made ${rows} rows`);
    if (round < WARM_UP) continue;
    perSecond.push((eventsPerRound / wallMs) * 1000);
    perCpuSecond.push((eventsPerRound / cpuMs) * 1000);
  }
  return { perSecond, perCpuSecond };
}

/** The event at `serial`: one field of one object is not what it was the last time that object came by. */
function eventAt(serial: number, mix: Mix, shape: Shape): { readonly kind: "Service" | "EndpointSlice"; readonly object: unknown } {
  const isService = mix === "services" || (mix === "both" && serial % 2 === 0);
  const turn = mix === "both" ? Math.floor(serial / 2) : serial;
  const index = (turn * STRIDE + (isService ? 0 : Math.floor(shape.services / 2))) % shape.services;
  const isOdd = Math.floor(turn / shape.services) % 2 === 0;
  if (isService) return { kind: "Service", object: serviceObject(index, isOdd ? SERVICE_PORT + 1 : SERVICE_PORT) };
  return { kind: "EndpointSlice", object: sliceObject(index, shape, isOdd ? { unready: index % shape.endpoints } : {}) };
}
