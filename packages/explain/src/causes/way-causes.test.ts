import type { AskedPacket } from "@turnout/core";
import { describe, expect, it } from "vitest";
import { counterNotes } from "./counter-causes.ts";
import { takenCauses, unreachableCause } from "./route-causes.ts";
import { hostRoutesIn, routeText } from "../readings/host-routes.ts";
import type { HostRoute } from "../readings/host-routes.ts";
import { defaultNotes, senderCauses, wayCauses, waySteps } from "./way-causes.ts";
import type { LostLink } from "../ways/lost-links.ts";
import type { Link } from "../readings/links.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

const CLIENT = "203.0.113.1";
const PACKET: AskedPacket = { family: "IPv4", protocol: "TCP", source: CLIENT, destination: "198.51.100.1", port: 80, device: "up0" };
const route = (device: string) => ({ is: "way", device, nextHop: undefined, isLocal: false, source: undefined }) as const;
const WAY: Way = {
  endpoint: { ip: "10.1.2.1", port: 8080, nodeName: "n2", isLocal: false, masquerade: false },
  there: route("n2"),
  back: route("n2"),
  asked: { to: "10.1.2.1", from: CLIENT, by: "up0" },
  askedBack: { to: CLIENT, from: "10.1.2.1", by: "n2" },
};
const link = (name: string): readonly [string, Link] => [name, { name, isUp: true, hasCarrier: true, mtu: 1500 }];
const FACTS: WayFacts = {
  links: new Map(["lo", "up0", "n2", "veth1"].map(link)),
  parameters: new Map([["ipv4/conf/up0/rp_filter", "1"]]),
  failedNeighbours: new Set(),
  routes: [],
  lostLinks: [],
};
const says = (packet: Partial<AskedPacket>, way: Partial<Way> = {}): string | undefined =>
  waySteps({ ...PACKET, ...packet }, [{ ...WAY, ...way }]).at(-1)?.says;

describe("where answers go", () => {
  it("by another device than the packet came in by", () => {
    expect(says({})).toBe(`answers to ${CLIENT} leave by n2, not by up0 where it came in`);
  });

  it("by the same, and whether that was only assumed", () => {
    expect(says({ device: "n2" })).toBe(`answers to ${CLIENT} leave by n2, where it came in`);
    expect(says({ device: "n2", isDeviceAssumed: true })).toBe(`answers to ${CLIENT} leave by n2; so it is taken to come in there, too`);
  });

  it("elsewhere, where rp_filter drops the packet for that", () => {
    const there = { is: "none", why: "rp_filter", says: "Invalid argument", elsewhere: "n2" } as const;
    expect(says({}, { there, back: undefined })).toBe(`answers to ${CLIENT} leave by n2, not by up0 where it came in`);
    const [cause] = wayCauses(PACKET, { ...WAY, there, back: undefined }, FACTS);
    expect(cause?.says).toContain(`the way to ${CLIENT} is by n2, and rp_filter is strict`);
    // The route is what is wrong, so that comes first, and there is no command that loosens the check.
    expect(cause?.fix).toMatch(/^have the route to 203\.0\.113\.1 lead by up0\. Only where/);
    expect(cause?.commands).toBeUndefined();
  });
});

it.each([
  ["of another node", { isLocal: false, nodeName: "n2" }, /^this node has no route to the pods of n2: .* runs here and on n2/],
  ["of this node", { isLocal: true, nodeName: "n1" }, /delete the pod/],
  ["of nobody knows where", { isLocal: false, nodeName: undefined }, /runs on this node/],
])("a route that is missing is mended by whose pod it leads to: %s", (_name, where, fix) => {
  const there = { is: "none", why: "no_route", says: "No route to host" } as const;
  const way: Way = { ...WAY, endpoint: { ...WAY.endpoint, ...where }, there, back: undefined };
  expect(wayCauses(PACKET, way, FACTS).find(({ id }) => id === "no_route")?.fix).toMatch(fix);
});

describe("the default route", () => {
  const there = { ...route("up0"), nextHop: "192.0.2.1", isDefault: true };
  const back = { ...route("up0"), isDefault: true };
  const local = { ...WAY.endpoint, isLocal: true, nodeName: "n1" };

  it("is named in the step", () => {
    const [step] = waySteps(PACKET, [{ ...WAY, there }]);
    expect(step?.says).toBe("to 10.1.2.1:8080: it leaves by up0 via 192.0.2.1 (default route)");
  });

  it("may be wrong for a pod of this node, and is right for others", () => {
    const causes = (endpoint: Way["endpoint"]): unknown => wayCauses(PACKET, { ...WAY, endpoint, there, back: undefined }, FACTS);
    expect(causes(local)).toMatchObject([{ id: "no_route", isSure: false }]);
    expect(causes(WAY.endpoint)).toEqual([]);
  });

  it("is worth a note for a client that may be a pod of this node", () => {
    const of = (podCIDRs: readonly string[]): readonly string[] => defaultNotes(PACKET, [{ ...WAY, back }], podCIDRs);
    expect(of(["203.0.113.0/24"])[0]).toMatch(/^203\.0\.113\.1 is in the range of this node's pods .* answers to it to up0/);
    expect(of(["10.1.1.0/24"])).toEqual([]);
  });
});

it("a route that can't be looked up is not taken for one that is missing", () => {
  const there = { is: "none", why: "other", says: 'Cannot find device "eth9"' } as const;
  const [cause] = wayCauses(PACKET, { ...WAY, there, back: undefined }, FACTS);
  expect(cause).toMatchObject({ id: "no_route", isSure: false });
  expect(cause?.fix).not.toContain("delete");
});

describe("packets that rp_filter has dropped", () => {
  const drops = { reversePathDrops: 7, entries: 0, entriesMax: 0 };
  const assumed = { ...PACKET, device: "n2", isDeviceAssumed: true } as const;

  it("may be this one, if it comes in by another device than was assumed: that is worth a note", () => {
    expect(counterNotes(assumed, [WAY], FACTS, drops)).toEqual([
      expect.stringMatching(
        /rp_filter is strict on up0\).*taken to come in by n2.*: turnout why 203\.0\.113\.1 198\.51\.100\.1:80 --in up0$/,
      ),
    ]);
  });

  it.each<readonly [string, AskedPacket, Partial<WayFacts>]>([
    ["somebody said by which device it comes in", { ...PACKET, device: "n2" }, {}],
    ["the host sends it", { ...PACKET, device: "" }, {}],
    ["the strict device is a port of a bridge", assumed, { links: new Map([["up0", { ...link("up0")[1], master: "br0" }]]) }],
    ["the strict device is a pod's", assumed, { links: new Map([["up0", { ...link("up0")[1], namespace: 4 }]]) }],
    ["none is strict", assumed, { parameters: new Map() }],
  ])("are others, where %s", (_name, packet, facts) => {
    expect(counterNotes(packet, [WAY], { ...FACTS, ...facts }, drops)).toEqual([]);
  });
});

describe("a pod of another node that only the default route leads to", () => {
  const byDefault = (isDefault: boolean): Way => ({
    ...WAY,
    there: { ...WAY.there, is: "way", device: "up0", nextHop: "192.0.2.9", isLocal: false, source: undefined, isDefault },
  });

  it("is noted: some networks know the way, and some CNIs set routes", () => {
    expect(defaultNotes(PACKET, [byDefault(true)], [])).toEqual([
      expect.stringMatching(/^only the default route leads to 10\.1\.2\.1, which is on n2/),
    ]);
    expect(defaultNotes(PACKET, [byDefault(false)], [])).toEqual([]);
  });
});

it("a pod of this node that asks, and that only the default route leads back to, is guessed to lack its route", () => {
  const back = { ...WAY.askedBack, is: "way", device: "up0", nextHop: "192.0.2.9", isLocal: false, source: undefined } as const;
  const fate = { is: "forward", endpoints: [WAY.endpoint] } as const;
  const found = (isDefault: boolean, isSenderHere?: true): readonly string[] =>
    senderCauses(PACKET, { ...fate, ...(isSenderHere === undefined ? {} : { isSenderHere }) }, [
      { ...WAY, back: { ...back, isDefault } },
    ]).map(({ id }) => id);
  expect([found(true, true), found(false, true), found(true)]).toEqual([["no_way_back"], [], []]);
});

it("a bridge's port that is down hides that the bridge has no carrier, and not that the way back has none", () => {
  const [cni0, up0] = [
    { ...link("cni0")[1], hasCarrier: false, bridge: { IPv4: false, IPv6: false } },
    { ...link("up0")[1], hasCarrier: false },
  ];
  const lostLinks = [{ link: { ...link("veth1")[1], isUp: false, master: "cni0" }, addresses: [], behind: ["10.1.2.1"] }];
  const way: Way = { ...WAY, there: route("cni0"), back: route("up0") };
  const facts: WayFacts = {
    ...FACTS,
    links: new Map([
      ["cni0", cni0],
      ["up0", up0],
    ]),
    lostLinks,
  };
  expect(wayCauses(PACKET, way, facts).map((cause) => cause.says)).toEqual([
    "veth1 is down, and is the port of cni0 that leads to 10.1.2.1",
    "up0 has no carrier: the other end is down or gone",
  ]);
});

describe("IPv6 that is missing", () => {
  const packet: AskedPacket = { ...PACKET, family: "IPv6" };
  const there = { is: "none", why: "no_route", says: "Network is unreachable" } as const;
  const way: Way = { ...WAY, endpoint: { ...WAY.endpoint, ip: "fd01::5" }, there, back: undefined };
  const bridge = { ...link("dk0")[1], bridge: { IPv4: false, IPv6: false } };
  const parameters = new Map([["ipv6/conf/dk0/disable_ipv6", "1"]]);
  const idsOf = (lost: Partial<LostLink>): readonly string[] =>
    wayCauses(packet, way, {
      ...FACTS,
      parameters,
      lostLinks: [{ link: bridge, addresses: ["172.17.0.1/16"], behind: undefined, ...lost }],
    }).map(({ id }) => id);

  it("is to blame on a bridge that has the pod behind it, and not on one that has others", () => {
    expect(idsOf({ behind: ["fd01::5"] })).toEqual(["ipv6_off"]);
    expect([idsOf({ behind: ["fd01::9"] }), idsOf({})]).toEqual([["no_route"], ["no_route"]]);
  });

  it("is told of an uplink beside the route that is missing, and is to blame where the MTU of a pod's device is too small", () => {
    const uplink = { ...link("dk0")[1] };
    const [cause] = wayCauses(packet, way, {
      ...FACTS,
      parameters,
      lostLinks: [{ link: uplink, addresses: ["192.0.2.1/24"], behind: undefined }],
    });
    expect(cause).toMatchObject({
      id: "no_route",
      fix: expect.stringMatching(/^dk0 has no IPv6 \(.*\): if the route was by it, .*Else this node has no route/) as unknown,
    });
    expect(idsOf({ link: { ...uplink, name: "up0", mtu: 1_200 }, behind: ["fd01::5"] })).toEqual(["mtu"]);
  });

  it("the one that is down is told, wherever it stands among others without carrier", () => {
    const lostLinks = [
      { link: { ...link("eth1")[1], hasCarrier: false }, addresses: ["192.0.2.1/24"], behind: undefined },
      { link: { ...link("eth2")[1], isUp: false }, addresses: ["192.0.3.1/24"], behind: undefined },
    ];
    expect(wayCauses(packet, way, { ...FACTS, lostLinks })[0]?.fix).toMatch(/^eth2 is down:/);
  });

  it("a device that is down is told beside it, unless it is a bridge's, or a pod's", () => {
    const fixWith = (rest: Partial<Link>): string | undefined =>
      wayCauses(packet, way, {
        ...FACTS,
        lostLinks: [{ link: { ...link("eth1")[1], isUp: false, ...rest }, addresses: ["192.0.2.1/24"], behind: undefined }],
      })[0]?.fix;
    expect(fixWith({})).toMatch(/^eth1 is down: if the route was by it, set it up \(ip link set eth1 up\)/);
    expect([fixWith({ bridge: { IPv4: false, IPv6: false } }), fixWith({ namespace: 3 })].map((fix) => fix?.includes("is down"))).toEqual([
      false,
      false,
    ]);
  });
});

it("a routing rule that refuses is what is to be looked at, not the pod", () => {
  const rule = { text: "from 203.0.113.1 prohibit", priority: 50 };
  const there = { is: "none", why: "no_route", says: "a routing rule refuses it", rule } as const;
  const [cause] = wayCauses(PACKET, { ...WAY, there, back: undefined }, FACTS);
  expect(cause).toMatchObject({ id: "no_route", commands: ["ip rule del pref 50"] });
  expect(cause?.says).toBe("there is no way to 10.1.2.1: a routing rule refuses it (ip rule: from 203.0.113.1 prohibit)");
});

it("an endpoint that a local route takes is named, and not one whose address this host has", () => {
  const taken = { ...WAY, there: { ...route("lo"), isLocal: true } };
  expect(takenCauses([taken], [])[0]).toMatchObject({ id: "address_taken", commands: ["ip route del local 10.1.2.1"] });
  expect([takenCauses([taken], ["10.1.2.1"]), takenCauses([WAY], [])]).toEqual([[], []]);
});

it("without a route to the address connect() fails, whatever rules say", () => {
  expect(unreachableCause({ ...PACKET, destination: "10.96.0.20" }, [], ["eth0"]).says).toBe(
    "this node has no route to 10.96.0.20, so connect() fails before any rule",
  );
});

it("an address of loopback counts as the source only where the kernel does not choose another one", () => {
  const local = { ...WAY, asked: { to: "10.1.2.1", from: "127.0.0.1" } };
  const fromLoopback = { ...PACKET, source: "127.0.0.1", device: "" };
  expect(wayCauses(fromLoopback, local, FACTS).map(({ id }) => id)).toEqual(["localnet_off"]);
  expect(wayCauses(fromLoopback, { ...WAY, asked: { to: "10.1.2.1" } }, FACTS)).toEqual([]);
});

it("where this host sends packets on as its own, forwarding matters for the device of the answers alone", () => {
  const off = (device: string): WayFacts => ({
    ...FACTS,
    parameters: new Map([
      ["ipv4/ip_forward", "1"],
      ["ipv4/conf/up0/forwarding", "1"],
      ["ipv4/conf/n2/forwarding", "1"],
      [`ipv4/conf/${device}/forwarding`, "0"],
    ]),
  });
  const way: Way = { ...WAY, back: route("up0"), isForwardedBack: true };
  const idsOf = (facts: WayFacts): readonly string[] => wayCauses(PACKET, way, facts).map(({ id }) => id);
  expect([idsOf(off("up0")), idsOf(off("n2"))]).toEqual([[], ["forwarding_off"]]);
});

it("a node that does not forward is not said to lack routes, too", () => {
  const none = { is: "none", why: "no_route", says: "No route to host" } as const;
  const lost: Way = { ...WAY, there: none, back: none };
  const idsOf = (isOn: "0" | "1"): readonly string[] =>
    wayCauses(PACKET, lost, { ...FACTS, parameters: new Map([["ipv4/ip_forward", isOn]]) }).map(({ id }) => id);
  expect([idsOf("0"), idsOf("1")]).toEqual([["forwarding_off"], ["no_route", "no_way_back"]]);
});

describe("routes in the way", () => {
  const host = (range: string, device: string, rest: Partial<HostRoute> = {}): HostRoute => ({
    range,
    prefixLength: Number(range.split("/")[1]),
    type: "unicast",
    device,
    nextHop: undefined,
    metric: 0,
    ...rest,
  });
  const toNode = host("10.1.2.0/24", "up0", { nextHop: "172.18.0.2" });
  const onLink = (device: string): Way => ({ ...WAY, there: route(device), back: undefined });
  const silent = new Set(["10.1.2.1 n2"]);
  const found = (way: Way, facts: Partial<WayFacts>) =>
    wayCauses(PACKET, way, { ...FACTS, ...facts }).find(({ id }) => id === "route_hidden");

  it("a narrower network on another device hides the route to the endpoint's node", () => {
    const routes = [host("0.0.0.0/0", "up0", { nextHop: "172.18.0.254" }), toNode, host("10.1.2.0/25", "n2")];
    const cause = found(onLink("n2"), { routes, failedNeighbours: silent });
    expect(cause?.says).toBe(
      "the route 10.1.2.0/25 dev n2 takes packets to 10.1.2.1 to n2, and hides the route 10.1.2.0/24 via 172.18.0.2 dev up0, by which the pods of n2 are; nobody there has 10.1.2.1",
    );
    expect([cause?.commands, cause?.isSure]).toEqual([undefined, undefined]);
    expect(found(onLink("n2"), { routes })?.isSure).toBe(false);
    expect(found(onLink("n2"), { routes: routes.slice(2), failedNeighbours: silent })).toBeUndefined();
  });

  it("a pod's route that leads to another pod's device is left over", () => {
    const way = { ...onLink("n2"), endpoint: { ...WAY.endpoint, isLocal: true } };
    const routes = [host("10.1.2.1/32", "n2"), host("10.1.2.7/32", "n2"), host("10.1.0.0/16", "up0")];
    expect(found(way, { routes, failedNeighbours: silent })).toMatchObject({
      isSure: false,
      commands: ["ip route del 10.1.2.1/32 dev n2"],
    });
    expect(found(way, { routes })).toBeUndefined();
    // A pod that is silent, by a route of its own.
    expect(found(way, { routes: [routes[0] as HostRoute, host("10.1.0.0/16", "up0")], failedNeighbours: silent })).toBeUndefined();
  });

  it("a second route of the same pod hides the first", () => {
    const way = { ...onLink("n2"), endpoint: { ...WAY.endpoint, isLocal: true } };
    const routes = [host("10.1.2.1/32", "veth1", { metric: 100 }), host("10.1.2.1/32", "n2")];
    const cause = found(way, { routes, failedNeighbours: silent });
    expect(cause?.says).toContain("hides the route 10.1.2.1/32 dev veth1 metric 100");
    expect(cause?.commands).toEqual(["ip route del 10.1.2.1/32 dev n2"]);
  });

  it("one that refuses is deleted where it is for that address alone, else a narrower one may be missing", () => {
    const way: Way = { ...WAY, there: { is: "none", why: "no_route", says: "No route to host" }, back: undefined };
    const cause = (range: string) => wayCauses(PACKET, way, { ...FACTS, routes: [host(range, "", { type: "blackhole" })] })[0];
    expect(cause("10.1.2.1/32")).toMatchObject({ id: "no_route", commands: ["ip route del blackhole 10.1.2.1/32"] });
    expect(cause("10.1.0.0/16")?.says).toContain("the route blackhole 10.1.0.0/16 refuses it, and no narrower one leads there");
    expect(cause("10.1.0.0/16")?.commands).toBeUndefined();
    // What a device that is down has taken along is narrower than what refuses then.
    const ids = (range: string, lost: Partial<LostLink>) => {
      const lostLinks = [{ link: { ...link("veth1")[1], isUp: false }, addresses: [], behind: undefined, ...lost }];
      return wayCauses(PACKET, way, { ...FACTS, lostLinks, routes: [host(range, "", { type: "blackhole" })] }).map(({ id }) => id);
    };
    const leading = { behind: ["10.1.2.1"] };
    expect([ids("10.1.0.0/16", leading), ids("10.1.2.1/32", leading)]).toEqual([["device_down"], ["no_route"]]);
    // One in whose own network it is led there; what leads to others did not.
    expect([ids("10.1.0.0/16", { addresses: ["10.1.2.9/24"] }), ids("10.1.0.0/16", { behind: ["10.1.9.9"] })]).toEqual([
      ["device_down"],
      ["no_route"],
    ]);
    expect(ids("10.1.0.0/16", { addresses: ["172.17.0.1/16"] })).toEqual(["no_route"]);
    expect(ids("10.1.0.0/16", {})).toEqual(["no_route"]);
  });

  it("one that refuses the service range is deleted, and where there is none one is added by a device", () => {
    const packet = { ...PACKET, destination: "10.96.0.20" };
    const refused = unreachableCause(packet, [host("10.96.0.0/16", "", { type: "unreachable" })], ["eth0"]);
    expect(refused).toMatchObject({ commands: ["ip route del unreachable 10.96.0.0/16"] });
    expect(unreachableCause(packet, [], ["eth0"]).commands).toEqual(["ip route add 10.96.0.20 dev eth0"]);
    expect(unreachableCause(packet, [], [])).not.toHaveProperty("commands");
  });

  it("are read as ip prints them", () => {
    const text =
      '[{"dst":"default","gateway":"172.18.0.254","dev":"eth0","flags":[]},{"type":"unreachable","dst":"10.96.0.0/16","metric":5,"flags":[]},{"dst":"10.1.0.5","dev":"veth1","scope":"link"}]';
    expect(hostRoutesIn(text, "IPv4").map(routeText)).toEqual([
      "default via 172.18.0.254 dev eth0",
      "unreachable 10.96.0.0/16 metric 5",
      "10.1.0.5/32 dev veth1",
    ]);
    expect(() => hostRoutesIn("no", "IPv4")).toThrow("can't be read");
  });
});
