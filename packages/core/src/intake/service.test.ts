import { describe, expect, it } from "vitest";
import { rawService } from "../testing/objects.ts";
import type { RawObject, ServiceExtras } from "../testing/objects.ts";
import type { Issue, Service } from "../model/api-objects.ts";
import { parseCIDR } from "../model/addresses.ts";
import { Store } from "../state/store.ts";
import type { StoreOptions } from "../state/store.ts";

function read(
  spec: RawObject,
  extras: ServiceExtras = {},
  options: StoreOptions = {},
): { service: Service | undefined; issues: readonly Issue[] } {
  const issues: Issue[] = [];
  const store = new Store({ ...options, report: (issue) => void issues.push(issue) });
  store.upsert("Service", rawService("cart", spec, extras));
  return { service: store.service("shop/cart"), issues };
}

/** Read a Service that nothing is wrong with. */
function sound(spec: RawObject, extras: ServiceExtras = {}): Service {
  const { service, issues } = read(spec, extras);
  expect(issues).toEqual([]);
  return service as Service;
}

/** Read a Service with exactly one thing wrong, and give what the report says. */
function faulty(spec: RawObject, extras: ServiceExtras = {}): { service: Service | undefined; what: string } {
  const { service, issues } = read(spec, extras);
  expect(issues.map(({ object }) => object)).toEqual(["Service shop/cart"]);
  expect(issues[0]?.hint).not.toBe("");
  return { service, what: issues[0]?.what ?? "" };
}

describe("R-01, R-02 Services without addresses", () => {
  it.each([
    ["no cluster IP", { clusterIP: undefined }],
    ["empty cluster IP", { clusterIP: "" }],
    ["headless", { clusterIP: "None" }],
    ["headless in a list too", { clusterIP: "None", clusterIPs: ["None"] }],
    ["headless with everything else", { clusterIP: "None", type: "LoadBalancer", externalIPs: ["198.51.100.1"] }],
    ["ExternalName", { type: "ExternalName", clusterIP: undefined, externalName: "example.com" }],
    ["ExternalName with a cluster IP left over", { type: "ExternalName", externalName: "example.com" }],
  ])("%s", (_name, spec) => {
    expect(sound(spec, { ingress: [{ ip: "203.0.113.9" }] }).addresses).toEqual({});
  });
});

describe("R-03 the family of a cluster IP", () => {
  const v4 = "10.96.0.1";
  const v6 = "fd00:96::1";
  it.each([
    ["IPv4 alone", { clusterIP: v4, clusterIPs: [v4], ipFamilies: ["IPv4"] }, [v4, undefined]],
    ["IPv6 alone", { clusterIP: v6, clusterIPs: [v6], ipFamilies: ["IPv6"] }, [undefined, v6]],
    ["both, IPv4 first", { clusterIP: v4, clusterIPs: [v4, v6], ipFamilies: ["IPv4", "IPv6"] }, [v4, v6]],
    ["both, IPv6 first", { clusterIP: v6, clusterIPs: [v6, v4], ipFamilies: ["IPv6", "IPv4"] }, [v4, v6]],
    ["no families: by what it is", { clusterIP: v6 }, [undefined, v6]],
    ["families without the second address", { clusterIP: v4, clusterIPs: [v4], ipFamilies: ["IPv4", "IPv6"] }, [v4, undefined]],
    ["no list at all", { clusterIP: v4, ipFamilies: ["IPv4"] }, [v4, undefined]],
    ["canonical", { clusterIP: "010.096.0.1" }, [v4, undefined]],
  ])("%s", (_name, spec, [four, six]) => {
    const { addresses } = sound(spec);
    expect([addresses.IPv4?.clusterIP, addresses.IPv6?.clusterIP]).toEqual([four, six]);
  });

  it("an address where ipFamilies says the other family is nobody's", () => {
    const { service, what } = faulty({ clusterIP: v4, clusterIPs: [v4], ipFamilies: ["IPv6"] });
    expect(service?.addresses).toEqual({});
    expect(what).toMatch(/clusterIP does not match ipFamilies/);
  });

  it("without a cluster IP of a family the other addresses of that family go too", () => {
    const spec = { clusterIP: v4, ipFamilies: ["IPv4"], externalIPs: ["fd00:198::1", "198.51.100.1"] };
    expect(sound(spec, { ingress: [{ ip: "fd00:198::2" }] }).addresses).toEqual({
      IPv4: { clusterIP: v4, externalIPs: ["198.51.100.1"], loadBalancerIPs: [], sourceRanges: [] },
    });
  });
});

describe("R-04 ports", () => {
  it("name, protocol and number; unnamed is the empty name, TCP is what is meant", () => {
    expect(sound({ ports: [{ port: 80 }] }).ports).toEqual([{ name: "", protocol: "TCP", port: 80, nodePort: 0 }]);
  });

  it("one name with two protocols is two ports", () => {
    const ports = [
      { name: "dns", port: 53, protocol: "UDP" },
      { name: "dns", port: 53, protocol: "TCP" },
      { name: "dns-sctp", port: 53, protocol: "SCTP", nodePort: 30053 },
    ];
    expect(sound({ ports }).ports.map(({ protocol, nodePort }) => [protocol, nodePort])).toEqual([
      ["UDP", 0],
      ["TCP", 0],
      ["SCTP", 30053],
    ]);
  });

  it("1,000 ports", () => {
    const ports = Array.from({ length: 1000 }, (_, index) => ({ name: `p${index}`, port: index + 1 }));
    expect(sound({ ports }).ports).toHaveLength(1000);
  });

  it("a name at its length limit", () => {
    expect(sound({ ports: [{ name: "a".repeat(253), port: 80 }] }).ports).toHaveLength(1);
  });

  const other = { name: "other", port: 81 };
  it.each([
    ["port 0", [{ name: "a", port: 0 }, other], /bad port number/],
    ["port too large", [{ name: "a", port: 65536 }, other], /bad port number/],
    ["port as text", [{ name: "a", port: "80" }, other], /bad port number/],
    ["fractional port", [{ name: "a", port: 80.5 }, other], /bad port number/],
    ["no port", [{ name: "a" }, other], /bad port number/],
    ["unknown protocol", [{ name: "a", port: 80, protocol: "QUIC" }, other], /unknown protocol.*QUIC/],
    ["protocol in lower case", [{ name: "a", port: 80, protocol: "tcp" }, other], /unknown protocol/],
    ["hostile name", [{ name: 'a"; drop', port: 80 }, other], /bad port name/],
    ["name too long", [{ name: "a".repeat(254), port: 80 }, other], /bad port name/],
    ["name that is a number", [{ name: 7, port: 80 }, other], /bad port name/],
    ["not an object", ["80", other], /item of ports is not an object/],
    ["same name and protocol", [other, { name: "other", port: 82 }], /duplicate port/],
    ["same number and protocol", [other, { name: "a", port: 81 }], /duplicate port/],
  ])("%s: that port is skipped, the other stays", (_name, ports, what) => {
    const { service, what: said } = faulty({ ports });
    expect(service?.ports.map(({ name }) => name)).toEqual(["other"]);
    expect(said).toMatch(what);
  });

  it.each([-1, 65536, "30080", 1.5])("nodePort %j is left out, the port stays", (nodePort) => {
    const { service, what } = faulty({ type: "NodePort", ports: [{ name: "http", port: 80, nodePort }] });
    expect(service?.ports).toEqual([{ name: "http", protocol: "TCP", port: 80, nodePort: 0 }]);
    expect(what).toMatch(/bad nodePort/);
  });
});

describe("R-05 external IPs", () => {
  it("canonical, once each, split by family, empty text skipped in silence", () => {
    const spec = {
      clusterIPs: ["10.96.0.1", "fd00:96::1"],
      externalIPs: ["198.51.100.1", "198.051.100.001", "", "FD00:198::0:1", "::ffff:198.51.100.2"],
    };
    const { addresses } = sound(spec);
    expect([addresses.IPv4?.externalIPs, addresses.IPv6?.externalIPs]).toEqual([["198.51.100.1", "198.51.100.2"], ["fd00:198::1"]]);
  });

  it.each([
    ["not an address", "example.com", /bad externalIP/],
    ["number", 7, /bad externalIP/],
    ["loopback", "127.0.0.1", /loopback externalIP refused/],
    ["link-local", "169.254.169.254", /link-local externalIP refused/],
    ["multicast", "224.0.0.1", /multicast externalIP refused/],
    ["unspecified", "0.0.0.0", /unspecified externalIP refused/],
  ])("R-52 %s is left out and the rest works", (_name, ip, what) => {
    const { service, what: said } = faulty({ externalIPs: [ip, "198.51.100.1"] });
    expect(service?.addresses.IPv4?.externalIPs).toEqual(["198.51.100.1"]);
    expect(said).toMatch(what);
  });
});

describe("R-06 load-balancer IPs", () => {
  it.each([
    ["VIP is the default", [{ ip: "203.0.113.9" }], ["203.0.113.9"]],
    ["VIP by name", [{ ip: "203.0.113.9", ipMode: "VIP" }], ["203.0.113.9"]],
    ["null means VIP", [{ ip: "203.0.113.9", ipMode: null }], ["203.0.113.9"]],
    ["Proxy gets nothing", [{ ip: "203.0.113.9", ipMode: "Proxy" }, { ip: "203.0.113.10" }], ["203.0.113.10"]],
    ["host names get nothing", [{ hostname: "lb.example.com" }, { ip: "", hostname: "x" }], []],
    ["twice is once", [{ ip: "203.0.113.9" }, { ip: "203.0.113.009" }], ["203.0.113.9"]],
    ["the other family", [{ ip: "fd00:203::9" }], []],
  ])("%s", (_name, ingress, expected) => {
    expect(sound({ type: "LoadBalancer" }, { ingress }).addresses.IPv4?.loadBalancerIPs).toEqual(expected);
  });

  it("in mode Proxy alone are told as not served", () => {
    const { addresses } = sound({ type: "LoadBalancer" }, { ingress: [{ ip: "203.0.113.9", ipMode: "Proxy" }] });
    expect(addresses.IPv4).toMatchObject({ loadBalancerIPs: [], unserved: [{ ip: "203.0.113.9", why: "ipMode" }] });
  });

  it("whatever the Service's type is", () => {
    expect(sound({ type: "ClusterIP" }, { ingress: [{ ip: "203.0.113.9" }] }).addresses.IPv4?.loadBalancerIPs).toEqual(["203.0.113.9"]);
  });

  it.each([
    ["unknown ipMode", { ip: "203.0.113.9", ipMode: "Magic" }, /unknown ipMode/],
    ["not an address", { ip: "lb" }, /bad load-balancer IP/],
    ["number", { ip: 5 }, /bad load-balancer IP/],
    ["loopback", { ip: "127.0.0.1" }, /loopback load-balancer IP refused/],
  ])("%s is left out, the rest works", (_name, entry, what) => {
    const { service, what: said } = faulty({ type: "LoadBalancer" }, { ingress: [entry, { ip: "203.0.113.10" }] });
    expect(service?.addresses.IPv4?.loadBalancerIPs).toEqual(["203.0.113.10"]);
    expect(said).toMatch(what);
  });
});

describe("R-07 allowed sources", () => {
  const ingress = [{ ip: "203.0.113.9" }];
  it.each([
    ["padding, host bits, nested ones", [" 10.1.2.3/8 ", "10.1.0.0/16"], ["10.0.0.0/8"]],
    ["none", [], []],
    ["one for all clients", ["10.0.0.0/8", "0.0.0.0/0"], []],
  ])("%s", (_name, loadBalancerSourceRanges, expected) => {
    expect(sound({ type: "LoadBalancer", loadBalancerSourceRanges }, { ingress }).addresses.IPv4?.sourceRanges).toEqual(expected);
  });

  it("a bad one is skipped, the others restrict", () => {
    const { service, what } = faulty({ type: "LoadBalancer", loadBalancerSourceRanges: ["10.0.0.0/8", "everyone"] }, { ingress });
    expect(service?.addresses.IPv4?.sourceRanges).toEqual(["10.0.0.0/8"]);
    expect(what).toMatch(/bad loadBalancerSourceRanges entry.*everyone/);
  });

  it("when none can be read nobody is let in by mistake", () => {
    const { service, issues } = read({ type: "LoadBalancer", loadBalancerSourceRanges: ["everyone"] }, { ingress });
    expect(service?.addresses.IPv4).toEqual({
      clusterIP: "10.96.0.1",
      externalIPs: [],
      loadBalancerIPs: [],
      sourceRanges: [],
      unserved: [{ ip: "203.0.113.9", why: "sourceRanges" }],
    });
    expect(issues.map(({ what }) => what)).toEqual([
      'bad loadBalancerSourceRanges entry, it is skipped: "everyone"',
      'no readable loadBalancerSourceRanges of IPv4, these load-balancer IPs are left out: "203.0.113.9"',
    ]);
  });

  it("when none can be read an external IP that is a load-balancer IP too stays closed, others don't", () => {
    const externalIPs = ["203.0.113.9", "203.0.113.10"];
    const { service } = read({ type: "LoadBalancer", externalIPs, loadBalancerSourceRanges: ["everyone"] }, { ingress });
    expect(service?.addresses.IPv4?.externalIPs).toEqual(["203.0.113.10"]);
  });
});

describe("R-72 source ranges of one family", () => {
  const DUAL = { type: "LoadBalancer", clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1", "fd00:96::1"] };
  const ingress = [{ ip: "203.0.113.9" }, { ip: "fd00:203::9" }, { ip: "fd00:203::7" }];
  const open = (family: string, ips: string): string =>
    `no loadBalancerSourceRanges of ${family}, these load-balancer IPs are open to all clients: ${ips}`;
  const closed = (family: string, ips: string, readable = "readable "): string =>
    `no ${readable}loadBalancerSourceRanges of ${family}, these load-balancer IPs are left out: ${ips}`;
  const V4 = '"203.0.113.9"';
  const V6 = '"fd00:203::9", "fd00:203::7"';
  const bad = (text: string): string => `bad loadBalancerSourceRanges entry, it is skipped: "${text}"`;

  type Case = readonly [
    name: string,
    ranges: unknown,
    v4: readonly string[] | "closed",
    v6: readonly string[] | "closed",
    issues: readonly string[],
  ];
  const USUAL: readonly Case[] = [
    ["IPv4 only", [" 203.0.113.9/24 ", "198.51.100.128/25"], ["198.51.100.128/25", "203.0.113.0/24"], [], [open("IPv6", V6)]],
    ["IPv6 only", ["fd00::/8"], [], ["fd00::/8"], [open("IPv4", V4)]],
    ["both", ["10.0.0.0/8", "fd00::/8"], ["10.0.0.0/8"], ["fd00::/8"], []],
    ["all clients of IPv4", ["0.0.0.0/0"], [], [], []],
    ["all clients of IPv6", ["::/0"], [], [], []],
    ["all clients of IPv4, some of IPv6", ["0.0.0.0/0", "fd00::/8"], [], ["fd00::/8"], []],
    ["a mistyped one of IPv6", ["10.0.0.0/8", "fd00::/129"], ["10.0.0.0/8"], "closed", [bad("fd00::/129"), closed("IPv6", V6)]],
    ["a mistyped one of IPv4", ["10.0.0/8", "fd00::/8"], "closed", ["fd00::/8"], [bad("10.0.0/8"), closed("IPv4", V4)]],
    ["a mistyped one next to both", ["10.0.0.0/8", "x", "fd00::/8"], ["10.0.0.0/8"], ["fd00::/8"], [bad("x")]],
    ["all clients of IPv4 and a mistyped one", ["0.0.0.0/0", ":/0"], [], "closed", [bad(":/0"), closed("IPv6", V6)]],
    ["no readable one", ["x"], "closed", "closed", [bad("x"), closed("IPv4", V4), closed("IPv6", V6)]],
    ["an empty list", [], [], [], []],
  ];
  const STRICT: readonly Case[] = [
    ["IPv4 only, strict", ["10.0.0.0/8"], ["10.0.0.0/8"], "closed", [closed("IPv6", V6, "")]],
    ["IPv6 only, strict", ["fd00::/8"], "closed", ["fd00::/8"], [closed("IPv4", V4, "")]],
    ["both, strict", ["10.0.0.0/8", "fd00::/8"], ["10.0.0.0/8"], ["fd00::/8"], []],
    ["all clients of IPv4, strict", ["0.0.0.0/0"], [], [], []],
    ["an empty list, strict", [], [], [], []],
  ];
  it.each([...USUAL, ...STRICT])("%s", (name, loadBalancerSourceRanges, v4, v6, what) => {
    const allowedAddresses = { strictSourceRanges: STRICT.some(([strict]) => strict === name) };
    const { service, issues } = read({ ...DUAL, loadBalancerSourceRanges }, { ingress }, { allowedAddresses });
    const said = (["IPv4", "IPv6"] as const).map((family) => {
      const { loadBalancerIPs = [], sourceRanges, unserved = [] } = service?.addresses[family] ?? {};
      expect([...loadBalancerIPs, ...unserved.map(({ ip }) => ip)]).toHaveLength(family === "IPv4" ? 1 : 2);
      return loadBalancerIPs.length === 0 ? "closed" : sourceRanges;
    });
    expect(said).toEqual([v4, v6]);
    expect(issues.map((issue) => issue.what)).toEqual(what);
    const about = issues.filter((issue) => issue.what.startsWith("no "));
    expect(about.map(({ events }) => events)).toEqual(
      about.map((issue) => [{ reason: "FamilyWithoutSourceRanges", service: "shop/cart", note: `${issue.what}; ${issue.hint}` }]),
    );
  });

  it.each([
    ["none of it", []],
    ["none of IPv6", [{ ip: "203.0.113.9" }]],
    ["one of IPv6 in ipMode Proxy", [{ ip: "203.0.113.9" }, { ip: "fd00:203::9", ipMode: "Proxy" }]],
  ])("are no matter without a load-balancer IP that is served: %s", (_name, some) => {
    expect(sound({ ...DUAL, loadBalancerSourceRanges: ["10.0.0.0/8"] }, { ingress: some }).addresses.IPv6?.loadBalancerIPs).toEqual([]);
  });

  it("close what is an external IP as well", () => {
    const spec = { ...DUAL, externalIPs: ["fd00:203::9", "fd00:198::1"], loadBalancerSourceRanges: ["10.0.0.0/8", "x"] };
    expect(read(spec, { ingress }).service?.addresses.IPv6?.externalIPs).toEqual(["fd00:198::1"]);
  });
});

describe("R-08 session affinity", () => {
  const ClientIP = (timeoutSeconds?: unknown): RawObject => ({
    sessionAffinity: "ClientIP",
    ...(timeoutSeconds === undefined ? {} : { sessionAffinityConfig: { clientIP: { timeoutSeconds } } }),
  });
  it.each([
    ["none said", {}, undefined],
    ["None", { sessionAffinity: "None", sessionAffinityConfig: { clientIP: { timeoutSeconds: 5 } } }, undefined],
    ["ClientIP without a timeout is three hours", ClientIP(), 10_800],
    ["null timeout too", ClientIP(null), 10_800],
    ["shortest", ClientIP(1), 1],
    ["longest", ClientIP(86_400), 86_400],
  ])("%s", (_name, spec, seconds) => expect(sound(spec).affinitySeconds).toBe(seconds));

  it.each([
    ["zero", ClientIP(0), 10_800],
    ["more than a day", ClientIP(86_401), 10_800],
    ["text", ClientIP("60"), 10_800],
    ["fraction", ClientIP(1.5), 10_800],
    ["unknown word", { sessionAffinity: "Cookie" }, undefined],
  ])("%s is reported", (_name, spec, seconds) => {
    const { service, what } = faulty(spec);
    expect(service?.affinitySeconds).toBe(seconds);
    expect(what).toMatch(/sessionAffinity/);
  });
});

describe("R-10 traffic policies and the health check port", () => {
  const Local = { externalTrafficPolicy: "Local", internalTrafficPolicy: "Local" };
  it.each([
    ["ClusterIP: external policy means nothing", { type: "ClusterIP", ...Local }, [true, false]],
    ["ClusterIP with external IPs", { type: "ClusterIP", externalIPs: ["198.51.100.1"], ...Local }, [true, true]],
    ["NodePort", { type: "NodePort", ...Local }, [true, true]],
    ["LoadBalancer", { type: "LoadBalancer", ...Local }, [true, true]],
    ["Cluster by name", { type: "NodePort", externalTrafficPolicy: "Cluster", internalTrafficPolicy: "Cluster" }, [false, false]],
    ["nothing said", { type: "NodePort" }, [false, false]],
    ["null and empty", { type: "NodePort", externalTrafficPolicy: "", internalTrafficPolicy: null }, [false, false]],
  ])("%s", (_name, spec, [internalLocal, externalLocal]) => expect(sound(spec)).toMatchObject({ internalLocal, externalLocal }));

  it.each(["internalTrafficPolicy", "externalTrafficPolicy"])("unknown %s is read as Cluster", (field) => {
    const { service, what } = faulty({ type: "NodePort", [field]: "Nearby" });
    expect(service).toMatchObject({ internalLocal: false, externalLocal: false });
    expect(what).toContain(field);
  });

  const health = { healthCheckNodePort: 32_000 };
  it.each([
    ["LoadBalancer and Local", { type: "LoadBalancer", externalTrafficPolicy: "Local", ...health }, 32_000],
    ["LoadBalancer and Cluster", { type: "LoadBalancer", ...health }, 0],
    ["NodePort and Local", { type: "NodePort", externalTrafficPolicy: "Local", ...health }, 0],
    ["zero", { type: "LoadBalancer", externalTrafficPolicy: "Local", healthCheckNodePort: 0 }, 0],
  ])("health check port: %s", (_name, spec, port) => expect(sound(spec).healthCheckNodePort).toBe(port));
});

describe("R-55 the whole object", () => {
  it("an unknown type is skipped", () => {
    const { service, what } = faulty({ type: "Portal" });
    expect(service).toBeUndefined();
    expect(what).toMatch(/unknown Service type.*Portal/);
  });

  it.each([
    ["spec", { spec: "all of it" }],
    ["ports", { spec: { clusterIP: "10.96.0.1", ports: { http: 80 } } }],
    ["externalIPs", { spec: { clusterIP: "10.96.0.1", externalIPs: "198.51.100.1" } }],
    ["clusterIPs", { spec: { clusterIP: "10.96.0.1", clusterIPs: "10.96.0.1" } }],
    ["ipFamilies", { spec: { clusterIP: "10.96.0.1", ipFamilies: "IPv4" } }],
    ["status", { spec: { clusterIP: "10.96.0.1" }, status: [] }],
    ["loadBalancer", { spec: { clusterIP: "10.96.0.1" }, status: { loadBalancer: "x" } }],
    ["ingress", { spec: { clusterIP: "10.96.0.1" }, status: { loadBalancer: { ingress: {} } } }],
    ["loadBalancerSourceRanges", { spec: { clusterIP: "10.96.0.1", loadBalancerSourceRanges: "10.0.0.0/8" } }],
    ["sessionAffinityConfig", { spec: { clusterIP: "10.96.0.1", sessionAffinity: "ClientIP", sessionAffinityConfig: 5 } }],
  ])("%s of another shape is reported by name", (field, parts) => {
    const issues: Issue[] = [];
    const store = new Store({ report: (issue) => void issues.push(issue) });
    store.upsert("Service", { metadata: { namespace: "shop", name: "cart" }, ...parts });
    expect(issues.map(({ object }) => object)).toEqual(["Service shop/cart"]);
    expect(issues[0]?.what).toMatch(new RegExp(`^${field} is not`));
  });

  it("source ranges that can't be read let nobody in, whatever their shape", () => {
    const { service } = read({ type: "LoadBalancer", loadBalancerSourceRanges: "10.0.0.0/8" }, { ingress: [{ ip: "203.0.113.9" }] });
    expect(service?.addresses.IPv4?.loadBalancerIPs).toEqual([]);
  });

  it("creation time in ms; none is the oldest", () => {
    expect(sound({}, { created: "2024-01-01T00:00:01Z" }).createdMs).toBe(1_704_067_201_000);
    expect(sound({}, { created: "yesterday" }).createdMs).toBe(0);
  });
});

describe("R-70 addresses that are allowed", () => {
  const cidrs = (...texts: readonly string[]) => texts.map((text) => parseCIDR(text)!);
  const SPEC = {
    type: "LoadBalancer",
    clusterIPs: ["10.96.0.1", "fd00:96::1"],
    externalIPs: ["198.51.100.1", "192.0.2.1", "fd00:198::1"],
  } as const;
  const INGRESS = { ingress: [{ ip: "203.0.113.9" }, { ip: "fd00:203::9" }] };

  it("all, where no list is given", () => {
    const { addresses } = sound(SPEC, INGRESS);
    expect(addresses.IPv4).toMatchObject({ externalIPs: ["198.51.100.1", "192.0.2.1"], loadBalancerIPs: ["203.0.113.9"] });
  });

  it("those in the list; the others are left out and reported once", () => {
    const allowedAddresses = { externalIPs: cidrs("198.51.100.0/24", "fd00:198::/64"), loadBalancerIPs: cidrs("203.0.113.0/28") };
    const { service, issues } = read(SPEC, INGRESS, { allowedAddresses });
    expect(service?.addresses).toMatchObject({
      IPv4: { clusterIP: "10.96.0.1", externalIPs: ["198.51.100.1"], loadBalancerIPs: ["203.0.113.9"] },
      IPv6: { clusterIP: "fd00:96::1", externalIPs: ["fd00:198::1"], loadBalancerIPs: [] },
    });
    expect(issues.map(({ what }) => what)).toEqual([
      'external IP outside the ranges allowed, it is left out: "192.0.2.1"',
      'load-balancer IP outside the ranges allowed, it is left out: "fd00:203::9"',
    ]);
    expect(issues.map(({ hint }) => hint).join()).toMatch(/--allowed-external-ip-cidrs.*--allowed-load-balancer-ip-cidrs/);
  });

  it("none, where the list is empty; the cluster IP stays", () => {
    const { service, issues } = read(SPEC, INGRESS, { allowedAddresses: { externalIPs: [], loadBalancerIPs: [] } });
    expect(service?.addresses.IPv4).toEqual({ clusterIP: "10.96.0.1", externalIPs: [], loadBalancerIPs: [], sourceRanges: [] });
    const hints = issues.map(({ hint }) => hint.includes("AllowServiceExternalIPs"));
    expect(hints).toEqual(issues.map(({ what }) => what.startsWith("external IP")));
  });

  it("a load-balancer IP that is left out isn't an external IP either: its source ranges would be lost", () => {
    const both = { ...SPEC, externalIPs: ["203.0.113.9"], loadBalancerSourceRanges: ["10.0.0.0/8"] };
    const { service } = read(both, INGRESS, { allowedAddresses: { loadBalancerIPs: [] } });
    expect(service?.addresses.IPv4).toMatchObject({ externalIPs: [], loadBalancerIPs: [] });
  });
});
