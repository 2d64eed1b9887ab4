import { NodeView, ServiceTable } from "@turnout/core";
import { createStore, fillStore, NODE_VIEW } from "../subject.ts";
import { sliceObject } from "../workload.ts";
import type { Shape } from "../workload.ts";

/** What to flip. */
export interface FlipsParameters {
  readonly shape: Shape;
  readonly flips: number;
}

/** What flips cost, of those after the first twentieth, which warms up. */
export interface FlipsReport {
  /** From the event to the change set in hand, µs: the view of a process of its own. */
  readonly viewUs: readonly number[];
  /** The same through the table that a node-state server's nodes share. */
  readonly tableUs: readonly number[];
  /** Rows set and deleted, most of one flip. */
  readonly operationsMax: number;
}

const STRIDE = 7919;

/** Flip one endpoint after another, all over the services. */
export async function flips({ shape, flips: count }: FlipsParameters): Promise<FlipsReport> {
  const own = await flipAll(shape, count, () => {
    const one = createStore();
    const ownView = new NodeView(one, NODE_VIEW);
    return { store: one, pull: () => ownView.pull() };
  });
  const shared = await flipAll(shape, count, () => {
    const one = createStore();
    const table = new ServiceTable(one, { family: "IPv4" });
    const tableView = table.view(NODE_VIEW);
    let since: number | undefined;
    const pull = (): ReturnType<typeof tableView.changesSince> => {
      table.update();
      const changes = tableView.changesSince(since);
      since = changes?.revision;
      return changes;
    };
    return { store: one, pull };
  });
  return { viewUs: own.us, tableUs: shared.us, operationsMax: Math.max(own.operationsMax, shared.operationsMax) };
}

interface Subject {
  readonly store: ReturnType<typeof createStore>;
  pull(): { readonly set: readonly unknown[]; readonly delete: readonly unknown[] } | undefined;
}

async function flipAll(
  shape: Shape,
  count: number,
  open: () => Subject,
): Promise<{ readonly us: readonly number[]; readonly operationsMax: number }> {
  const { store, pull } = open();
  await fillStore(store, shape);
  pull();
  const us: number[] = [];
  let operationsMax = 0;
  for (let flip = 0; flip < count; flip++) {
    const index = (flip * STRIDE) % shape.services;
    const object = sliceObject(index, shape, { unready: Math.floor(flip / shape.services) % shape.endpoints });
    const startMs = performance.now();
    store.upsert("EndpointSlice", object);
    const changes = pull();
    us.push((performance.now() - startMs) * 1000);
    if (changes === undefined) throw new Error(`flip ${flip} changed nothing`);
    operationsMax = Math.max(operationsMax, changes.set.length + changes.delete.length);
    if (flip % 100 === 99) await new Promise((resolve) => setImmediate(resolve));
  }
  return { us: us.slice(Math.floor(count / 20)), operationsMax };
}
