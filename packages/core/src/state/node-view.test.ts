import { describe, expect, it } from "vitest";
import { ProxyError } from "../model/errors.ts";
import { createFeed, NodeView } from "./node-view.ts";
import { OBJECT_KINDS } from "../model/api-objects.ts";
import { Store } from "./store.ts";
import { rawNode, rawService, rawServiceCIDR, rawSlice } from "../testing/objects.ts";
import type { RawObject } from "../testing/objects.ts";
import { flushPromises } from "../testing/clock.ts";
import { createStoreView, POD_SETTINGS, upsertRaw } from "../testing/view.ts";
import type { StoreView } from "../testing/view.ts";

const OPTIONS = { nodeName: "node1", family: "IPv4", settings: POD_SETTINGS } as const;
const CART = [rawService("cart"), rawSlice("cart", [{ ip: "10.1.1.1" }])];
const TILL = [rawService("till", { clusterIP: "10.96.0.2" }), rawSlice("till", [{ ip: "10.1.1.2" }])];

/** A view that has told its first state. */
function pulled(objects: readonly RawObject[]): StoreView {
  const made = createStoreView(objects);
  made.pull();
  return made;
}

describe("R-54 the first state", () => {
  it("is not given before every list is complete, then whole", () => {
    const store = new Store();
    const view = new NodeView(store, OPTIONS);
    for (const raw of CART) upsertRaw(store, raw);
    for (const kind of OBJECT_KINDS) {
      expect(view.pull()).toBeUndefined();
      store.markSynced(kind);
    }
    expect(view.pull()).toMatchObject({
      full: true,
      revision: 1,
      family: "IPv4",
      node: { name: "node1" },
      set: [{ key: "shop/cart:http/TCP" }],
      delete: [],
    });
  });
});

describe("R-57 only what changed is told", () => {
  it("one endpoint, one Service, its deletion", () => {
    const { store, view, pull } = pulled([...CART, ...TILL]);
    upsertRaw(store, rawSlice("cart", [{ ip: "10.1.1.1" }, { ip: "10.1.1.3" }]));
    expect(pull()).toMatchObject({ full: false, revision: 2, set: [{ key: "shop/cart:http/TCP" }], delete: [] });
    store.remove("Service", "shop", "till");
    const gone = pull();
    expect(gone).toMatchObject({ full: false, revision: 3, set: [], delete: ["shop/till:http/TCP"] });
    expect(gone?.node).toBeUndefined();
    expect([...view.rows.keys()]).toEqual(["shop/cart:http/TCP"]);
  });

  it("a port that is renamed goes and comes", () => {
    const { store, pull } = pulled(CART);
    upsertRaw(store, rawService("cart", { ports: [{ name: "web", port: 80 }] }));
    expect(pull()).toMatchObject({ set: [{ key: "shop/cart:web/TCP" }], delete: ["shop/cart:http/TCP"] });
  });

  it.each([
    ["the same object again", [rawService("cart")]],
    ["an edit that is undone", [rawService("cart", { clusterIP: "10.96.0.9" }), rawService("cart")]],
    ["a slice in another order", [rawSlice("cart", [{ ip: "10.1.1.1" }])]],
    ["a slice of no Service", [rawSlice("ghost", [{ ip: "10.1.1.7" }])]],
    ["a slice of the other family", [rawSlice("cart", [{ ip: "fd00:1::1" }], { name: "six", addressType: "IPv6" })]],
    ["another node", [rawNode("node2")]],
    [
      "a field nobody reads",
      [
        {
          ...rawService("cart"),
          metadata: { namespace: "shop", name: "cart", creationTimestamp: "2024-01-01T00:00:00Z", labels: { a: "b" } },
        },
      ],
    ],
    ["a Service without an address", [rawService("alias", { clusterIP: "None" })]],
  ])("%s is no change", (_name, objects) => {
    const { store, pull } = pulled(CART);
    for (const raw of objects) upsertRaw(store, raw);
    expect(pull()).toBeUndefined();
  });
});

describe("the node and its ranges", () => {
  it.each([
    ["the node appears", [rawNode("node1", { zone: "a" })], { zone: "a" }],
    ["R-62 service ranges", [rawServiceCIDR("k", ["10.96.0.0/16", "fd00:96::/112"])], { serviceCIDRs: ["10.96.0.0/16"] }],
  ])("%s: the context is told", (_name, objects, node) => {
    const { store, pull } = pulled(CART);
    for (const raw of objects) upsertRaw(store, raw);
    expect(pull()).toMatchObject({ full: false, node });
  });

  it("R-60 leaving or tainted changes no rule", () => {
    const { store, pull } = pulled([rawNode("node1"), ...CART]);
    upsertRaw(store, rawNode("node1", { taints: [{ key: "ToBeDeletedByClusterAutoscaler" }] }));
    expect(pull()).toBeUndefined();
  });

  it("asking for everything gives everything, once", () => {
    const { view, pull } = pulled([...CART, ...TILL]);
    view.askFull();
    expect(pull()).toMatchObject({ full: true, set: [{}, {}], node: { name: "node1" } });
    expect(pull()).toBeUndefined();
  });
});

describe("trigger times", () => {
  const triggered = "2024-01-01T00:00:10Z";
  const triggeredMs = 1_704_067_210_000;

  it("go with the change they caused", () => {
    const { store, pull } = pulled(CART);
    upsertRaw(store, rawSlice("cart", [{ ip: "10.1.1.9" }], { triggered }));
    expect(pull()?.triggersMs).toEqual([triggeredMs]);
    upsertRaw(store, rawSlice("cart", [{ ip: "10.1.1.8" }]));
    expect(pull()?.triggersMs).toEqual([]);
  });

  it("of a slice that changed nothing are not charged to somebody else's later change", () => {
    const { store, pull } = pulled([...CART, ...TILL]);
    upsertRaw(store, rawSlice("cart", [{ ip: "10.1.1.1" }], { triggered }));
    expect(pull()).toBeUndefined();
    upsertRaw(store, rawSlice("till", [{ ip: "10.1.1.9" }]));
    expect(pull()?.triggersMs).toEqual([]);
  });

  it("nor to a change that is told together with it", () => {
    const { store, pull } = pulled([...CART, ...TILL]);
    upsertRaw(store, rawSlice("ghost", [{ ip: "10.1.1.1" }], { triggered }));
    upsertRaw(store, rawSlice("till", [{ ip: "10.1.1.9" }]));
    expect(pull()?.triggersMs).toEqual([]);
  });

  it("of the first state are history, not latency", () => {
    expect(createStoreView([rawService("cart"), rawSlice("cart", [{ ip: "10.1.1.1" }], { triggered })]).pull()?.triggersMs).toEqual([]);
  });
});

describe("what the cluster has of its own", () => {
  const thief = rawService("thief", { clusterIP: "10.96.0.9", externalIPs: ["10.96.0.20", "172.18.0.2"] });
  const victim = rawService("victim", { type: "NodePort", clusterIP: "10.96.0.8", ports: [{ name: "http", port: 80, nodePort: 80 }] });
  const THIEF = "shop/thief:http/TCP";

  it("R-64, R-65 takes external IPs from whoever claims it, and from no other row, as soon as it is known and until it goes", () => {
    const { store, view, pull, issues } = createStoreView([thief, victim, ...CART]);
    const addresses = (): readonly string[] => (view.rows.get(THIEF)?.destinations ?? []).map(({ address }) => address);
    pull();
    const steps: readonly (readonly [() => void, readonly string[]])[] = [
      [(): void => upsertRaw(store, rawNode("node2", { addresses: ["172.18.0.2"] })), ["10.96.0.9", "10.96.0.20"]],
      [(): void => store.remove("Service", "shop", "victim"), ["10.96.0.9", "10.96.0.20", "172.18.0.2"]],
      [(): void => upsertRaw(store, victim), ["10.96.0.9", "10.96.0.20"]],
      [(): void => upsertRaw(store, rawNode("node2", { addresses: ["172.18.0.3"] })), ["10.96.0.9", "10.96.0.20", "172.18.0.2"]],
      [(): void => upsertRaw(store, rawServiceCIDR("main", ["10.96.0.0/16"])), ["10.96.0.9", "172.18.0.2"]],
      [(): void => store.remove("ServiceCIDR", "", "main"), ["10.96.0.9", "10.96.0.20", "172.18.0.2"]],
    ];
    for (const [happen, expected] of steps) {
      happen();
      const keys = pull()?.set.map(({ key }) => key) ?? [];
      expect(keys.filter((key) => key !== "shop/victim:http/TCP")).toEqual([THIEF]);
      expect(addresses()).toEqual(expected);
    }
    expect(issues).toHaveLength(4);
  });
});

describe("waiting", () => {
  it("a feed gives the first state, then waits for a change", async () => {
    const store = new Store();
    const feed = createFeed(store, OPTIONS);
    const first = feed.next(new AbortController().signal);
    for (const kind of OBJECT_KINDS) store.markSynced(kind);
    expect(await first).toMatchObject({ full: true, set: [] });
    let isGiven = false;
    const second = feed.next(new AbortController().signal).then((changes) => {
      isGiven = true;
      return changes;
    });
    upsertRaw(store, rawService("alias", { clusterIP: "None" }));
    await flushPromises();
    expect(isGiven).toBe(false);
    for (const raw of CART) upsertRaw(store, raw);
    expect(await second).toMatchObject({ full: false, set: [{ key: "shop/cart:http/TCP" }] });
  });

  it("ends with canceled, also when it is stopped before it begins", async () => {
    const feed = createFeed(new Store(), OPTIONS);
    const stop = new AbortController();
    const waiting = feed.next(stop.signal);
    stop.abort();
    await expect(waiting).rejects.toSatisfy((error) => ProxyError.is(error, "canceled"));
    await expect(feed.next(stop.signal)).rejects.toSatisfy((error) => ProxyError.is(error, "canceled"));
  });

  it("a closed view hears nothing", () => {
    const { store, view, pull } = pulled(CART);
    view.close();
    store.remove("Service", "shop", "cart");
    expect(pull()).toBeUndefined();
  });
});
