import type { AskedPacket, Cause, FateEndpoint } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { bridgeCauses } from "./bridge-causes.ts";
import { readLinks } from "../readings/links.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

const PACKET: AskedPacket = { family: "IPv4", protocol: "TCP", source: "10.1.0.131", destination: "10.96.0.1", port: 80, device: "cni0" };
const ENDPOINT: FateEndpoint = { ip: "10.1.0.132", port: 8080, nodeName: "n1", isLocal: true, masquerade: false };
const BY_BRIDGE = { is: "way", device: "cni0", nextHop: undefined, isLocal: false, source: undefined } as const;
const WAY: Way = { endpoint: ENDPOINT, there: BY_BRIDGE, back: BY_BRIDGE, asked: { to: "10.1.0.132" }, askedBack: { to: "10.1.0.131" } };

function causes(way: Partial<Way> = {}, called = "0", bridge = { IPv4: false, IPv6: false }): readonly Cause[] {
  const link = { name: "cni0", isUp: true, hasCarrier: true, mtu: 1500, bridge };
  const parameters = new Map(called === "" ? [] : [["bridge/bridge-nf-call-iptables", called]]);
  const facts: WayFacts = { links: new Map([["cni0", link]]), parameters, failedNeighbours: new Set(), routes: [], lostLinks: [] };
  return bridgeCauses(PACKET, { ...WAY, ...way }, facts);
}

describe("a bridge that passes answers on from port to port", () => {
  it("is named where rules are not called, with what calls them", () => {
    expect(causes()).toMatchObject([
      {
        id: "bridge_not_called",
        commands: ["sysctl -w net.bridge.bridge-nf-call-iptables=1"],
        show: ["sysctl net.bridge.bridge-nf-call-iptables", "ip -d link show cni0"],
      },
    ]);
    const [unloaded] = causes({}, "");
    expect(unloaded?.says).toContain("br_netfilter is not loaded");
    expect(unloaded?.commands).toEqual(["modprobe br_netfilter", "sysctl -w net.bridge.bridge-nf-call-iptables=1"]);
  });

  it.each<readonly [string, readonly Cause[]]>([
    ["the kernel calls them", causes({}, "1")],
    ["the bridge has them called itself", causes({}, "0", { IPv4: true, IPv6: false })],
    ["answers are for this host", causes({ endpoint: { ...ENDPOINT, masquerade: true } })],
    ["the endpoint is behind another device", causes({ there: { ...BY_BRIDGE, device: "eth0" } })],
    ["the endpoint is behind a next hop", causes({ there: { ...BY_BRIDGE, nextHop: "10.1.0.9" } })],
    ["answers leave by another device", causes({ back: { ...BY_BRIDGE, device: "eth0" } })],
    ["there is no way", causes({ back: undefined })],
  ])("is not named where %s", (_name, found) => {
    expect(found).toEqual([]);
  });
});

it("bridges are told apart from other devices, with what they call", async () => {
  const listed = [
    { ifname: "lo", flags: ["UP"], mtu: 65_536 },
    {
      ifname: "cni0",
      flags: ["UP"],
      mtu: 1500,
      linkinfo: { info_kind: "bridge", info_data: { nf_call_iptables: 1, nf_call_ip6tables: 0 } },
    },
    { ifname: "veth1", flags: ["UP"], mtu: 1500, linkinfo: { info_kind: "veth" } },
  ];
  const run = async (): Promise<{ code: number; stdout: string; stderr: string }> => ({
    code: 0,
    stdout: JSON.stringify(listed),
    stderr: "",
  });
  const links = await readLinks({ run, open: () => expect.unreachable() }, new AbortController().signal);
  expect([...links.values()].map(({ bridge }) => bridge)).toEqual([undefined, { IPv4: true, IPv6: false }, undefined]);
});
