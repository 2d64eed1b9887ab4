import { describe, expect, it } from "vitest";
import type { Endpoint, ServicePort } from "./rows.ts";
import { rawService, rawSlice } from "../testing/objects.ts";
import type { EndpointShort, RawObject } from "../testing/objects.ts";
import { createStoreView, rowsOf } from "../testing/view.ts";
import { DEFAULT_SETTINGS } from "../policy/node-context.ts";
import { ServiceTable } from "../state/service-table.ts";
import { EndpointChoice, endpointsPerPort } from "./first-endpoints.ts";

function rowWith(endpoints: readonly EndpointShort[], spec: RawObject = {}): ServicePort {
  const node: RawObject = { kind: "Node", metadata: { name: "node1", labels: { "topology.kubernetes.io/zone": "zone-a" } } };
  const [row] = rowsOf([node, rawService("cart", spec), rawSlice("cart", endpoints)]).values();
  if (row === undefined) throw new Error("a Service with a port has a row");
  return row;
}

function many(count: number, more: Omit<EndpointShort, "ip"> = {}, net = 1): readonly EndpointShort[] {
  return Array.from({ length: count }, (_, index) => ({ ip: `10.1.${net}.${index + 1}`, node: "node2", ...more }));
}

function withFirstEndpoints(row: ServicePort, most: number, nodeName: string): ServicePort {
  return new EndpointChoice(nodeName).firstOfRow(row, most);
}

function ips({ endpoints }: ServicePort): readonly string[] {
  return endpoints.map(({ ip }) => ip);
}

describe("R-67 how many endpoints each port may use", () => {
  it.each([
    ["all fit", [[2, 5]], 10, Infinity],
    ["one too many", [[2, 5]], 9, 4],
    ["ports with few endpoints leave more to others", [[1, 2], [1, 10]], 8, 6], // prettier-ignore
    ["one at least", [[100, 3]], 10, 1],
    ["no endpoints", [[300_000, 0]], 10, Infinity],
  ] as const)("%s", (_name, ports, max, most) => {
    expect(endpointsPerPort(ports.map(([places, endpoints]) => ({ places, endpoints })), max)).toBe(most); // prettier-ignore
  });
});

describe("R-67 which endpoints are left", () => {
  it("those on this node, then others that are used, then those that are not", () => {
    const here = many(2, { node: "node1" }, 7);
    const row = rowWith([...many(5), ...here, ...many(5, { ready: false }, 9)]);
    expect(ips(withFirstEndpoints(row, 2, "node1"))).toEqual(["10.1.7.1", "10.1.7.2"]);
    const four = withFirstEndpoints(row, 4, "node1");
    expect(ips(four).filter((ip) => ip.startsWith("10.1.1."))).toHaveLength(2);
    expect(ips(withFirstEndpoints(row, 8, "node1")).filter((ip) => ip.startsWith("10.1.9."))).toHaveLength(1);
    expect([four.cluster, withFirstEndpoints(row, 12, "node1")]).toEqual([[0, 1, 2, 3], row]);
  });

  it("those of this node's zone, where hints apply", () => {
    const row = rowWith([...many(5, { zones: ["zone-b"] }), ...many(5, { zones: ["zone-a"] }, 2)]);
    expect(ips(withFirstEndpoints(row, 3, "node1")).every((ip) => ip.startsWith("10.1.2."))).toBe(true);
  });

  it("one at least of each pool, because rules name them", () => {
    const local = many(3, { node: "node1", ready: false, terminating: true }, 7);
    const row = rowWith([...many(3), ...local], {
      type: "NodePort",
      externalTrafficPolicy: "Local",
      ports: [{ name: "http", port: 80, nodePort: 30_080 }],
    });
    const left = withFirstEndpoints(row, 1, "node1");
    expect([left.cluster.length, left.local.length, left.endpoints.length]).toEqual([1, 1, 2]);
    expect(left.local.map((index) => left.endpoints[index]?.isLocal)).toEqual([true]);
  });

  it("others on each node, and the same whichever others come and go", () => {
    const all = many(200);
    const of = (endpoints: readonly EndpointShort[], node: string): ReadonlySet<string> =>
      new Set(ips(withFirstEndpoints(rowWith(endpoints), 50, node)));
    const [first, other] = [of(all, "node1"), of(all, "node3")];
    expect([...first].filter((ip) => other.has(ip)).length).toBeLessThan(40);
    for (const gone of [0, 50, 199]) {
      const now = of(all.toSpliced(gone, 1), "node1");
      expect([...first].filter((ip) => !now.has(ip)).length).toBeLessThanOrEqual(1);
    }
    const used = new Set(Array.from({ length: 30 }, (_, node) => [...of(all, `node-${node}`)]).flat());
    expect(used.size).toBe(200);
  });
});

describe("R-67 ports with the same addresses", () => {
  it("share one choice; others have their own", () => {
    const choice = new EndpointChoice("node1");
    const row = rowWith(many(9));
    const other = { ...row, endpoints: row.endpoints.map((one) => ({ ...one, port: 9_999 })) };
    const [first, second] = [choice.firstOfRow(row, 4), choice.firstOfRow(other, 4)];
    expect([second.cluster, ips(second)]).toEqual([first.cluster, ips(first)]);
    expect(second.cluster).toBe(first.cluster);
    expect(second.endpoints.map(({ port }) => port)).toEqual([9_999, 9_999, 9_999, 9_999]);
    const near = { ...row, endpoints: row.endpoints.map((one, index) => ({ ...one, isLocal: index > 0 && index < 5 })) };
    const changed = { ...row, cluster: [1, 2], endpoints: row.endpoints.with(4, { ...(row.endpoints[4] as Endpoint), ip: "10.1.9.9" }) };
    for (const one of [near, changed, row])
      for (const most of [4, 3]) expect(choice.firstOfRow(one, most)).toEqual(withFirstEndpoints(one, most, "node1"));
  });
});

describe("R-67 products of a tenant's lists", () => {
  it("are not made beyond the limit and one endpoint, which ServiceBound reports", () => {
    const ports = Array.from({ length: 400 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
    const externalIPs = Array.from({ length: 49 }, (_, index) => `203.0.113.${index + 1}`);
    const slices = [0, 1, 2].map((net) => rawSlice("cart", many(250, {}, net), { name: `cart-${net}`, ports }));
    const { view, pull, store } = createStoreView([rawService("cart", { ports, externalIPs }), ...slices]);
    pull();
    const table = new ServiceTable(store, { family: "IPv4" });
    table.update();
    const shared = table.view({ nodeName: "node1", settings: DEFAULT_SETTINGS }).changesSince(undefined)?.set ?? [];
    const sizes = [...view.rows.values(), ...shared].map(({ endpoints, cluster }) => [endpoints.length, cluster.length].join());
    expect([sizes.length, [...new Set(sizes)]]).toEqual([800, ["26,26"]]);
  });
});
