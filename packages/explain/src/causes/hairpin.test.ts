import type { AskedPacket } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { hairpinCauses } from "./hairpin.ts";
import type { Link } from "../readings/links.ts";
import { readSenderPort } from "../ways/sender-port.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

const PACKET: AskedPacket = { family: "IPv4", protocol: "TCP", source: "10.1.0.131", destination: "10.96.0.1", port: 80, device: "cni0" };
const BY_BRIDGE = { is: "way", device: "cni0", nextHop: undefined, isLocal: false, source: undefined } as const;
const WAY: Way = {
  endpoint: { ip: "10.1.0.131", port: 8080, nodeName: "n1", isLocal: true, masquerade: true },
  there: BY_BRIDGE,
  back: BY_BRIDGE,
  asked: { to: "10.1.0.131" },
  askedBack: { to: "10.1.0.131" },
};
const device = (name: string, rest: Partial<Link> = {}): Link => ({ name, isUp: true, hasCarrier: true, mtu: 1500, ...rest });
const PORT = device("veth1", { master: "cni0", namespace: 3, isHairpin: false });
const BRIDGE = device("cni0", { bridge: { IPv4: false, IPv6: false } });

function causes({ way = WAY, bridge = BRIDGE, port = PORT, called = "1" }: { way?: Way; bridge?: Link; port?: Link; called?: string }) {
  const facts: WayFacts = {
    links: new Map([["cni0", bridge]]),
    parameters: new Map([["bridge/bridge-nf-call-iptables", called]]),
    failedNeighbours: new Set(),
    routes: [],
    lostLinks: [],
    senderPort: port,
  };
  return hairpinCauses(PACKET, way, facts);
}

describe("a pod that asks itself by the Service", () => {
  it("gets nothing back by a port without hairpin", () => {
    expect(causes({})).toMatchObject([{ id: "hairpin_off", commands: ["bridge link set dev veth1 hairpin on"] }]);
  });

  it.each([
    ["hairpin is on", causes({ port: { ...PORT, isHairpin: true } })],
    ["packets are routed, for bridges call no rules", causes({ called: "0" })],
    ["the bridge takes in everything", causes({ bridge: { ...BRIDGE, isPromiscuous: true } })],
    ["another pod answers", causes({ way: { ...WAY, endpoint: { ...WAY.endpoint, ip: "10.1.0.132" } } })],
    ["it is behind another device", causes({ way: { ...WAY, there: { ...BY_BRIDGE, device: "veth9" } } })],
  ])("is not blamed where %s", (_name, found) => {
    expect(found).toEqual([]);
  });
});

it("the sender's port is looked for where it is an endpoint itself, by what is behind each", async () => {
  const netlink = { addressesIn: async (namespace: number) => [`10.1.0.${128 + namespace}`] };
  const links = new Map([BRIDGE, PORT, device("veth2", { master: "cni0", namespace: 4 })].map((one) => [one.name, one]));
  expect(await readSenderPort(netlink, links, PACKET, [WAY])).toBe(PORT);
  expect(await readSenderPort(netlink, links, PACKET, [{ ...WAY, endpoint: { ...WAY.endpoint, ip: "10.1.0.9" } }])).toBeUndefined();
  expect(await readSenderPort(netlink, links, { ...PACKET, device: "veth1" }, [WAY])).toBeUndefined();
});
