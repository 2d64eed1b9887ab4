import { createStoreProvider } from "@turnout/server/serve";
import { describe, expect, test } from "vitest";
import { runTrace, slowReader } from "./roles/traces.ts";
import { createStore, fillStore } from "./subject.ts";
import { TRACES } from "./traces.ts";

const SHAPE = { services: 40, endpoints: 10 };

describe("events in, change sets out", () => {
  test.each([
    ["noise", 0],
    ["everything again", 0],
    // Four updates of each pod, each a state of its own: none is noise.
    ["rolling restart", 20 * 10 * 4],
    ["node churn", 0],
  ])("%s", async (name, expected) => {
    const trace = TRACES[name];
    if (trace === undefined) throw new Error("no such trace");
    const { changeSets, rows, events } = await runTrace(trace, SHAPE, 1);
    expect({ changeSets, rows }).toEqual({ changeSets: expected, rows: expected });
    expect(events).toBeGreaterThan(expected);
  });

  test("a reader that is busy gets exactly one change set, of one row, and holds no memory", async () => {
    expect(await slowReader(SHAPE, 2_000)).toMatchObject({ changeSets: 1, rows: 1, followed: 2_000 });
  });

  test("an empty cluster's first state comes when its lists are complete", async () => {
    const store = createStore();
    const view = createStoreProvider(store, () => undefined)
      .open({
        nodeName: "n0",
        settings: { masqueradeAll: false, masqueradeBit: 14, detectLocal: { mode: "NodeCIDR" }, nodePortAddresses: undefined },
        bindAddress: "",
      })
      .view("IPv4", "i");
    const first = view.next({ instance: "", revision: 0 }, new AbortController().signal);
    await fillStore(store, { services: 0, endpoints: 1 });
    expect((await first).changes).toMatchObject({ full: true, set: [] });
  });
});
