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
  const messages = [full, change].flatMap((changes) => [
    ...encodeDelivery({ changes: { ...changes, revision: 2 ** 40 }, eligibility: undefined }, { partBytes: 2_000 }),
  ]);
  expect(messages.length).toBeGreaterThan(3);
  for (const message of messages) {
    const { response } = wire.WatchResponse.decode(message);
    if (response?.$case !== "changeSet") throw new Error("no change set");
    const { instance, revision, family, full: isFull, more, set, delete: deleted } = response.value;
    expect(readPart(message)).toEqual({ instance, revision, family, full: isFull, more, set: set.length, deleted: deleted.length });
  }
  const welcome = wire.WatchResponse.encode({ response: { $case: "welcome", value: { version: "x", capabilities: [] } } }).finish();
  expect(readPart(Buffer.from(welcome))).toBeUndefined();
});
