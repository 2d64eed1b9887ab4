import { serviceManifest, sliceManifests } from "@turnout/lab";
import type { ServiceManifest } from "@turnout/lab";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { reach, reachAddress, reachAll } from "./reach.ts";
import { SERVER_PORT } from "./services.ts";
import { createSite, HOST_PORT } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;

describe.each(layoutsOf("a service that changes"))("a service that changes, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  beforeAll(async () => {
    site = await createSite({ layout });
  });
  afterAll(() => site?.destroy());

  it("gains and loses ports", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"], protocols: ["TCP"], ways: [] });
    const [tcp = { port: 80 }] = service.manifest.ports;
    const first = {
      "pod-1-3 clusterIP TCP 80": "pod-1-1 saw pod-1-3",
      "pod-1-3 clusterIP TCP 90": "refused",
      "pod-1-3 clusterIP UDP 80": "refused",
    };
    expect(await reachAll(site, service, "IPv4", first)).toEqual(first);
    await service.change({
      ports: [
        tcp,
        { name: "more", port: 90, targetPort: SERVER_PORT },
        { name: "udp", protocol: "UDP", port: 80, targetPort: SERVER_PORT },
      ],
    });
    const more = {
      "pod-1-3 clusterIP TCP 80": "pod-1-1 saw pod-1-3",
      "pod-1-3 clusterIP TCP 90": "pod-1-1 saw pod-1-3",
      "pod-1-3 clusterIP UDP 80": "pod-1-1 saw pod-1-3",
    };
    expect(await reachAll(site, service, "IPv4", more)).toEqual(more);
    await service.change({ ports: [{ name: "more", port: 90, targetPort: SERVER_PORT }] });
    const moved = {
      "pod-1-3 clusterIP TCP 80": "refused",
      "pod-1-3 clusterIP TCP 90": "pod-1-1 saw pod-1-3",
      "pod-1-3 clusterIP UDP 80": "refused",
    };
    expect(await reachAll(site, service, "IPv4", moved)).toEqual(moved);
  });

  it("changes its type there and back", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const { manifest } = service;
    const all = {
      "pod-1-3 clusterIP": "pod-1-1 saw pod-1-3",
      "client1 nodePort@node1": "pod-1-1 saw node1",
      "client1 loadBalancerIP": "pod-1-1 saw node1",
    };
    expect(await reachAll(site, service, "IPv6", all)).toEqual(all);
    await service.replace({ ...manifest, type: "ExternalName" });
    const none = { "pod-1-3 clusterIP": "timeout", "client1 nodePort@node1": "refused" };
    expect(await reachAll(site, service, "IPv6", none)).toEqual(none);
    await service.replace(manifest);
    expect(await reachAll(site, service, "IPv6", all)).toEqual(all);
  });

  it("is somebody else's while labelled service-proxy-name, and stays ours when labelled headless", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const { manifest } = service;
    const ask = (): Promise<string> => reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" });
    expect(await ask()).toBe("pod-1-1 saw pod-1-3");
    await service.replace({ ...manifest, labels: { "service.kubernetes.io/service-proxy-name": "somebody-else" } });
    expect(await ask()).toBe("timeout");
    await service.replace({ ...manifest, labels: { "service.kubernetes.io/headless": "" } });
    expect(await ask()).toBe("pod-1-1 saw pod-1-3");
  });

  it("goes, and works again under the same name", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const stays = await site.services.create({ endpoints: ["pod-1-2"] });
    const { manifest } = service;
    await service.remove();
    const gone = { "pod-1-3 clusterIP": "timeout", "client1 nodePort@node2": "refused" };
    expect(await reachAll(site, service, "IPv4", gone)).toEqual(gone);
    expect(await reach(site, stays, "IPv4", { from: "pod-1-3", way: "clusterIP" })).toBe("pod-1-2 saw pod-1-3");
    await service.setEndpoints(["pod-2-1"]);
    await service.replace(manifest);
    const back = { "pod-1-3 clusterIP": "pod-2-1 saw pod-1-3", "client1 nodePort@node2": "pod-2-1 saw node2" };
    expect(await reachAll(site, service, "IPv4", back)).toEqual(back);
  });

  it("keeps an address that another one claims too, until it goes", async () => {
    const shared = { externalIPs: ["198.51.100.90", "fd00:198::90"] };
    const { winner, loser } = await site.services.createAll({
      winner: { endpoints: ["pod-1-1"], ways: [], fields: { ...shared, name: "claim-a" } },
      loser: { endpoints: ["pod-2-1"], ways: [], fields: { ...shared, name: "claim-b" } },
    });
    for (const family of FAMILIES) {
      expect(await reach(site, loser, family, { from: "client1", way: "externalIP" })).toBe("pod-1-1 saw node1");
      expect(await reach(site, loser, family, { from: "pod-1-3", way: "clusterIP" })).toBe("pod-2-1 saw pod-1-3");
    }
    await winner.remove();
    for (const family of FAMILIES)
      expect(await reach(site, loser, family, { from: "client1", way: "externalIP" })).toBe("pod-2-1 saw node1");
  });

  it("passes an address on to a younger one of its namespace while it has no endpoints", async () => {
    const shared = { externalIPs: ["198.51.100.91", "fd00:198::91"] };
    const { blue, green } = await site.services.createAll({
      blue: { endpoints: ["pod-1-1"], ways: [], fields: { ...shared, name: "share-a" } },
      green: { endpoints: ["pod-2-1"], ways: [], fields: { ...shared, name: "share-b" } },
    });
    const answers = (): Promise<readonly string[]> =>
      Promise.all(FAMILIES.map((family) => reach(site, green, family, { from: "client1", way: "externalIP" })));
    expect(await answers()).toEqual(["pod-1-1 saw node1", "pod-1-1 saw node1"]);
    await blue.setEndpoints([]);
    expect(await answers()).toEqual(["pod-2-1 saw node1", "pod-2-1 saw node1"]);
    await blue.setEndpoints(["pod-1-1"]);
    expect(await answers()).toEqual(["pod-1-1 saw node1", "pod-1-1 saw node1"]);
  });
});

describe.each(layoutsOf("a service of two families"))("a service of two families, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  beforeAll(async () => {
    site = await createSite({ layout });
  });
  afterAll(() => site?.destroy());

  it("may have one of them only, or its endpoints in one only", async () => {
    const both = ["10.96.3.1", "fd00:96::301"] as const;
    const single = await site.services.create({ endpoints: ["pod-1-1"], ways: ["nodePort"], fields: { clusterIPs: [both[1]] } });
    expect(await reach(site, single, "IPv6", { from: "pod-1-3", way: "clusterIP" })).toBe("pod-1-1 saw pod-1-3");
    expect(await reach(site, single, "IPv6", { from: "client1", way: "nodePort@node1" })).toBe("pod-1-1 saw node1");
    expect(await reach(site, single, "IPv4", { from: "client1", way: "nodePort@node1" })).toBe("refused");
    const swapped = await site.services.create({ endpoints: ["pod-1-1"], fields: { clusterIPs: ["fd00:96::302", "10.96.3.2"] } });
    await site.api.delete({ kind: "EndpointSlice", namespace: "default", name: `${swapped.manifest.name}-ipv6` });
    await site.waitForSync();
    expect(await reach(site, swapped, "IPv4", { from: "pod-1-3", way: "clusterIP" })).toBe("pod-1-1 saw pod-1-3");
    expect(await reach(site, swapped, "IPv6", { from: "pod-1-3", way: "clusterIP" })).toBe("refused");
  });

  /** Slices as the API may hold them, beside the ones the harness writes. */
  const extra = (service: ServiceManifest, name: string, change: object): object => {
    const [slice] = sliceManifests(service, [{ place: site.place("pod-2-1") }], ["IPv4"]);
    return { ...slice, metadata: { ...(slice?.["metadata"] as object), name }, ...change };
  };

  it("merges its slices, whatever number their ports have", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"], protocols: ["TCP"] });
    const address = site.place("node2").address("IPv4");
    const ports = [{ name: "tcp", protocol: "TCP", port: HOST_PORT }];
    const endpoints = [{ addresses: [address], conditions: {} }];
    await site.api.apply([extra(service.manifest, "extra-a", {}), extra(service.manifest, "extra-b", { ports, endpoints })]);
    await site.waitForSync();
    expect(await reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" })).toBe("node2 pod-1-1 pod-2-1 saw pod-1-3");
  });

  it("works beside objects that are malformed, hostile or forbidden", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"], protocols: ["TCP"] });
    const endpoints = ["127.0.0.1", "169.254.169.254", "not-an-address; flush ruleset", "fd00::1"].map((address) => ({
      addresses: [address],
      conditions: {},
    }));
    const hostile = serviceManifest({ name: "hostile", clusterIPs: ["10.96.3.9"], ports: [{ name: 'x"; flush ruleset; #', port: 80 }] });
    await site.api.apply([
      extra(service.manifest, "malformed", { endpoints }),
      extra(service.manifest, "no-ports", { ports: [{ name: "tcp", protocol: "TCP" }] }),
      hostile,
      serviceManifest({ name: "port-0", clusterIPs: ["10.96.3.10"], ports: [{ port: 0 }] }),
      serviceManifest({ name: "no-address", clusterIPs: ["999.1.1.1"], ports: [{ port: 80 }] }),
    ]);
    await site.waitForSync();
    expect(await reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" })).toBe("pod-1-1 saw pod-1-3");
    expect(await reach(site, service, "IPv4", { from: "node1", way: "nodePort@node1" })).toBe("pod-1-1 saw node1");
  });

  it("has its addresses read as decimal when they carry leading zeros", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"], ways: [], fields: { externalIPs: ["198.051.100.091"] } });
    expect(service.manifest.externalIPs).toEqual(["198.051.100.091"]);
    expect(await reachAddress(site, "client1", { address: "198.51.100.91", port: 80 })).toBe("pod-1-1 saw node1");
  });
});
