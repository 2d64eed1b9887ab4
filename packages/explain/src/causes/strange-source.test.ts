import { describe, expect, it } from "vitest";
import { externalFindings } from "./external-causes.ts";
import type { ExternalFindings } from "./external-causes.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import { readRoute } from "../readings/route.ts";
import type { Route } from "../readings/route.ts";
import { readIptablesTable } from "@turnout/host/iptables";

const WAY: HookedWay = {
  packet: { family: "IPv4", protocol: "TCP", source: "10.1.1.2", destination: "10.96.0.1", port: 80, device: "veth2" },
  endpoint: { ip: "10.1.2.1", port: 8080, nodeName: "n2", isLocal: false, masquerade: false },
  outDevice: "eth0",
  backDevice: "veth2",
  isTranslated: true,
  markBit: 0,
  isLocal: (ip) => ip === "172.18.0.1",
  isInSet: () => false,
};
const BY_ETH0: Route = { is: "way", device: "eth0", nextHop: "172.18.0.254", isLocal: false, source: undefined };
const LOCAL: Route = { is: "way", device: "lo", nextHop: undefined, isLocal: true, source: undefined };
const refused = (says: string): Route => readRoute(2, "", `RTNETLINK answers: ${says}\n`);

function snat(way: Partial<HookedWay>, to = "198.18.0.1"): ExternalFindings {
  const table = readIptablesTable("iptables", "nat", `:POSTROUTING ACCEPT\n-A POSTROUTING -s 10.1.0.0/16 -j SNAT --to-source ${to}`);
  return externalFindings([table], { ...WAY, ...way });
}

const reported = ({ causes, unjudged }: ExternalFindings): readonly string[] => [
  ...causes.map(({ id, isSure = true }) => `${isSure ? "" : "maybe "}${id}`),
  ...unjudged.map(({ says }) => (says.endsWith("which this host does not have: answers may go elsewhere") ? "can't be judged" : says)),
];

describe("a source that becomes an address of nobody here", () => {
  it("loses answers where this host's own route leads elsewhere, and the rule has to go", () => {
    const [cause] = snat({ routeOf: () => BY_ETH0 }).causes;
    expect(cause).toMatchObject({
      id: "no_way_back",
      instead: { commands: ["iptables -t nat -D POSTROUTING -s 10.1.0.0/16 -j SNAT --to-source 198.18.0.1"] },
    });
    expect(cause?.says).toContain("and its own route for it leads to eth0: answers of 10.1.2.1 go there, and not back by this host");
  });

  it.each<readonly [string, Partial<HookedWay>, readonly string[]]>([
    ["no route", { routeOf: () => refused("Network is unreachable") }, ["no_way_back"]],
    ["the default route, which a router may know better", { routeOf: () => ({ ...BY_ETH0, isDefault: true }) }, ["maybe no_way_back"]],
    ["a route that refuses, as for a pool that others send here", { routeOf: () => refused("Invalid argument") }, ["can't be judged"]],
    [
      "the default route, of what is no Service's",
      { routeOf: () => ({ ...BY_ETH0, isDefault: true }), isTranslated: false },
      ["can't be judged"],
    ],
    ["a route that is local", { routeOf: () => LOCAL }, []],
    ["a route nobody knows", {}, ["can't be judged"]],
    ["an endpoint whose answers come by this host", { routeOf: () => BY_ETH0, endpoint: { ...WAY.endpoint, isLocal: true } }, []],
    ["masquerade, which comes first", { routeOf: () => BY_ETH0, endpoint: { ...WAY.endpoint, masquerade: true } }, []],
    [
      "masquerade in iptables' chains, which may come first",
      { routeOf: () => BY_ETH0, endpoint: { ...WAY.endpoint, masquerade: true }, hasKubeChains: true },
      ["can't be judged"],
    ],
  ])("with %s", (_name, way, wanted) => {
    expect(reported(snat(way))).toEqual(wanted);
  });

  it("is none where it is this host's, with ports or without", () => {
    for (const to of ["172.18.0.1", "172.18.0.1:1024-2000"]) expect(reported(snat({ routeOf: () => BY_ETH0 }, to))).toEqual([]);
  });
});
