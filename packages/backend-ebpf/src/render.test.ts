import type { LocalDetector, NodeContext, NodeSettings, ServicePort } from "@turnout/core";
import { SHOWCASE } from "@turnout/core/testing";
import type { ServiceFixture } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { elementsOf } from "./bytes/elements.ts";
import { encodeEndpoint } from "./bytes/layout.ts";
import { familyOfRow, loopbackId } from "./names.ts";
import type { EbpfObject, ServiceObject } from "./objects.ts";
import { listsOf, rangesOf } from "./objects.ts";
import { ebpfModule } from "./module.ts";
import { renderRow } from "./render.ts";
import { TABLE_OBJECT } from "./packets/nft-table.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FACTS, OPTIONS, PARTS, SETTINGS, stateOf } from "./test-support/states.ts";

function render(
  fixture: ServiceFixture,
  change: (node: NodeContext) => NodeContext = (node) => node,
  options = OPTIONS,
): readonly EbpfObject[] {
  const { rows, node } = stateOf([fixture], "IPv4");
  return [...rows.values()].flatMap((row) => renderRow(row, { node: change(node), host: FACTS }, options));
}

/** What each asker of a destination gets: endpoints, or what else. */
function fates(objects: readonly EbpfObject[], key: string): readonly string[] {
  const service = objects.find((object): object is ServiceObject => object.kind === "service" && object.key === key);
  if (service === undefined) throw new Error(`no service ${key}`);
  const { pod, host, outside } = service.value;
  return [pod, host, outside].map(({ verdict, list, masquerade }) => {
    if (verdict !== "serve") return verdict;
    const found = objects.find((object) => object.kind === "list" && object.key === list);
    const endpoints = found?.kind === "list" ? found.value.map((text) => text.replace(/^10\.1\.1\.(\d+):8080$/, "$1")) : ["?"];
    return endpoints.join(",") + (masquerade ? " masquerade" : "");
  });
}

/** Whose sockets leave a destination to packets. */
function passing(objects: readonly EbpfObject[], key: string): readonly string[] {
  return objects.flatMap((object) =>
    object.kind === "service" && object.key === key
      ? [...(object.value.podsPass ? ["pods"] : []), ...(object.value.hostPass ? ["host"] : [])]
      : [],
  );
}

const outer = (spec: ServiceFixture["spec"]): ServiceFixture => ({
  name: "web",
  number: 6,
  local: 1,
  remote: 1,
  spec: { type: "LoadBalancer", nodePort: 30006, externalIPs: ["198.51.100.9"], ...spec },
  loadBalancerIPs: ["198.51.100.6"],
});

describe("what each asker gets: a pod, the host, outside", () => {
  it.each<[string, ServiceFixture, string, readonly string[]]>([
    ["R-22, Cluster", { name: "a", number: 1, local: 1, remote: 1 }, "10.96.0.1:80/TCP", ["10,15", "10,15 masquerade", "10,15 masquerade"]],
    [
      "R-22, Local",
      { name: "a", number: 1, local: 1, remote: 1, spec: { internalTrafficPolicy: "Local" } },
      "10.96.0.1:80/TCP",
      ["10", "10 masquerade", "10 masquerade"],
    ],
    ["R-23", { name: "a", number: 1 }, "10.96.0.1:80/TCP", ["reject", "reject", "reject"]],
    ["R-27", { name: "a", number: 1, remote: 1, spec: { internalTrafficPolicy: "Local" } }, "10.96.0.1:80/TCP", ["drop", "drop", "drop"]],
    ["R-28, node port", outer({}), "0.0.0.0:30006/TCP", ["60,65 masquerade", "60,65 masquerade", "60,65 masquerade"]],
    ["R-28, external IP", outer({}), "198.51.100.9:80/TCP", ["60,65 masquerade", "60,65 masquerade", "60,65 masquerade"]],
    ["R-29", { ...outer({ externalTrafficPolicy: "Local" }), local: 0, remote: 0 }, "0.0.0.0:30006/TCP", ["reject", "reject", "reject"]],
    ["R-30 to R-32", outer({ externalTrafficPolicy: "Local" }), "198.51.100.6:80/TCP", ["60,65", "60,65 masquerade", "60"]],
    ["R-33", { ...outer({ externalTrafficPolicy: "Local" }), local: 0 }, "0.0.0.0:30006/TCP", ["65", "65 masquerade", "drop"]],
  ])("%s", (_, fixture, key, expected) => expect(fates(render(fixture), key)).toEqual(expected));

  it("R-34: where pods can't be recognised they are outside", () => {
    const settings: NodeSettings = { ...SETTINGS, detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [] } };
    const { rows, node } = stateOf([outer({ externalTrafficPolicy: "Local" })], "IPv4", settings);
    const objects = [...rows.values()].flatMap((row) => renderRow(row, { node, host: FACTS }, OPTIONS));
    expect(fates(objects, "198.51.100.6:80/TCP")).toEqual(["60", "60,65 masquerade", "60"]);
  });

  it.each<[string, readonly string[], readonly string[], readonly string[]]>([
    ["neither", ["203.0.113.0/24"], ["10.1.1.0/24"], ["pods", "host"]],
    ["the host by its primary address", ["172.18.0.0/16"], ["10.1.1.0/24"], ["pods"]],
    ["pods, all of them", ["10.1.0.0/16"], ["10.1.1.0/24"], ["host"]],
    ["pods of the node's range, but not of the whole cluster's", ["10.1.1.0/24"], ["10.1.1.0/24"], ["pods", "host"]],
    ["pods of the cluster's range, but not of the node's", ["10.1.0.0/16"], ["10.9.1.0/24"], ["pods", "host"]],
    ["pods of both ranges", ["10.1.0.0/16", "10.9.0.0/16"], ["10.9.1.0/24"], ["host"]],
    ["some pods of a range", ["10.1.1.0/25"], ["10.1.1.0/24"], ["pods", "host"]],
    ["pods as detect-local knows them", ["10.1.0.0/16"], [], ["host"]],
  ])("R-39, R-40: whose sockets leave it to packets where source ranges hold %s", (_, loadBalancerSourceRanges, podCIDRs, expected) => {
    const objects = render(outer({ loadBalancerSourceRanges }), (node) => ({ ...node, podCIDRs }));
    expect(passing(objects, "198.51.100.6:80/TCP")).toEqual(expected);
    expect(passing(objects, "198.51.100.9:80/TCP")).toEqual([]);
    expect(fates(objects, "198.51.100.6:80/TCP")).toEqual(fates(objects, "198.51.100.9:80/TCP"));
  });

  it.each<[string, LocalDetector | undefined, readonly string[]]>([
    ["by addresses", { by: "cidr", cidrs: ["10.1.0.0/16"] }, []],
    ["by a device", { by: "interface", name: "cni0" }, ["pods"]],
    ["by devices' names", { by: "interfacePrefix", prefix: "cali" }, ["pods"]],
    ["by nothing", undefined, ["pods"]],
    ["by no addresses", { by: "cidr", cidrs: [] }, ["pods"]],
  ])("R-39, R-40: pods are told %s: only addresses that detect-local knows may let their sockets in", (_, detector, expected) => {
    const loadBalancerSourceRanges = ["10.1.0.0/16", "172.18.0.0/16"];
    const objects = render(outer({ loadBalancerSourceRanges }), (node) => ({ ...node, podCIDRs: ["10.1.1.0/24"], detector }));
    expect(passing(objects, "198.51.100.6:80/TCP")).toEqual(expected);
  });

  it("R-39, R-40: source ranges are an object of their own, which load-balancer IPs name and nothing else", () => {
    const objects = render(outer({ loadBalancerSourceRanges: ["203.0.113.0/24", "172.18.0.0/16"] }));
    const ranges = objects.filter(({ kind }) => kind === "ranges");
    // The load-balancer IP itself may be a source, as the node's primary address may.
    expect(ranges.map(({ value }) => value)).toEqual([["172.18.0.0/16", "203.0.113.0/24", "198.51.100.6/32"]]);
    const named = objects.flatMap((object) =>
      object.kind === "service" && rangesOf(object).length > 0 ? [[object.key, ...rangesOf(object)]] : [],
    );
    expect(named).toEqual([["198.51.100.6:80/TCP", ranges[0]?.key]]);
  });
});

describe("renderRow", () => {
  it.each(["IPv4", "IPv6"] as const)(
    "names only lists that are there, with as many endpoints, in the order of their bytes: %s",
    (family) => {
      const { rows, node } = stateOf(SHOWCASE, family);
      for (const row of rows.values()) {
        const objects = renderRow(row, { node, host: FACTS }, OPTIONS);
        const lists = new Map(objects.filter((object) => object.kind === "list").map((list) => [list.key, list.value]));
        const named = objects.filter((object) => object.kind === "service").flatMap(listsOf);
        expect(new Set(named)).toEqual(new Set(lists.keys()));
        for (const value of lists.values())
          expect(value).toEqual(value.toSorted((a, b) => Buffer.compare(encodeEndpoint(a), encodeEndpoint(b))));
        expect(objects.flatMap(({ kind, key }) => (kind === "counter" ? [familyOfRow(key)] : []))).toEqual([family]);
        expect(objects.flatMap((object) => elementsOf(object)).length).toBeGreaterThan(0);
      }
    },
  );

  it("sorts by bytes, not by text", () => {
    const [row] = stateOf([{ name: "a", number: 9, local: 1, remote: 6 }], "IPv4").rows.values();
    const { node } = stateOf([], "IPv4");
    const list = renderRow(row as ServicePort, { node, host: FACTS }, OPTIONS).find(({ kind }) => kind === "list");
    expect(list?.value).toEqual([90, 95, 96, 97, 98, 99, 100].map((last) => `10.1.1.${last}:8080`));
  });

  it("gives a row without destinations nothing, and one pool for both policies where all is local", () => {
    const { rows, node } = stateOf([outer({ externalTrafficPolicy: "Local" })], "IPv4");
    const [row] = rows.values() as IterableIterator<ServicePort>;
    if (row === undefined) throw new Error("a Service has a row");
    expect(renderRow({ ...row, destinations: [] }, { node, host: FACTS }, OPTIONS)).toEqual([]);
    const same = renderRow({ ...row, cluster: row.local }, { node, host: FACTS }, OPTIONS);
    expect(same.filter(({ kind }) => kind === "list").length).toBe(1);
  });

  it("marks cluster IPs, and no other address", () => {
    const marked = render(outer({})).flatMap((object) => (object.kind === "service" && object.value.isClusterIP ? [object.key] : []));
    expect(marked).toEqual(["10.96.0.6:80/TCP"]);
  });

  it("says what pods' sockets leave alone; the host's don't, as no packet of its own can be served", () => {
    const all = [
      {},
      { "opt-out-services": ["shop/web"] },
      { "opt-out-services": ["shop/*"] },
      { "host-sockets-only": true },
      { "opt-out-services": ["other/*"] },
    ];
    const flags = all.map((raw) =>
      render(outer({}), undefined, ebpfModule.parseOptions(raw)).flatMap(({ kind, key }, _, objects) =>
        kind === "service" ? passing(objects, key) : [],
      ),
    );
    const pods = ["pods", "pods", "pods", "pods"];
    expect(flags).toEqual([[], pods, pods, pods, []]);
  });
});

describe("renderSkeleton", () => {
  const keys = (nodePortAddresses: readonly string[] | undefined, isKeeper = false): readonly string[] => {
    const { node } = stateOf([], "IPv4", { ...SETTINGS, nodePortAddresses });
    const objects = renderSkeleton({ node, host: { ...FACTS, optedOut: ["7"] } }, { ...PARTS, isKeeper });
    return objects.map(({ kind, key, value }) => `${kind} ${key}${value === true ? "" : ` ${JSON.stringify(value)}`}`);
  };
  const OTHERS = ["pod-range 10.1.0.0/16", 'primary 0.0.0.0 "172.18.0.1"'];

  it("R-37: node ports are for the node's primary address, those chosen, or all but loopback", () => {
    expect(keys(undefined)).toEqual([
      ...OTHERS,
      'node-address 172.18.0.1 {"hasNodePorts":true,"hasListeners":true}',
      "filled IPv4",
      "serving IPv4",
    ]);
    expect(keys(["127.0.0.0/8"])).toEqual([
      ...OTHERS,
      'node-address 172.18.0.1 {"hasNodePorts":false,"hasListeners":true}',
      // What is refused on loopback is counted (R-38).
      `counter ${loopbackId("IPv4")}`,
      "filled IPv4",
      "serving IPv4",
    ]);
    expect(keys(["0.0.0.0/0"])).toEqual([
      ...OTHERS,
      'node-address 172.18.0.1 {"hasNodePorts":true,"hasListeners":true}',
      "filled IPv4",
      "serving IPv4",
    ]);
  });

  it("lets the host's listeners come first only on addresses that no proxy put there, and where packets are served", () => {
    const { node } = stateOf([], "IPv4");
    const uses = [FACTS, { ...FACTS, addressesOfNoProxy: { IPv4: [], IPv6: [] } }, { ...FACTS, hasPackets: false }].map((host) =>
      renderSkeleton({ node, host }, PARTS).flatMap((object) => (object.kind === "node-address" ? [object.value.hasListeners] : [])),
    );
    expect(uses).toEqual([[true], [false], [false]]);
  });

  it("R-24: has no pod ranges where pods are told by their devices, or not at all", () => {
    const { node } = stateOf([], "IPv4");
    const kinds = [{ by: "interface", name: "cni0" } as const, undefined].map((detector) =>
      renderSkeleton({ node: { ...node, detector }, host: FACTS }, PARTS).map(({ kind }) => kind),
    );
    expect(kinds.flat()).not.toContain("pod-range");
  });

  it("of the family that keeps what both share has settings, opt-outs, and a link for each hook", () => {
    const link = JSON.stringify({ cgroup: FACTS.cgroup, programs: PARTS.programs.sockets });
    expect(keys(undefined, true)).toEqual([
      'settings host-namespace "1"',
      "opt-out 7",
      ...keys(undefined),
      ...["conn4", "conn6", "send4", "send6", "recv4", "recv6", "peer4", "peer6", "close"].map((name) => `link turnout_${name} ${link}`),
      `table inet turnout-ebpf ${JSON.stringify(TABLE_OBJECT.value)}`,
      ...[2, 3].flatMap((index) => [
        `device ${index}-ingress ${JSON.stringify({ program: "turnout_in", programs: PARTS.programs.packets })}`,
        `device ${index}-egress ${JSON.stringify({ program: "turnout_out", programs: PARTS.programs.packets })}`,
      ]),
    ]);
  });
});
