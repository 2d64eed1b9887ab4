import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rawNode, rawService, rawServiceCIDR, rawSlice } from "../testing/objects.ts";
import { OBJECT_KINDS } from "../model/api-objects.ts";
import type { Issue, ObjectKind } from "../model/api-objects.ts";
import { Store } from "./store.ts";
import type { StoreChange } from "./store.ts";

function listening(): { store: Store; issues: Issue[]; changes: StoreChange[] } {
  const issues: Issue[] = [];
  const changes: StoreChange[] = [];
  const store = new Store({ report: (issue) => void issues.push(issue) });
  store.onChange((change) => void changes.push(change));
  return { store, issues, changes };
}

describe("R-54 nothing counts before every list is complete", () => {
  it("synced when the last kind is, told once", () => {
    const { store, changes } = listening();
    for (const kind of OBJECT_KINDS) {
      expect(store.isSynced).toBe(false);
      store.markSynced(kind);
    }
    store.markSynced("Service");
    expect(store.isSynced).toBe(true);
    expect(changes).toEqual([{ kind: "synced" }]);
  });
});

describe("R-55 an object that can't be named is skipped and reported", () => {
  const named = (metadata: unknown): unknown => ({ ...rawService("cart"), metadata });
  it.each([
    ["null", null],
    ["undefined", undefined],
    ["text", "Service"],
    ["number", 7],
    ["list", [rawService("cart")]],
    ["empty object", {}],
    ["no metadata", named(undefined)],
    ["metadata is text", named("cart")],
    ["metadata is a list", named(["cart"])],
    ["no name", named({ namespace: "shop" })],
    ["empty name", named({ namespace: "shop", name: "" })],
    ["name is a number", named({ namespace: "shop", name: 5 })],
    ["name with a slash", named({ namespace: "shop", name: "a/b" })],
    ["name with a blank", named({ namespace: "shop", name: "a b" })],
    ["name with a line break", named({ namespace: "shop", name: "cart\n" })],
    ["name that is an escape", named({ namespace: "shop", name: "\u001b[2J" })],
    ["name in quotes", named({ namespace: "shop", name: '"; flush ruleset; #' })],
    ["name too long", named({ namespace: "shop", name: "a".repeat(254) })],
    ["name that ends in a dash", named({ namespace: "shop", name: "cart-" })],
    ["hostile namespace", named({ namespace: "shop}", name: "cart" })],
  ])("%s", (_name, raw) => {
    for (const kind of OBJECT_KINDS) {
      const { store, issues, changes } = listening();
      expect(() => store.upsert(kind, raw)).not.toThrow();
      expect(issues).toHaveLength(1);
      expect(issues[0]).toMatchObject({ object: kind, what: expect.stringMatching(/^[\x20-\x7e]{1,200}$/) as string });
      expect(changes).toEqual([]);
      expect([...store.serviceKeys()]).toEqual([]);
    }
  });

  it.each(["cart", "a".repeat(63), "a".repeat(253), "a.b-c.0", "constructor", "tostring"])("%s is a name", (name) => {
    const { store, issues } = listening();
    store.upsert("Service", rawService(name));
    expect([...store.serviceKeys()]).toEqual([`shop/${name}`]);
    expect(issues).toEqual([]);
  });

  it("no namespace is the default one", () => {
    const { store } = listening();
    store.upsert("Service", { metadata: { name: "cart" }, spec: {} });
    expect([...store.serviceKeys()]).toEqual(["default/cart"]);
  });
});

describe("R-55 reports", () => {
  const bad = rawService("cart", { sessionAffinity: "Cookie" });

  it("what the source says is wrong holds until the source says otherwise", () => {
    const { store, issues } = listening();
    const torn = { object: "/m/a.yaml:7", what: "can't be parsed", hint: "mend it" };
    store.holdIssues([torn]);
    store.upsert("Service", bad);
    expect([...store.issues()]).toEqual([torn, ...issues]);
    store.holdIssues([]);
    expect([...store.issues()]).toEqual(issues);
  });

  it("one for each version of an object: a repeated list does not say it again", () => {
    const { store, issues } = listening();
    store.upsert("Service", bad);
    store.upsert("Service", structuredClone(bad));
    expect(issues).toHaveLength(1);
  });

  it("again when something else is wrong, or when it was right in between, or gone", () => {
    const { store, issues } = listening();
    store.upsert("Service", bad);
    store.upsert("Service", rawService("cart", { sessionAffinity: "Header" }));
    store.upsert("Service", rawService("cart"));
    store.upsert("Service", bad);
    store.remove("Service", "shop", "cart");
    store.upsert("Service", bad);
    expect(issues.map(({ what }) => what.includes("Cookie"))).toEqual([true, false, true, true]);
  });

  it("a Service that turned bad is gone, and comes back when it is mended", () => {
    const { store } = listening();
    store.upsert("Service", rawService("cart"));
    store.upsert("Service", rawService("cart", { type: "Portal" }));
    expect(store.service("shop/cart")).toBeUndefined();
    store.upsert("Service", rawService("cart"));
    expect(store.service("shop/cart")).toBeDefined();
  });

  it.each(["Service", "EndpointSlice", "Node", "ServiceCIDR"] satisfies ObjectKind[])(
    "hostile text in any field of a %s: clean reports only",
    (kind) => {
      const evil = '"\n}; delete table ip x; #\u001b]0;\u0007$(reboot)`';
      const samples = {
        Service: rawService("x", { externalIPs: [], selector: { a: "b" } }),
        EndpointSlice: rawSlice("x", [{ ip: "10.1.1.1", node: "n" }]),
        Node: rawNode("x"),
        ServiceCIDR: rawServiceCIDR("x", ["10.0.0.0/8"]),
      };
      const { store, issues } = listening();
      for (const poisoned of poison(samples[kind], evil)) expect(() => store.upsert(kind, poisoned)).not.toThrow();
      for (const { object, what } of issues) expect(object + what).toMatch(/^[\x20-\x7e]*$/);
      const kept = JSON.stringify([
        [...store.serviceKeys()].map((key) => store.service(key)),
        [...store.slices("shop/x")],
        store.node("x"),
        store.serviceCIDRs(),
      ]);
      expect(kept).not.toContain("delete table");
    },
  );
});

/** Every copy of a value in which one leaf, or one whole branch, is replaced by `evil`. */
function poison(value: unknown, evil: string): unknown[] {
  if (typeof value !== "object" || value === null) return [evil];
  if (Array.isArray(value))
    return [evil, ...(value as unknown[]).flatMap((item, at) => poison(item, evil).map((bad) => (value as unknown[]).with(at, bad)))];
  const fields = Object.entries(value);
  return [evil, ...fields.flatMap(([field, inner]) => poison(inner, evil).map((bad) => ({ ...value, [field]: bad })))];
}

describe("slices belong to the Service they name", () => {
  it("a slice before its Service, moved, removed", () => {
    const { store, changes } = listening();
    store.upsert("EndpointSlice", rawSlice("cart", [{ ip: "10.1.1.1" }], { name: "s" }));
    expect([...store.slices("shop/cart").keys()]).toEqual(["shop/s"]);
    store.upsert("EndpointSlice", rawSlice("till", [{ ip: "10.1.1.1" }], { name: "s" }));
    expect([store.slices("shop/cart").size, store.slices("shop/till").size]).toEqual([0, 1]);
    store.remove("EndpointSlice", "shop", "s");
    expect(store.slices("shop/till").size).toBe(0);
    expect(changes.map((change) => (change.kind === "service" ? change.key : change.kind))).toEqual([
      "shop/cart",
      "shop/cart",
      "shop/till",
      "shop/till",
    ]);
  });

  it("slices of one name in two namespaces are two", () => {
    const { store } = listening();
    store.upsert("EndpointSlice", rawSlice("cart", [{ ip: "10.1.1.1" }], { name: "s" }));
    store.upsert("EndpointSlice", rawSlice("cart", [{ ip: "10.1.1.2" }], { name: "s", namespace: "other" }));
    store.remove("EndpointSlice", "other", "s");
    expect(store.slices("shop/cart").size).toBe(1);
  });

  it("what is not there can be removed", () => {
    const { store, changes } = listening();
    for (const kind of OBJECT_KINDS) store.remove(kind, "shop", "nothing");
    expect(changes.filter(({ kind }) => kind === "service")).toEqual([]);
  });
});

describe("a new version of an object", () => {
  const slice = (ready: boolean, extras: Parameters<typeof rawSlice>[2] = {}) =>
    rawSlice(
      "cart",
      [{ ip: "10.1.1.1" }, { ip: "10.1.1.2", ready, serving: true, terminating: false }, { ip: "10.1.1.3", zones: ["a"] }],
      extras,
    );

  it("that says nothing new to a proxy is not told", () => {
    const { store, changes } = listening();
    const service = rawService("cart");
    store.upsert("Service", service);
    store.upsert("EndpointSlice", slice(true));
    expect(changes).toHaveLength(2);
    store.upsert("Service", { ...service, metadata: { ...(service["metadata"] as object), annotations: { seen: "yes" } } });
    store.upsert("EndpointSlice", structuredClone(slice(true)));
    expect(changes).toHaveLength(2);
    store.upsert("EndpointSlice", slice(true, { triggered: "2024-01-01T00:00:10Z" }));
    expect(changes).toHaveLength(3);
  });

  it("leaves what did not change the same objects", () => {
    const { store } = listening();
    const endpoints = () => [...store.slices("shop/cart").values()][0]?.endpoints ?? [];
    store.upsert("EndpointSlice", slice(true));
    const before = endpoints();
    store.upsert("EndpointSlice", slice(false));
    expect(endpoints().map((one, index) => one === before[index])).toEqual([true, false, true]);
    store.upsert("Service", rawService("cart"));
    const addresses = store.service("shop/cart")?.addresses;
    store.upsert("Service", rawService("cart", { ports: [{ name: "http", port: 81 }] }));
    expect(store.service("shop/cart")?.addresses).toBe(addresses);
    expect(store.service("shop/cart")?.ports[0]?.port).toBe(81);
  });

  it("is read as if there had been none before, whatever both say", () => {
    const odd = fc.constantFrom<unknown>(true, false, undefined, null, "yes");
    const endpoint = fc.record(
      {
        addresses: fc.constantFrom<unknown>(
          ["10.1.1.1"],
          ["10.1.1.2"],
          ["10.1.1.3"],
          ["010.1.1.3"],
          ["127.0.0.1"],
          ["fd00::1"],
          [],
          "10.1.1.1",
        ),
        nodeName: fc.constantFrom<unknown>("node1", "node2", "", null, "-", 7),
        conditions: fc.oneof(
          fc.record({ ready: odd, serving: odd, terminating: odd }, { requiredKeys: [] }),
          fc.constantFrom<unknown>(null, "no"),
        ),
        hints: fc.constantFrom<unknown>({ forZones: [{ name: "a" }] }, { forNodes: [{ name: "node1" }] }, {}, null, "none"),
        targetRef: fc.constantFrom<unknown>(
          { kind: "Pod", name: "a" },
          { kind: "Pod", name: "b", namespace: "other" },
          { kind: "Node", name: "a" },
          null,
        ),
      },
      { requiredKeys: [] },
    );
    const anySlice = fc.record({
      endpoints: fc.array(endpoint, { maxLength: 5 }),
      ports: fc.subarray([
        { name: "http", port: 8080 },
        { name: "https", port: 8443 },
        { name: "-", port: 1 },
      ]),
      addressType: fc.constantFrom("IPv4", "IPv4", "IPv4", "IPv6"),
    });
    const isReadAlike = (first: object, second: object, keepsPodNames: boolean): void => {
      const metadata = { namespace: "shop", name: "cart-1", labels: { "kubernetes.io/service-name": "cart" } };
      const [used, fresh] = [new Store({ keepsPodNames }), new Store({ keepsPodNames })];
      used.upsert("EndpointSlice", { metadata, ...first });
      for (const store of [used, fresh]) store.upsert("EndpointSlice", { metadata, ...second });
      expect([...used.slices("shop/cart").values()]).toEqual([...fresh.slices("shop/cart").values()]);
      expect([...used.issues()]).toEqual([...fresh.issues()]);
    };
    fc.assert(fc.property(anySlice, anySlice, fc.boolean(), isReadAlike), { numRuns: 1_000 });
  });
});
