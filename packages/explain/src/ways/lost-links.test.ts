import type { AskedPacket } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { portCauses, portNotes, readLostLinks } from "./lost-links.ts";
import type { LostLink } from "./lost-links.ts";
import type { Link } from "../readings/links.ts";
import type { Way } from "./way.ts";

const PACKET: AskedPacket = { family: "IPv4", protocol: "TCP", source: "10.1.0.131", destination: "10.96.0.1", port: 80, device: "cni0" };
const BY_BRIDGE = { is: "way", device: "cni0", nextHop: undefined, isLocal: false, source: undefined } as const;
const WAY: Way = {
  endpoint: { ip: "10.1.0.132", port: 8080, nodeName: "n1", isLocal: true, masquerade: false },
  there: BY_BRIDGE,
  back: BY_BRIDGE,
  asked: { to: "10.1.0.132" },
  askedBack: { to: "10.1.0.131" },
};
const port = (name: string, link: Partial<Link> = {}): Link => ({
  name,
  isUp: false,
  hasCarrier: false,
  mtu: 1500,
  master: "cni0",
  ...link,
});
const lost = (behind: readonly string[] | undefined, link: Partial<Link> = {}): LostLink => ({
  link: port("veth1", link),
  addresses: [],
  behind,
});

describe("a port of a bridge by which nothing goes", () => {
  it("is named where the endpoint is behind it, or the client, with what mends it", () => {
    const [endpoint] = portCauses(PACKET, WAY, [lost(["10.1.0.132"])]);
    expect(endpoint).toMatchObject({
      id: "device_down",
      says: "veth1 is down, and is the port of cni0 that leads to 10.1.0.132",
      commands: ["ip link set veth1 up"],
    });
    const [client] = portCauses(PACKET, WAY, [lost(["10.1.0.131"], { isUp: true })]);
    expect(client?.says).toBe("veth1 has no carrier (the other end is down or gone), and is the port of cni0 that leads to 10.1.0.131");
    expect(client?.commands).toBeUndefined();
  });

  it("is named where the bridge blocks it", () => {
    const [blocked] = portCauses(PACKET, WAY, [lost(["10.1.0.132"], { isUp: true, hasCarrier: true, isBlocked: true })]);
    expect(blocked).toMatchObject({
      says: "veth1 is blocked by its bridge, and is the port of cni0 that leads to 10.1.0.132",
      commands: ["bridge link set dev veth1 state forwarding"],
    });
  });

  it("is named where the next hop is behind it", () => {
    const there = { ...BY_BRIDGE, nextHop: "10.1.0.9" };
    expect(portCauses(PACKET, { ...WAY, there }, [lost(["10.1.0.9"])])).toHaveLength(1);
    expect(portCauses(PACKET, { ...WAY, there }, [lost(["10.1.0.132"])])).toEqual([]);
  });

  it("is a guess where the pod behind it has lost its addresses of IPv6", () => {
    expect(portCauses({ ...PACKET, family: "IPv6" }, { ...WAY, back: undefined }, [lost([])])).toMatchObject([{ isSure: false }]);
    expect(portCauses(PACKET, WAY, [lost([])])).toEqual([]);
  });

  it.each<readonly [string, LostLink, Partial<Way>]>([
    ["another pod is behind it", lost(["10.1.0.133"]), {}],
    ["it is another bridge's", lost(["10.1.0.132"], { master: "br1" }), {}],
    ["packets go by another device", lost(["10.1.0.132"]), { there: { ...BY_BRIDGE, device: "eth0" } }],
    ["the packet is for this host", lost(["10.1.0.132"]), { there: { ...BY_BRIDGE, isLocal: true } }],
    ["nobody can tell what is behind it", lost(undefined), {}],
  ])("is not named where %s", (_name, one, way) => {
    expect(portCauses(PACKET, { ...WAY, ...way }, [one])).toEqual([]);
  });

  it("is noted where nobody can tell what is behind it", () => {
    const taps = ["tap1", "tap2", "tap3", "tap4"].map((name) => lost(undefined, { name }));
    expect(portNotes([...taps, lost(["10.1.0.133"]), lost(undefined, { name: "eth9", master: undefined as never })])).toEqual([
      "nothing goes by tap1, tap2, tap3, …, of cni0 (down, without carrier or blocked): what is behind can't be told",
    ]);
  });
});

describe("lost devices", () => {
  const links = new Map(
    [
      port("veth1", { namespace: 3 }),
      port("veth2", { isUp: true, hasCarrier: true, namespace: 4 }),
      port("veth3", { master: "br1", namespace: 5 }),
      port("lo", { master: undefined as never }),
    ].map((link) => [link.name, link]),
  );
  const netlink = {
    addresses: async (family: string) => (family === "IPv4" ? [{ ip: "192.0.2.1", prefixLength: 24, link: "veth3" }] : []),
    addressesIn: async (namespace: number) => ["127.0.0.1", `10.1.0.${namespace}`],
  };

  it("are the ports of bridges that packets take", async () => {
    expect(await readLostLinks(netlink, links, [WAY], "IPv4", () => false)).toMatchObject([
      { link: { name: "veth1" }, behind: ["10.1.0.3"] },
    ]);
  });

  it("are all that there are, where there is no way", async () => {
    const way: Way = { ...WAY, there: { is: "none", why: "no_route", says: "Network is unreachable" }, back: undefined };
    const found = await readLostLinks(netlink, links, [way], "IPv4", () => false);
    expect(found.map(({ link, addresses }) => [link.name, addresses])).toEqual([
      ["veth1", []],
      ["veth3", ["192.0.2.1/24"]],
    ]);
  });

  it("are those without IPv6, too, and of a bridge what is behind its ports is behind it", async () => {
    const way: Way = { ...WAY, there: { is: "none", why: "no_route", says: "Network is unreachable" }, back: undefined };
    const up = { isUp: true, hasCarrier: true };
    const all = new Map(
      [
        port("cni0", { ...up, master: undefined as never, bridge: { IPv4: false, IPv6: false } }),
        port("veth1", { ...up, namespace: 3 }),
      ].map((link) => [link.name, link]),
    );
    const found = await readLostLinks(netlink, all, [way], "IPv6", ({ name }) => name === "cni0");
    expect(found.map(({ link, behind }) => [link.name, behind])).toEqual([["cni0", ["10.1.0.3"]]]);
  });
});
