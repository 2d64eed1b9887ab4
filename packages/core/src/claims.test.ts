import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Claims, destinationName } from "./claims.ts";
import type { ServicePort } from "./model.ts";
import { createStoreView, upsertRaw } from "./testing/view.ts";
import { rawService } from "./testing/objects.ts";

function row(key: string, createdMs: number, addresses: readonly string[], protocol: "TCP" | "UDP" = "TCP"): ServicePort {
  return {
    key,
    name: { namespace: "shop", name: key, port: "", protocol },
    family: "IPv4",
    createdMs,
    endpoints: [],
    cluster: [],
    local: [],
    topology: "",
    destinations: addresses.map((address) => ({ kind: "externalIP", address, port: 80, rules: [] })),
    affinitySeconds: undefined,
    internalLocal: false,
    externalLocal: false,
    healthCheck: undefined,
  };
}

function held(claims: Claims, key: string): readonly string[] {
  return claims.settled(key)?.row.destinations.map(({ address }) => address) ?? [];
}

describe("R-53 claims: when two rows want one address and port", () => {
  it("the older has it, the younger keeps the rest of its own", () => {
    const claims = new Claims();
    claims.set("young", row("young", 2, ["x", "y"]));
    expect([...claims.set("old", row("old", 1, ["x"]))]).toEqual(["young"]);
    expect([held(claims, "old"), held(claims, "young")]).toEqual([["x"], ["y"]]);
    expect(claims.settled("young")?.lost).toMatchObject([{ row: "young", winner: "old", destination: { address: "x" } }]);
  });

  it("the address comes back when the winner goes, or stops wanting it", () => {
    const claims = new Claims();
    claims.set("old", row("old", 1, ["x"]));
    claims.set("young", row("young", 2, ["x"]));
    expect([...claims.set("old", row("old", 1, ["z"]))]).toEqual(["young"]);
    expect(held(claims, "young")).toEqual(["x"]);
    claims.set("old", row("old", 1, ["x"]));
    expect([...claims.set("old", undefined)]).toEqual(["young"]);
    expect(held(claims, "young")).toEqual(["x"]);
  });

  it("of three, the next oldest follows", () => {
    const claims = new Claims();
    for (const [key, createdMs] of [
      ["c", 3],
      ["a", 1],
      ["b", 2],
    ] as const)
      claims.set(key, row(key, createdMs, ["x"]));
    claims.set("a", undefined);
    expect([held(claims, "b"), held(claims, "c")]).toEqual([["x"], []]);
  });

  it("equal age: the key decides", () => {
    const claims = new Claims();
    claims.set("b", row("b", 1, ["x"]));
    claims.set("a", row("a", 1, ["x"]));
    expect([held(claims, "a"), held(claims, "b")]).toEqual([["x"], []]);
  });

  it("another protocol or port is another claim", () => {
    const claims = new Claims();
    claims.set("tcp", row("tcp", 1, ["x"]));
    claims.set("udp", row("udp", 2, ["x"], "UDP"));
    expect([held(claims, "tcp"), held(claims, "udp")]).toEqual([["x"], ["x"]]);
  });

  it("a row nobody contests is not copied, and an unknown one has nothing", () => {
    const claims = new Claims();
    const alone = row("a", 1, ["x"]);
    claims.set("a", alone);
    expect(claims.settled("a")?.row).toBe(alone);
    expect(claims.settled("b")).toBeUndefined();
  });

  it("any history ends where the last word of each row alone would", () => {
    const change = fc.record({
      key: fc.constantFrom("a", "b", "c", "d"),
      createdMs: fc.integer({ min: 1, max: 3 }),
      addresses: fc.option(fc.subarray(["x", "y", "z"])),
    });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (history, order) => {
        const claims = new Claims();
        const last = new Map<string, ServicePort | undefined>();
        const seen = new Map<string, readonly string[]>();
        for (const { key, createdMs, addresses } of history) {
          const next = addresses === null ? undefined : row(key, createdMs, addresses);
          last.set(key, next);
          for (const touched of [key, ...claims.set(key, next)]) seen.set(touched, held(claims, touched));
        }
        const fresh = new Claims();
        const shuffled = [...last].map((entry) => [order.next().value as number, entry] as const).toSorted(([a], [b]) => a - b);
        for (const [, [key, wanted]] of shuffled) fresh.set(key, wanted);
        for (const key of last.keys()) {
          expect(held(claims, key)).toEqual(held(fresh, key));
          // What set() said had changed is all that changed.
          expect(seen.get(key)).toEqual(held(claims, key));
        }
      }),
    );
  });
});

describe("R-53 between Services", () => {
  const first = rawService("first", { type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30080 }] });
  const second = rawService(
    "second",
    { type: "NodePort", clusterIP: "10.96.0.2", ports: [{ name: "http", port: 80, nodePort: 30080 }] },
    { created: "2024-02-01T00:00:00Z" },
  );

  it("one report names winner and loser; the node port comes back when the first Service goes", () => {
    const { store, view, issues, take } = createStoreView([second]);
    take();
    upsertRaw(store, first);
    take();
    const kinds = (): unknown => view.rows.get("shop/second:http/TCP")?.destinations.map(({ kind }) => kind);
    expect(kinds()).toEqual(["clusterIP"]);
    expect(issues).toMatchObject([
      {
        object: "Service port shop/second:http/TCP",
        what: expect.stringMatching(/node port 30080\/TCP is shop\/first:http\/TCP's/) as string,
      },
    ]);
    upsertRaw(store, second);
    upsertRaw(store, first);
    take();
    expect(issues).toHaveLength(1);
    store.remove("Service", "shop", "first");
    expect(take()?.set.map(({ key }) => key)).toEqual(["shop/second:http/TCP"]);
    expect(kinds()).toEqual(["clusterIP", "nodePort"]);
  });

  it("two ports of one Service with one node port: one has it, whatever their order", () => {
    const ports = [
      { name: "b", port: 81, nodePort: 30080 },
      { name: "a", port: 80, nodePort: 30080 },
    ];
    for (const order of [ports, ports.toReversed()]) {
      const { view, issues, take } = createStoreView([rawService("cart", { type: "NodePort", ports: order })]);
      take();
      const withPort = [...view.rows.values()].filter(({ destinations }) => destinations.some(({ kind }) => kind === "nodePort"));
      expect(withPort.map(({ name }) => name.port)).toEqual(["a"]);
      expect(issues).toHaveLength(1);
    }
  });
});

describe("names of destinations", () => {
  it.each([
    [{ kind: "clusterIP", address: "10.96.0.1", port: 80 }, "10.96.0.1:80/TCP"],
    [{ kind: "clusterIP", address: "fd00:96::1", port: 80 }, "[fd00:96::1]:80/TCP"],
    [{ kind: "nodePort", address: "", port: 30080 }, "node port 30080/TCP"],
  ] as const)("%j is %s", (destination, expected) => expect(destinationName(destination, row("a", 1, []))).toBe(expected));
});
