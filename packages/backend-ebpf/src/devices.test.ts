import type { Device, DeviceRoute, HostAddress } from "@turnout/host";
import { describe, expect, it } from "vitest";
import { chooseDevices, deviceFacts } from "./devices.ts";
import type { DeviceParts } from "./devices.ts";
import { FACTS, SETTINGS, stateOf } from "./test-support/states.ts";

const device = (index: number, name: string, kind = "", master?: number): Device => ({
  index,
  name,
  kind,
  master,
  isLoopback: name === "lo",
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

function chosen(wanted: readonly string[], detector?: object, podCIDRs = ["10.1.1.0/24"]): readonly string[] {
  const { node } = stateOf([], "IPv4", SETTINGS);
  const devices = deviceFacts(PARTS, wanted);
  const context = {
    node: { ...node, podCIDRs, ...(detector === undefined ? {} : { detector: detector as typeof node.detector }) },
    host: { ...FACTS, devices },
  };
  const names = new Map(devices.map(({ index, name }) => [index, name]));
  return chooseDevices(context, wanted.length > 0).map(({ index, program }) => `${names.get(index)} ${program}`);
}

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
    expect(chosen([], undefined, [])).toEqual(["bond0 turnout_in", "cni0 turnout_in"]);
    expect(chosen([], undefined, ["192.0.0.0/16"])).toEqual(["bond0 turnout_in", "storage turnout_in"]);
  });

  it("takes all by which anybody is reached without a router where nothing tells pods (R-34)", () => {
    const untold = ["bond0 turnout_in", "cni0 turnout_in", "storage turnout_in"];
    expect(chosen([], { by: "cidr", cidrs: [] }, [])).toEqual(untold);
    expect(chosen([], { by: "cidr", cidrs: [] })).toEqual(untold.slice(0, 2));
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
