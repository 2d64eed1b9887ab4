import { NodeLink } from "@turnout/client/protocol";
import { applyChangeSet, NodeView, OBJECT_KINDS, Store, type ObjectKind, type ServicePort } from "@turnout/core";
import { carryOut, POD_SETTINGS, RecordingLog, type ObjectEvent } from "@turnout/core/testing";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TestKpngServer } from "../test-support/test-kpng-server.ts";
import { systemClock } from "@turnout/core/process";
import { GlobalState } from "./global-state.ts";
import { ItemImage } from "./item-image.ts";
import type { Item } from "./kpng-item.ts";
import { LocalState } from "./local-state.ts";

const objectEvent: fc.Arbitrary<ObjectEvent> = fc.record({
  do: fc.constantFrom("service", "service", "slice", "slice", "node", "removeService", "removeSlice"),
  which: fc.nat(11),
  form: fc.nat(17),
});

function synced<S extends Store>(store: S): S {
  for (const kind of OBJECT_KINDS) store.markSynced(kind);
  return store;
}

/** Everything an image says, to somebody who has nothing. */
function whole(image: ItemImage): ReadonlyMap<string, string> {
  const changes = image.changesFrom(new Map(), undefined) ?? [];
  return new Map(changes.map(({ path, after }) => [path, after?.bytes.toString("hex") ?? ""] as const));
}

/** Somebody who looks now and then. */
class Watcher {
  readonly held = new Map<string, Item>();
  #since: number | undefined;

  look(image: ItemImage): void {
    for (const { path, before, after } of image.changesFrom(this.held, this.#since) ?? []) {
      if (this.held.get(path) !== before) throw new Error(`a change from something else than is held: ${path}`);
      if (after === undefined) this.held.delete(path);
      else this.held.set(path, after);
    }
    this.#since = image.revision;
  }

  get said(): ReadonlyMap<string, string> {
    return new Map([...this.held].map(([path, item]) => [path, item.bytes.toString("hex")] as const));
  }
}

describe("any history of changes", () => {
  test.each([
    ["a node", (store: Store) => new LocalState(store, "node1", () => undefined)],
    ["nobody", (store: Store) => new LocalState(store, "", () => undefined)],
    ["the cluster", (store: Store) => new GlobalState(store, () => undefined)],
  ])("leaves whoever looks now and then with what is said to who comes new, of %s", (_whom, stateOf) => {
    fc.assert(
      fc.property(fc.array(fc.tuple(objectEvent, fc.nat(2)), { maxLength: 40 }), (history) => {
        const store = synced(new Store({ keepsPodNames: true }));
        const image = new ItemImage(store, stateOf(store));
        const [often, seldom] = [new Watcher(), new Watcher()];
        for (const [one, looks] of history) {
          carryOut(store, one);
          if (looks > 0) often.look(image);
          if (looks > 1) seldom.look(image);
        }
        often.look(image);
        seldom.look(image);
        const fresh = whole(new ItemImage(store, stateOf(store)));
        expect(often.said).toEqual(fresh);
        expect(seldom.said).toEqual(fresh);
      }),
      { numRuns: 100 },
    );
  });
});

type Raw = Readonly<Record<string, unknown>>;

/** Keeps what a receiver of globalv1 knows: no ages, and endpoints that are ready or not. */
class KpngStore extends Store {
  override upsert(kind: ObjectKind, raw: unknown): void {
    const object = raw as Raw;
    const metadata = { ...(object["metadata"] as Raw), creationTimestamp: undefined };
    const endpoints = (object["endpoints"] as readonly Raw[] | undefined)?.map((endpoint) => {
      const ready = (endpoint["conditions"] as Raw)["ready"] ?? true;
      return { ...endpoint, conditions: { ready, serving: ready, terminating: false } };
    });
    super.upsert(kind, { ...object, metadata, ...(endpoints === undefined ? {} : { endpoints }) });
  }
}

/** Of an address in two slices the one that is not terminating counts, which a store that can't tell gets wrong. */
const endsNone = ({ do: what, form }: ObjectEvent): boolean => what !== "slice" || form % 7 !== 3;

/** A port that has lost every address is not told, nor its node port; a Service that has lost its cluster IP not at all. */
function isReported({ name, destinations }: ServicePort, all: ReadonlyMap<string, ServicePort>): boolean {
  const siblings = [...all.values()].filter((row) => row.name.name === name.name);
  return (
    destinations.some(({ kind }) => kind !== "nodePort") &&
    siblings.some((row) => row.destinations.some(({ kind }) => kind === "clusterIP"))
  );
}

/** A row without the pools that no rule points to: they are of addresses it has lost. */
function asUsed(row: ServicePort): ServicePort {
  const targets = new Set(row.destinations.flatMap(({ rules }) => rules.map(({ to }) => to)));
  const { cluster, local } = row;
  return { ...row, cluster: targets.has("cluster") ? cluster : [], local: targets.has("local") ? local : [], topology: "" };
}

const used = (rows: Iterable<ServicePort>): ReadonlyMap<string, ServicePort> => new Map([...rows].map((row) => [row.key, asUsed(row)]));

describe("a history over globalv1", () => {
  test("gives the rows that a store without what is lost gives, at every step", async () => {
    const stateServer = await TestKpngServer.start(["globalv1"], new KpngStore());
    const log = new RecordingLog();
    const link = new NodeLink({ target: stateServer.target, nodeName: "node1", settings: POD_SETTINGS, log, clock: systemClock() });
    const stop = new AbortController();
    const second = synced(new KpngStore());
    const view = new NodeView(second, { nodeName: "node1", family: "IPv4", settings: POD_SETTINGS });
    let rows: ReadonlyMap<string, ServicePort> = new Map();
    const follow = async (): Promise<void> => {
      while (!stop.signal.aborted) rows = applyChangeSet(rows, await link.feed("IPv4").next(stop.signal));
    };
    const following = follow();
    const seed = 20_261_121;
    try {
      for (const history of fc.sample(fc.array(objectEvent.filter(endsNone), { minLength: 1, maxLength: 4 }), { numRuns: 150, seed })) {
        for (const one of history) {
          carryOut(stateServer.store, one);
          carryOut(second, one);
        }
        view.pull();
        const wanted = used([...view.rows.values()].filter((row) => isReported(row, view.rows)));
        await expect.poll(() => used(rows.values()), { interval: 1, timeout: 5_000 }).toEqual(wanted);
      }
    } finally {
      stop.abort();
      await expect(following).rejects.toMatchObject({ code: "canceled" });
      await link.close();
    }
  });
});
