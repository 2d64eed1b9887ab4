import { applyChangeSet, isEqual, NodeView, type Store, type Issue, type NodeContext, type ServicePort } from "@turnout/core";
import { carryOut, createStoreView, POD_SETTINGS, rawNode, rawService, rawSlice, upsertRaw, type ObjectEvent } from "@turnout/core/testing";
import * as fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { createStoreProvider, type NodeStateProvider } from "./node-state-provider.ts";
import type { Cursor, StateView } from "./state-view.ts";
import { StoreTables } from "./store-tables.ts";

const never = new AbortController().signal;
const NOTHING: Cursor = { instance: "", revision: 0 };
const opened: { close(): unknown }[] = [];

afterEach(() => {
  for (const one of opened.splice(0)) one.close();
});

function viewOf(provider: NodeStateProvider, nodeName = "node1"): StateView {
  const states = provider.open({ nodeName, settings: POD_SETTINGS, bindAddress: "" });
  opened.push(states);
  return states.view("IPv4", `i-${opened.length}`);
}

function providerOf(store: Store, issues: Issue[] = []): NodeStateProvider {
  return createStoreProvider(store, (issue) => void issues.push(issue));
}

/** A turn of the event loop: what was told in it is one revision after it. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** Somebody who waits for whatever comes, and takes a rest when told to. */
class Follower {
  rows: ReadonlyMap<string, ServicePort> = new Map();
  node: NodeContext | undefined;
  heard = 0;
  cursor: Cursor = NOTHING;
  readonly #view: StateView;
  #stop = new AbortController();

  constructor(view: StateView) {
    this.#view = view;
  }

  follow(): void {
    this.#stop = new AbortController();
    void this.#run(this.#stop.signal);
  }

  rest(): void {
    this.#stop.abort();
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const answer = await this.#view.next(this.cursor, signal).catch((error: unknown) => String(error));
      if (typeof answer === "string") return;
      this.heard += 1;
      this.rows = applyChangeSet(this.rows, answer.changes);
      this.node = answer.changes.node ?? this.node;
      this.cursor = answer.changes;
    }
  }
}

const objectEvent: fc.Arbitrary<ObjectEvent> = fc.record({
  do: fc.constantFrom("service", "service", "slice", "slice", "node", "removeService", "removeSlice"),
  which: fc.nat(11),
  form: fc.nat(17),
});
/** Something happens, one of three watchers rests or goes on, or time passes. */
const step = fc.oneof(objectEvent, fc.nat(2), fc.constant("turn" as const));

describe("views of one store", () => {
  test("bring every watcher to its node's state, whoever waits or rests while things happen", async () => {
    const agree = async (steps: readonly (ObjectEvent | number | "turn")[]): Promise<boolean> => {
      const { store } = createStoreView([]);
      const provider = providerOf(store);
      const here = viewOf(provider);
      const followers = [new Follower(here), new Follower(here), new Follower(viewOf(provider, "node2"))];
      const resting = new Set([0, 1, 2]);
      for (const one of steps) {
        if (one === "turn") await turn();
        else if (typeof one !== "number") carryOut(store, one);
        else if (resting.delete(one)) followers[one]?.follow();
        else {
          resting.add(one);
          followers[one]?.rest();
        }
      }
      for (const index of resting) followers[index]?.follow();
      await turn();
      await turn();
      return followers.every(({ rows, node }, index) => {
        const truth = new NodeView(store, { nodeName: index === 2 ? "node2" : "node1", family: "IPv4", settings: POD_SETTINGS });
        const full = truth.pull();
        truth.close();
        return isEqual(node, full?.node) && isEqual(Object.fromEntries(rows), Object.fromEntries(truth.rows));
      });
    };
    await expect(fc.assert(fc.asyncProperty(fc.array(step, { maxLength: 40 }), agree), { numRuns: 60 })).resolves.toBeUndefined();
  });

  test("a thousand watchers of a thousand nodes: one change is looked at once, and told to each once", async () => {
    const { store } = createStoreView([]);
    for (let index = 0; index < 50; index++) {
      upsertRaw(store, rawService(`s${index}`, { clusterIP: `10.96.0.${index + 1}` }));
      upsertRaw(store, rawSlice(`s${index}`, [{ ip: `10.1.0.${index + 1}`, node: `n${index}` }]));
    }
    const provider = providerOf(store);
    const followers = Array.from({ length: 1_000 }, (_, index) => new Follower(viewOf(provider, `n${index}`)));
    for (const follower of followers) follower.follow();
    await turn();
    expect(followers.every(({ heard, rows }) => heard === 1 && rows.size === 50)).toBe(true);
    const asked: string[] = [];
    const slices = store.slices.bind(store);
    store.slices = (key) => {
      asked.push(key);
      return slices(key);
    };
    upsertRaw(store, rawSlice("s7", [{ ip: "10.1.0.8", node: "n7", ready: false }]));
    await turn();
    expect(asked).toEqual(["shop/s7"]);
    expect(new Set(followers.map(({ heard }) => heard))).toEqual(new Set([2]));
    const rows = new Set(followers.map((follower) => follower.rows.get("shop/s7:http/TCP")));
    expect(rows.size).toBe(2);
  });

  test("noise wakes nobody, and is no revision", async () => {
    const { store } = createStoreView([]);
    upsertRaw(store, rawService("cart"));
    upsertRaw(store, rawNode("node1"));
    const follower = new Follower(viewOf(providerOf(store)));
    follower.follow();
    await turn();
    const { revision } = follower.cursor;
    for (let round = 0; round < 50; round++) {
      upsertRaw(store, { ...rawService("cart"), status: { conditions: [{ round }] } });
      upsertRaw(store, rawNode("node2", { addresses: [`172.18.0.${round}`] }));
      upsertRaw(store, { ...rawNode("node1"), metadata: { name: "node1", annotations: { round: String(round) } } });
      await turn();
    }
    upsertRaw(store, rawService("till", { clusterIP: "10.96.0.2" }));
    await turn();
    expect(follower).toMatchObject({ heard: 2, cursor: { revision: revision + 1 } });
  });

  test("a cursor from before the view, or from the future, gets everything", async () => {
    const { store } = createStoreView([]);
    const provider = providerOf(store);
    const other = viewOf(provider, "node2");
    const { changes: empty } = await other.next(NOTHING, never);
    upsertRaw(store, rawService("s1"));
    await other.next(empty, never);
    const view = viewOf(provider);
    const { changes } = await view.next(NOTHING, never);
    expect(changes.revision).toBeGreaterThan(empty.revision);
    for (const revision of [0, changes.revision - 1, changes.revision + 1]) {
      expect((await view.next({ instance: changes.instance, revision }, never)).changes).toEqual(changes);
    }
  });

  test("what is told in one turn is one change set", async () => {
    const { store } = createStoreView([]);
    const follower = new Follower(viewOf(providerOf(store)));
    follower.follow();
    await turn();
    for (let index = 1; index <= 20; index++) upsertRaw(store, rawService(`s${index}`, { clusterIP: `10.96.0.${index}` }));
    await turn();
    expect(follower.heard).toBe(2);
    expect(follower.rows.size).toBe(20);
  });

  test("contested addresses are reported once, however many nodes look", async () => {
    const { store } = createStoreView([]);
    const issues: Issue[] = [];
    const provider = providerOf(store, issues);
    for (const name of ["old", "young"]) upsertRaw(store, rawService(name));
    for (const node of ["node1", "node2", "node3"]) await viewOf(provider, node).next(NOTHING, never);
    expect(issues).toHaveLength(1);
  });

  test("a view that is closed cancels whoever waits, and does not end the others", async () => {
    const { store } = createStoreView([]);
    const provider = providerOf(store);
    const states = provider.open({ nodeName: "node1", settings: POD_SETTINGS, bindAddress: "" });
    const view = states.view("IPv4", "mine");
    const other = new Follower(viewOf(provider));
    other.follow();
    const { changes } = await view.next(NOTHING, never);
    const waiting = view.next(changes, never);
    void states.close();
    await expect(waiting).rejects.toThrow(/^\[canceled\]/);
    upsertRaw(store, rawService("cart"));
    await turn();
    expect(other.rows.size).toBe(1);
  });
});

describe("the tables of a store", () => {
  test("are there while somebody holds them; nothing follows the store for nobody", () => {
    const { store } = createStoreView([]);
    let listeners = 0;
    const onChange = store.onChange.bind(store);
    store.onChange = (listener) => {
      const stop = onChange(listener);
      listeners += 1;
      return () => {
        listeners -= 1;
        stop();
      };
    };
    const tables = new StoreTables(store, () => undefined);
    const first = tables.acquire("IPv4");
    expect(tables.acquire("IPv4")).toBe(first);
    expect(tables.acquire("IPv6")).not.toBe(first);
    expect(listeners).toBe(2);
    for (const family of ["IPv4", "IPv6", "IPv4"] as const) tables.release(family);
    expect(listeners).toBe(0);
    expect(tables.acquire("IPv4")).not.toBe(first);
  });
});
