import { encodeDelivery, wire } from "@turnout/client/protocol";
import { NodeView } from "@turnout/core";
import { expect, test } from "vitest";
import { readPart } from "./change-set-head.ts";
import { createStore, fillStore, NODE_VIEW } from "./subject.ts";

test("the heads that a bench reads say what the protocol's own code reads", async () => {
  const store = createStore();
  await fillStore(store, { services: 50, endpoints: 3 });
  const view = new NodeView(store, NODE_VIEW);
  const full = view.pull();
  for (const index of [3, 4, 5]) store.remove("Service", "bench", `svc-${index}`);
  const change = view.pull();
  view.close();
  if (full === undefined || change === undefined) throw new Error("nothing changed");
  const shared = [full.set.slice(0, 20), full.set.slice(20)];
  const messages = [{ changes: full }, { changes: change }, { changes: { ...full, set: full.set.slice(0, 2) }, shared }].flatMap((one) => [
    ...encodeDelivery({ ...one, changes: { ...one.changes, revision: 2 ** 40 }, eligibility: undefined }, { partBytes: 2_000 }),
  ]);
  expect(messages.length).toBeGreaterThan(3);
  let packedInAll = 0;
  for (const message of messages) {
    const { response } = wire.WatchResponse.decode(message);
    if (response?.$case !== "changeSet") throw new Error("no change set");
    const { instance, revision, family, full: isFull, more, set, packed, delete: deleted } = response.value;
    const packedRows = packed.reduce((sum, { rows }) => sum + rows, 0);
    const counts = { set: set.length, packed: packedRows, deleted: deleted.length };
    expect(readPart(message)).toEqual({ instance, revision, family, full: isFull, more, ...counts });
    packedInAll += packedRows;
  }
  expect(packedInAll).toBe(50);
  const welcome = wire.WatchResponse.encode({ response: { $case: "welcome", value: { version: "x", capabilities: [] } } }).finish();
  expect(readPart(Buffer.from(welcome))).toBeUndefined();
});
