import * as fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { parseCIDR } from "../model/addresses.ts";
import type { EndpointSlice } from "../model/api-objects.ts";
import { RangeIndex } from "../model/range-index.ts";
import { Claims, hasUsableEndpoint } from "./claims.ts";
import { NO_GROUND } from "./ground.ts";
import type { Ground } from "./ground.ts";
import type { DestinationKind, Endpoint, ServicePort } from "../model/rows.ts";
import { createStoreView, upsertRaw } from "../testing/view.ts";
import { rawService } from "../testing/objects.ts";

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

/** A row that wants places of several kinds, each `kind address port`; a node port has no address. */
function wanting(key: string, createdMs: number, ...places: readonly string[]): ServicePort {
  const destinations = places.map((place) => {
    const [kind = "", address = "", port = ""] = place.split(" ");
    return { kind: kind as DestinationKind, address, port: Number(port || address), rules: [] };
  });
  return { ...row(key, createdMs, []), destinations: destinations.map((one) => (one.kind === "nodePort" ? { ...one, address: "" } : one)) };
}

/** A row with one endpoint, in a namespace. */
function served(wanted: ServicePort, isReady: boolean, namespace = "shop"): ServicePort {
  const endpoint: Endpoint = {
    ip: "10.1.1.1",
    port: 8080,
    nodeName: "node9",
    isLocal: false,
    ready: isReady,
    serving: isReady,
    terminating: false,
  };
  return { ...wanted, name: { ...wanted.name, namespace }, endpoints: [endpoint] };
}

function ground(ranges: readonly string[], nodeAddresses: readonly string[] = []): Ground {
  return { ...NO_GROUND, serviceRanges: ranges.flatMap((text) => parseCIDR(text) ?? []), nodeAddresses: new Set(nodeAddresses) };
}

let claims: Claims<ServicePort>;
beforeEach(() => {
  claims = new Claims<ServicePort>(hasUsableEndpoint);
});

function held(key: string, of = claims): readonly string[] {
  return of.resolve(key)?.row.destinations.map(({ address }) => address) ?? [];
}

/** Put a row in or take it out; the keys of the others that this may have touched. */
function put(key: string, wanted: ServicePort | undefined, into = claims): readonly string[] {
  const affected = new Set<string>();
  into.set(key, wanted, affected);
  return [...affected].filter((other) => other !== key);
}

describe("R-53 claims: when two rows want one address and port", () => {
  it("the older has it, the younger keeps the rest of its own", () => {
    put("young", row("young", 2, ["x", "y"]));
    expect(put("old", row("old", 1, ["x"]))).toEqual(["young"]);
    expect([held("old"), held("young")]).toEqual([["x"], ["y"]]);
    expect(claims.resolve("young")?.lost).toMatchObject([{ winner: "old", destination: { address: "x" } }]);
  });

  it("a row that takes something is told of before the one that loses it", () => {
    put("young", row("young", 2, ["x"]));
    const affected = new Set<string>();
    claims.set("old", row("old", 1, ["x"]), affected);
    expect([...affected]).toEqual(["old", "young"]);
  });

  it("the address comes back when the winner goes, or stops wanting it", () => {
    put("old", row("old", 1, ["x"]));
    put("young", row("young", 2, ["x"]));
    expect(put("old", row("old", 1, ["z"]))).toEqual(["young"]);
    expect(held("young")).toEqual(["x"]);
    put("old", row("old", 1, ["x"]));
    expect(put("old", undefined)).toEqual(["young"]);
    expect(held("young")).toEqual(["x"]);
  });

  it("equal age: the key decides", () => {
    put("b", row("b", 1, ["x"]));
    put("a", row("a", 1, ["x"]));
    expect([held("a"), held("b")]).toEqual([["x"], []]);
  });

  it("another protocol or port is another claim", () => {
    put("tcp", row("tcp", 1, ["x"]));
    put("udp", row("udp", 2, ["x"], "UDP"));
    expect([held("tcp"), held("udp")]).toEqual([["x"], ["x"]]);
  });

  it("a row nobody contests is not copied, and an unknown one has nothing", () => {
    const standalone = row("a", 1, ["x"]);
    put("a", standalone);
    expect(claims.resolve("a")?.row).toBe(standalone);
    expect(claims.resolve("b")).toBeUndefined();
  });

  it("the kind goes before the age: cluster IP, load-balancer IP, external IP", () => {
    put("external", wanting("external", 1, "externalIP x 80"));
    expect(put("balanced", wanting("balanced", 2, "loadBalancerIP x 80"))).toEqual(["external"]);
    expect(put("owner", wanting("owner", 3, "clusterIP x 80"))).toEqual(["balanced"]);
    put("later", wanting("later", 0, "externalIP x 80"));
    expect(["external", "balanced", "owner", "later"].map((key) => held(key))).toEqual([[], [], ["x"], []]);
    expect(claims.resolve("external")?.lost).toMatchObject([{ winner: "owner", wonAs: "clusterIP" }]);
    put("owner", undefined);
    expect(put("balanced", undefined)).toEqual(["later"]);
    expect([held("external"), held("later")]).toEqual([[], ["x"]]);
  });

  it("two rows that want the same thousands cost in proportion to these", () => {
    let reads = 0;
    const counted = ({ destinations, ...rest }: ServicePort): ServicePort => {
      const get = (target: object, field: string | symbol): unknown => (reads++, Reflect.get(target, field));
      return { ...rest, destinations: new Proxy<ServicePort["destinations"]>(destinations, { get }) };
    };
    const addresses = Array.from({ length: 2_000 }, (_, index) => `x${index}`);
    put("old", counted(row("old", 1, addresses)));
    put("young", counted(row("young", 2, addresses)));
    expect(held("young")).toEqual([]);
    expect(reads).toBeLessThan(addresses.length * 30);
  });

  it("a change of kind alone is a change", () => {
    put("old", wanting("old", 1, "externalIP x 80"));
    put("young", wanting("young", 2, "externalIP x 80"));
    expect(put("young", wanting("young", 2, "loadBalancerIP x 80"))).toEqual(["old"]);
    expect([held("old"), held("young")]).toEqual([[], ["x"]]);
  });

  it("who goes without either way has not changed, when one of thousands passes an address to another", () => {
    for (let index = 0; index < 2_000; index++) put(`s${index}`, row(`s${index}`, index, ["x"]));
    expect(put("s0", undefined)).toEqual(["s1"]);
    expect(put("s0", row("s0", 0, ["x"]))).toEqual(["s1"]);
    expect(put("s500", undefined)).toEqual([]);
  });
});

describe("R-71 the oldest with a usable endpoint", () => {
  const X = "externalIP x 80";

  it("holds an external IP within a namespace, and passes it on and back with its endpoints", () => {
    put("blue", served(wanting("blue", 1, X, "clusterIP b 80"), true));
    put("green", served(wanting("green", 2, X), true));
    expect(["blue", "green"].map((key) => held(key))).toEqual([["x", "b"], []]);
    expect(put("blue", served(wanting("blue", 1, X, "clusterIP b 80"), false))).toEqual(["green"]);
    expect(["blue", "green"].map((key) => held(key))).toEqual([["b"], ["x"]]);
    expect(claims.resolve("blue")?.lost).toMatchObject([{ winner: "green", wonAs: "externalIP", isForNow: true }]);
    expect(put("green", served(wanting("green", 2, X), false))).toEqual(["blue"]);
    expect(["blue", "green"].map((key) => held(key))).toEqual([["x", "b"], []]);
    put("green", served(wanting("green", 2, X), true));
    expect(put("blue", served(wanting("blue", 1, X, "clusterIP b 80"), true))).toEqual(["green"]);
    expect(held("blue")).toEqual(["x", "b"]);
    expect(claims.resolve("green")?.lost[0]?.isForNow).toBeUndefined();
  });

  it("never takes it from an older one of another namespace, whose own namespace goes on with it", () => {
    put("a1", served(wanting("a1", 1, X), false, "a"));
    put("b", served(wanting("b", 2, X), true, "b"));
    expect(["a1", "b"].map((key) => held(key))).toEqual([["x"], []]);
    put("a2", served(wanting("a2", 3, X), true, "a"));
    expect(["a1", "b", "a2"].map((key) => held(key))).toEqual([[], [], ["x"]]);
    expect(claims.resolve("b")?.lost[0]?.isForNow).toBeUndefined();
    expect(put("a1", undefined).toSorted()).toEqual(["a2", "b"]);
    expect(["b", "a2"].map((key) => held(key))).toEqual([["x"], []]);
  });

  it("is asked for only among rows of one kind, and for no cluster IP or node port", () => {
    for (const [at, kind] of ["clusterIP", "nodePort", "loadBalancerIP"].entries()) {
      const place = kind === "nodePort" ? "nodePort 30080" : `${kind} 10.9.9.${at} 80`;
      put(`${kind}-old`, served(wanting(`${kind}-old`, 1, place), false));
      put(`${kind}-new`, served(wanting(`${kind}-new`, 2, kind === "loadBalancerIP" ? `externalIP 10.9.9.${at} 80` : place), true));
      expect([held(`${kind}-old`).length, held(`${kind}-new`).length]).toEqual([1, 0]);
    }
  });

  it("costs nothing while only one row wants an address, and one look where several do", () => {
    const affected = new Set<string>();
    claims.set("one", served(wanting("one", 1, X), true), affected);
    expect(claims.set("one", served(wanting("one", 1, X), false), affected)).toBe(false);
    for (let index = 0; index < 2_000; index++) put(`s${index}`, served(wanting(`s${index}`, index + 2, X), true));
    expect(put("s500", served(wanting("s500", 502, X), false))).toEqual([]);
    expect(put("s0", served(wanting("s0", 2, X), false)).toSorted()).toEqual(["s1"]);
  });
});

describe("R-64 external IPs in a service range", () => {
  it("are nobody's from when the range is known, and come back when it goes; other kinds are left alone", () => {
    put("a", wanting("a", 1, "clusterIP 10.96.0.1 80", "externalIP 10.96.0.20 80", "externalIP 198.51.100.1 80"));
    put("b", wanting("b", 2, "loadBalancerIP 10.96.0.20 80", "nodePort 30080"));
    expect([...claims.setGround(ground(["10.96.0.0/16"]))]).toEqual(["a"]);
    expect([held("a"), held("b")]).toEqual([
      ["10.96.0.1", "198.51.100.1"],
      ["10.96.0.20", ""],
    ]);
    expect(claims.resolve("a")?.lost).toMatchObject([{ winner: "10.96.0.0/16", wonAs: "serviceRange" }]);
    put("b", undefined);
    expect([...claims.setGround(ground([]))]).toEqual(["a"]);
    expect(held("a")).toEqual(["10.96.0.1", "10.96.0.20", "198.51.100.1"]);
  });

  it("a range that holds no external IP touches nobody", () => {
    put("a", wanting("a", 1, "clusterIP 10.96.0.1 80", "externalIP 198.51.100.1 80"));
    expect([...claims.setGround(ground(["10.96.0.0/16"], ["172.18.0.1"]))]).toEqual([]);
  });
});

describe("R-65 node ports on the addresses of nodes", () => {
  const NODE = "172.18.0.1";
  const squatter = wanting("squatter", 1, `externalIP ${NODE} 30080`, "externalIP x 30080");

  it("go before older external and load-balancer IPs, and after cluster IPs", () => {
    claims.setGround(ground([], [NODE]));
    put("squatter", squatter);
    put("balanced", wanting("balanced", 1, `loadBalancerIP ${NODE} 30081`));
    expect(put("web", wanting("web", 2, "nodePort 30080"))).toEqual(["squatter"]);
    expect([held("squatter"), held("balanced"), held("web")]).toEqual([["x"], [NODE], [""]]);
    expect(claims.resolve("squatter")?.lost).toMatchObject([{ winner: "web", wonAs: "nodePort" }]);
    expect(put("web", wanting("web", 2, "nodePort 30081")).toSorted()).toEqual(["balanced", "squatter"]);
    expect([held("squatter"), held("balanced")]).toEqual([[NODE, "x"], []]);
    put("owner", wanting("owner", 3, `clusterIP ${NODE} 30081`));
    expect(held("owner")).toEqual([NODE]);
  });

  it("leave their own row its external IP, whoever else wants it", () => {
    claims.setGround(ground([], [NODE]));
    put("squatter", squatter);
    put("web", wanting("web", 2, `externalIP ${NODE} 30080`, "nodePort 30080"));
    expect([held("squatter"), held("web")]).toEqual([["x"], [NODE, ""]]);
  });
});

/** Slices with the port 80 of TCP, one of each Service. */
class SlicesOf {
  readonly #slices = new Map<string, ReadonlyMap<string, EndpointSlice>>();

  put(owner: string, ips: readonly string[], createdMs: number): void {
    const [namespace = "", service = ""] = owner.split("/");
    const rest = { nodeName: undefined, ready: true, serving: true, terminating: false, zoneHints: [], nodeHints: [], podName: undefined };
    const endpoints = ips.map((ip) => ({ ip, ...rest }));
    const ports = [{ name: "", protocol: "TCP", port: 80 }] as const;
    this.#slices.set(
      owner,
      new Map([["1", { namespace, name: "1", service, family: "IPv4", createdMs, ports, endpoints, triggeredMs: undefined }]]),
    );
  }

  sliceOwners(): Iterable<string> {
    return this.#slices.keys();
  }

  slices(owner: string): ReadonlyMap<string, EndpointSlice> {
    return this.#slices.get(owner) ?? new Map<string, EndpointSlice>();
  }
}

describe("R-53, R-64, R-65, R-71, R-73, R-74 any history of claims", () => {
  const PLACES = ["clusterIP 10.96.0.1 80", "externalIP 10.96.0.1 80", "loadBalancerIP 172.18.0.1 80", "externalIP 172.18.0.1 80"];
  const MORE = ["nodePort 80", "externalIP 198.51.100.1 80", "loadBalancerIP 198.51.100.1 80", "externalIP 172.18.0.2 80"];
  const change = fc.record({
    key: fc.constantFrom("a", "b", "c", "d"),
    createdMs: fc.integer({ min: 1, max: 3 }),
    isReady: fc.boolean(),
    places: fc.option(fc.subarray([...PLACES, ...MORE])),
    ground: fc.option(
      fc.record({
        ranges: fc.subarray(["10.96.0.0/16", "198.51.0.0/16"]),
        nodes: fc.subarray(["172.18.0.1", "172.18.0.2"]),
        sources: fc.subarray(["198.51.100.1 80", "172.18.0.1 80"]),
        pods: fc.subarray(["172.18.0.2/32", "198.51.100.0/24"]),
        isStrict: fc.boolean(),
      }),
      { freq: 3 },
    ),
    /** Whose slices change: with which endpoints, and since when. */
    slices: fc.option(
      fc.record({
        owner: fc.constantFrom("shop/x", "lab/y"),
        ips: fc.subarray(["198.51.100.1", "172.18.0.2"]),
        createdMs: fc.integer({ min: 1, max: 3 }),
      }),
      { freq: 3 },
    ),
  });

  /** As in a row: an address once. */
  const once = (places: readonly string[]): readonly string[] =>
    places.filter((place, index) => places.findIndex((other) => other.split(" ")[1] === place.split(" ")[1]) === index);

  it("ends where the last word of each row alone would, and names every row that changed on the way", () => {
    fc.assert(
      fc.property(fc.array(change, { maxLength: 30 }), fc.infiniteStream(fc.nat()), (history, order) => {
        claims = new Claims<ServicePort>(hasUsableEndpoint);
        const last = new Map<string, ServicePort | undefined>();
        const seen = new Map<string, readonly string[]>();
        let known = ground([]);
        const slices = new SlicesOf();
        for (const { key, createdMs, isReady, places, ground: next, slices: moved } of history) {
          const before = last.get(key);
          // A third of the changes are of endpoints only.
          const base = createdMs === 3 && before !== undefined ? before : wanting(key, createdMs, ...once(places ?? []));
          const wanted = places === null ? undefined : served(base, isReady, key < "c" ? "shop" : "lab");
          last.set(key, wanted);
          const touched = new Set([key, ...put(key, wanted)]);
          if (next !== null) {
            const podRanges = next.pods.map((range) => ({ range, of: range.endsWith("32") ? "node1" : "node2" }));
            const own = podRanges.filter(({ of }) => of === "node1");
            const pods = { podRanges: new RangeIndex(podRanges), ownPodRanges: new RangeIndex(own) };
            known = { ...ground(next.ranges, next.nodes), sourceAddresses: new Set(next.sources), isStrict: next.isStrict, ...pods };
            for (const other of claims.setGround(known)) touched.add(other);
          }
          if (moved !== null) slices.put(moved.owner, moved.ips, moved.createdMs);
          claims.setEndpoints(moved === null ? [] : [moved.owner], slices, touched);
          for (const one of touched) seen.set(one, held(one));
          // What they said had changed is all that changed.
          for (const one of last.keys()) expect(held(one)).toEqual(seen.get(one));
        }
        const fresh = new Claims<ServicePort>(hasUsableEndpoint);
        const shuffled = [...last].map((entry) => [order.next().value as number, entry] as const).toSorted(([a], [b]) => a - b);
        for (const [, [key, wanted]] of shuffled) put(key, wanted, fresh);
        fresh.setGround(known);
        fresh.setEndpoints([], slices, new Set());
        for (const key of last.keys()) expect(held(key)).toEqual(held(key, fresh));
      }),
      { numRuns: 500 },
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
    const { store, view, issues, pull } = createStoreView([second]);
    pull();
    upsertRaw(store, first);
    pull();
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
    pull();
    expect(issues).toHaveLength(1);
    store.remove("Service", "shop", "first");
    expect(pull()?.set.map(({ key }) => key)).toEqual(["shop/second:http/TCP"]);
    expect(kinds()).toEqual(["clusterIP", "nodePort"]);
  });

  it("two ports of one Service with one node port: one has it, whatever their order", () => {
    const ports = [
      { name: "b", port: 81, nodePort: 30080 },
      { name: "a", port: 80, nodePort: 30080 },
    ];
    for (const order of [ports, ports.toReversed()]) {
      const { view, issues, pull } = createStoreView([rawService("cart", { type: "NodePort", ports: order })]);
      pull();
      const withPort = [...view.rows.values()].filter(({ destinations }) => destinations.some(({ kind }) => kind === "nodePort"));
      expect(withPort.map(({ name }) => name.port)).toEqual(["a"]);
      expect(issues).toHaveLength(1);
    }
  });
});
