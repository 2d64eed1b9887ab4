import type { LocalDetector } from "@turnout/core";
import type { Device, DeviceRoute, HostAddress } from "@turnout/host";
import { describe, expect, it } from "vitest";
import { chooseDevices, deviceFacts } from "./devices.ts";
import type { DeviceParts } from "./devices.ts";
import { PARTS as SKELETON, FACTS, SETTINGS, stateOf } from "../test-support/states.ts";
import { renderSkeleton } from "../skeleton.ts";

const device = (index: number, name: string, kind = "", master?: number): Device => ({
  index,
  name,
  kind,
  master,
  isLoopback: name === "lo",
  isUp: true,
  hasCarrier: true,
});
const way = (destination: string, by: number, hasGateway = false): DeviceRoute => ({ destination, device: by, hasGateway });
const address = (ip: string, link: string): HostAddress => ({ ip, link, prefixLength: 24 });

/** A bond whose two devices are hardware, a bridge of pods, a tunnel to other nodes, a VRF, and a network for storage. */
const PARTS: DeviceParts = {
  devices: [
    device(1, "lo"),
    device(2, "bond0", "bond"),
    device(3, "eth0", "", 2),
    device(4, "eth1", "", 2),
    device(5, "cni0", "bridge"),
    device(6, "veth1", "veth", 5),
    device(7, "flannel.1", "vxlan"),
    device(8, "red", "vrf"),
    device(9, "eth2", "", 8),
    device(10, "storage"),
  ],
  routes: [
    way("0.0.0.0/0", 2, true),
    way("172.18.0.0/24", 2),
    way("10.1.1.0/24", 5),
    way("10.1.2.0/24", 7, true),
    way("192.0.2.0/24", 10),
    way("fe80::/64", 2),
    way("::/0", 2, true),
  ],
  addresses: [address("127.0.0.1", "lo"), address("172.18.0.1", "bond0"), address("fe80::1", "bond0"), address("10.1.1.1", "cni0")],
};

const NO_PODS: LocalDetector = { by: "cidr", cidrs: [] };

/** What is chosen of {@link PARTS}, or of others, on a node whose pods are told by their CIDRs alone, or otherwise. */
function chosen(
  wanted: readonly string[],
  detector: LocalDetector = NO_PODS,
  { podCIDRs = ["10.1.1.0/24"], parts = PARTS, answering = [] }: { podCIDRs?: string[]; parts?: DeviceParts; answering?: string[] } = {},
): readonly string[] {
  const { node } = stateOf([], "IPv4", SETTINGS);
  const devices = deviceFacts(parts, wanted);
  const context = { node: { ...node, podCIDRs, detector }, host: { ...FACTS, devices } };
  const names = new Map(devices.map(({ index, name }) => [index, name]));
  return chooseDevices(context, { isNamedOnly: wanted.length > 0, answering: new Set(answering) }).map(
    ({ index, program }) => `${names.get(index)} ${program}`,
  );
}

/** A node with one way out, and what else it has; the cluster's pods are 10.244.0.0/16, and 10.244.1.0/24 was given to this node. */
function nodeWith(
  names: Readonly<Record<string, string>>,
  routes: (indexOf: (name: string) => number) => readonly DeviceRoute[],
): DeviceParts {
  const all = ["lo", "eth0", ...Object.keys(names)];
  const indexOf = (name: string): number => all.indexOf(name) + 1;
  return {
    devices: all.map((name) => device(indexOf(name), name, names[name])),
    routes: [way("0.0.0.0/0", indexOf("eth0"), true), way("172.18.0.0/24", indexOf("eth0")), ...routes(indexOf)],
    addresses: [address("172.18.0.1", "eth0")],
  };
}
const CLUSTER: LocalDetector = { by: "cidr", cidrs: ["10.244.0.0/16"] };
const ETH0 = "eth0 turnout_in";

describe("deviceFacts", () => {
  it("has what packets come to IP by: bridges and bonds, and not their ports; loopback never", () => {
    expect(deviceFacts(PARTS, ["veth*"]).map(({ name, isNamed, isWayOut }) => [name, isNamed, isWayOut])).toEqual([
      ["bond0", false, true],
      ["cni0", true, false],
      ["flannel.1", false, false],
      ["red", false, false],
      ["eth2", false, false],
      ["storage", false, false],
    ]);
  });

  it("has addresses and what is reached without a router, but for link-local ones", () => {
    const [bond, bridge, tunnel] = deviceFacts(PARTS, []);
    expect([bond?.addresses, bond?.destinations]).toEqual([["172.18.0.1"], ["172.18.0.0/24"]]);
    expect([bridge?.addresses, bridge?.destinations]).toEqual([["10.1.1.1"], ["10.1.1.0/24"]]);
    expect(tunnel?.destinations).toEqual([]);
  });
});

describe("chooseDevices", () => {
  it("takes the ways out, devices with the node's addresses, and those by which its pods are reached", () => {
    expect(chosen([])).toEqual(["bond0 turnout_in", "cni0 turnout_in"]);
    expect(chosen([], { by: "cidr", cidrs: ["10.1.0.0/16"] }, { podCIDRs: [] })).toEqual(["bond0 turnout_in", "cni0 turnout_in"]);
    expect(chosen([], undefined, { podCIDRs: ["192.0.0.0/16"] })).toEqual(["bond0 turnout_in", "storage turnout_in"]);
  });

  it("takes a second network whose address node ports answer on", () => {
    const second = { ...PARTS, addresses: [...PARTS.addresses, address("192.0.2.1", "storage")] };
    expect(chosen([], undefined, { parts: second, answering: ["172.18.0.1"] })).toEqual(["bond0 turnout_in", "cni0 turnout_in"]);
    expect(chosen([], undefined, { parts: second, answering: ["192.0.2.1"] })).toEqual([
      "bond0 turnout_in",
      "cni0 turnout_in",
      "storage turnout_in",
    ]);
    expect(chosen(["bond0"], undefined, { parts: second, answering: ["192.0.2.1"] })).toEqual(["bond0 turnout_in"]);
  });

  it.each<[string, readonly string[] | undefined, readonly string[]]>([
    ["the primary one where nothing is said", undefined, ["bond0", "cni0"]],
    ["those that are named", ["192.0.2.0/24"], ["bond0", "cni0", "storage"]],
    ["all of them", ["all"], ["bond0", "cni0", "storage"]],
    ["loopback, which never counts", ["127.0.0.0/8"], ["bond0", "cni0"]],
  ])("asks on which addresses node ports answer: %s (R-37)", (_, nodePortAddresses, expected) => {
    const { node } = stateOf([], "IPv4", { ...SETTINGS, nodePortAddresses });
    const addresses = { ...FACTS.addresses, IPv4: [...FACTS.addresses.IPv4, "192.0.2.1"] };
    const devices = deviceFacts({ ...PARTS, addresses: [...PARTS.addresses, address("192.0.2.1", "storage")] }, []);
    const objects = renderSkeleton({ node, host: { ...FACTS, addresses, devices } }, { ...SKELETON, isKeeper: true });
    const ingress = new Set(objects.flatMap(({ kind, key }) => (kind === "device" && key.endsWith("-ingress") ? [key] : [])));
    expect(devices.filter(({ index }) => ingress.has(`${index}-ingress`)).map(({ name }) => name)).toEqual(expected);
  });

  it("takes each pod's device of a CNI that hands out addresses of the whole cluster's range, as Calico does", () => {
    const calico = nodeWith({ cali1: "veth", cali2: "veth", tunl0: "ipip" }, (indexOf) => [
      way("10.244.77.1/32", indexOf("cali1")),
      way("10.244.1.2/32", indexOf("cali2")),
      way("10.244.80.0/26", indexOf("tunl0"), true),
    ]);
    expect(chosen([], CLUSTER, { podCIDRs: ["10.244.1.0/24"], parts: calico })).toEqual([ETH0, "cali1 turnout_in", "cali2 turnout_in"]);
    expect(chosen([], CLUSTER, { podCIDRs: [], parts: calico })).toEqual([ETH0, "cali1 turnout_in", "cali2 turnout_in"]);
    // What the node was given says nothing of such a pod.
    expect(chosen([], undefined, { podCIDRs: ["10.244.1.0/24"], parts: calico })).toEqual([ETH0, "cali2 turnout_in"]);
  });

  it("takes a bridge of pods, as of kubenet, but not a tunnel with a router behind it, nor a network without pods", () => {
    const kubenet = nodeWith({ cbr0: "bridge", "flannel.1": "vxlan", docker0: "bridge" }, (indexOf) => [
      way("10.244.1.0/24", indexOf("cbr0")),
      way("10.244.2.0/24", indexOf("flannel.1"), true),
      way("172.17.0.0/16", indexOf("docker0")),
    ]);
    expect(chosen([], CLUSTER, { podCIDRs: ["10.244.1.0/24"], parts: kubenet })).toEqual([ETH0, "cbr0 turnout_in"]);
    expect(chosen([], undefined, { podCIDRs: ["10.244.1.0/24"], parts: kubenet })).toEqual([ETH0, "cbr0 turnout_in"]);
  });

  it("takes a network that has more than pods", () => {
    const weave = nodeWith({ weave: "bridge", other: "bridge" }, (indexOf) => [
      way("10.240.0.0/12", indexOf("weave")),
      way("10.0.0.0/24", indexOf("other")),
    ]);
    expect(chosen([], CLUSTER, { podCIDRs: [], parts: weave })).toEqual([ETH0, "weave turnout_in"]);
  });

  it("takes all by which anybody is reached without a router where nothing tells pods (R-34)", () => {
    const untold = ["bond0 turnout_in", "cni0 turnout_in", "storage turnout_in"];
    expect(chosen([], NO_PODS, { podCIDRs: [] })).toEqual(untold);
    expect(chosen([], NO_PODS)).toEqual(untold.slice(0, 2));
  });

  it("takes those that are named and no others", () => {
    expect(chosen(["storage", "eth*"])).toEqual(["bond0 turnout_in", "eth2 turnout_in", "storage turnout_in"]);
    expect(chosen(["nothing"])).toEqual([]);
  });

  it("gives devices by which pods are told their program (R-24)", () => {
    expect(chosen([], { by: "interface", name: "cni0" })).toEqual(["bond0 turnout_in", "cni0 turnout_in_pods"]);
    expect(chosen([], { by: "interfacePrefix", prefix: "stor" })).toEqual([
      "bond0 turnout_in",
      "cni0 turnout_in",
      "storage turnout_in_pods",
    ]);
  });
});
