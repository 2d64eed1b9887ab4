import type { ChangeSet, Feed } from "@turnout/core";
import { expect, test } from "vitest";
import { flushPromises, toyChange, toyFull, toyNode, toyRow } from "../../test-support/toys.ts";
import { NodeGate } from "./node-gate.ts";

const AWAITED = { changes: { full: true }, eligibility: { isEligible: false, reason: "unknown", isAwaited: true } };
const KNOWN = { changes: { full: false }, eligibility: { isEligible: true, reason: "" } };
/** Of a node-state server that does not know of waiting, or has nothing to say. */
const SILENT = { changes: { full: true }, eligibility: undefined };
const never = new AbortController().signal;

/** A feed that is given its change sets by a test, and rejects whoever stops waiting. */
class ManualFeed implements Feed {
  readonly #ready: ChangeSet[] = [];
  #waiting: ((changes: ChangeSet) => void) | undefined;

  give(changes: ChangeSet): void {
    if (this.#waiting === undefined) this.#ready.push(changes);
    else this.#waiting(changes);
    this.#waiting = undefined;
  }

  next(signal: AbortSignal): Promise<ChangeSet> {
    const ready = this.#ready.shift();
    if (ready !== undefined) return Promise.resolve(ready);
    return new Promise((resolve, reject) => {
      this.#waiting = resolve;
      signal.addEventListener("abort", () => {
        this.#waiting = undefined;
        reject(new Error("stopped"));
      });
    });
  }
}

test.each([
  ["known", KNOWN],
  ["not spoken of", SILENT],
])("a node that is %s holds nothing up", async (_name, said) => {
  const [gate, feed] = [new NodeGate(), new ManualFeed()];
  const full = toyFull([toyRow("cart")]);
  gate.heard(said);
  feed.give(full);
  expect(await gate.next(feed, never, () => expect.unreachable())).toBe(full);
});

test("what comes before the node is known comes as one with it, and what comes later as it is", async () => {
  const [gate, feed] = [new NodeGate(), new ManualFeed()];
  let waits = 0;
  gate.heard(AWAITED);
  feed.give(toyFull([toyRow("cart"), toyRow("till")], toyNode({ addresses: [] })));
  feed.give(toyChange({ set: [toyRow("new")], delete: ["shop/cart:http/TCP"] }));
  const next = gate.next(feed, never, () => (waits += 1));
  await flushPromises();
  const node = toyNode();
  feed.give(toyChange({ revision: 3, node }));
  gate.heard(KNOWN);
  const first = await next;
  expect(first).toMatchObject({ full: true, revision: 3, node, delete: [] });
  expect(first.set.map(({ key }) => key)).toEqual(["shop/till:http/TCP", "shop/new:http/TCP"]);
  const later = toyChange({ revision: 4 });
  feed.give(later);
  expect(await gate.next(feed, never, () => (waits += 1))).toBe(later);
  expect(waits).toBe(1);
});

test("it opens when nothing but the node's standing is told", async () => {
  const [gate, feed] = [new NodeGate(), new ManualFeed()];
  gate.heard(AWAITED);
  feed.give(toyFull([toyRow("cart")]));
  const next = gate.next(feed, never, () => undefined);
  await flushPromises();
  gate.heard(KNOWN);
  expect((await next).set).toHaveLength(1);
});

test("who stops waiting and comes back misses nothing", async () => {
  const [gate, feed] = [new NodeGate(), new ManualFeed()];
  const stop = new AbortController();
  gate.heard(AWAITED);
  feed.give(toyFull([toyRow("cart")]));
  const stopped = gate.next(feed, stop.signal, () => undefined);
  await flushPromises();
  stop.abort();
  await expect(stopped).rejects.toThrow("stopped");
  const next = gate.next(feed, never, () => undefined);
  feed.give(toyChange({ set: [toyRow("till")] }));
  await flushPromises();
  gate.heard(KNOWN);
  expect((await next).set).toHaveLength(2);
});
