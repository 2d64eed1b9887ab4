import { nodeManifests } from "@turnout/lab";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { reach, reachAll } from "./reach.ts";
import type { ServiceFixture, TestService } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

const inZone = (on: string, ...zoneHints: string[]): { on: string; zoneHints: string[] } => ({ on, zoneHints });

/** node1 is in zone-a, node2 in zone-b. */
describe.each(layoutsOf("topology hints"))("topology hints, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  let service: TestService;
  beforeAll(async () => {
    site = await createSite({ layout });
    service = await site.services.create({ endpoints: [] });
  });
  afterAll(() => site?.destroy());

  const cases: readonly { name: string; endpoints: ServiceFixture["endpoints"]; seen: Readonly<Record<string, string>> }[] = [
    {
      name: "keep traffic in the zone",
      endpoints: [inZone("pod-1-1", "zone-a"), inZone("pod-1-2", "zone-a"), inZone("pod-2-1", "zone-b")],
      seen: {
        "pod-1-3 clusterIP": "pod-1-1 pod-1-2",
        "pod-2-3 clusterIP": "pod-2-1",
        "node1 clusterIP": "pod-1-1 pod-1-2",
        "client1 nodePort@node2": "pod-2-1",
      },
    },
    {
      name: "may send a zone elsewhere",
      endpoints: [inZone("pod-1-1", "zone-b"), inZone("pod-2-1", "zone-a", "zone-b")],
      seen: { "pod-1-3 clusterIP": "pod-2-1", "pod-2-3 clusterIP": "pod-1-1 pod-2-1" },
    },
    {
      name: "don't count when one ready endpoint has none",
      endpoints: [inZone("pod-1-1", "zone-a"), "pod-2-1", inZone("pod-2-2", "zone-b")],
      seen: { "pod-1-3 clusterIP": "pod-1-1 pod-2-1 pod-2-2", "pod-2-3 clusterIP": "pod-1-1 pod-2-1 pod-2-2" },
    },
    {
      name: "count when only an unready endpoint has none",
      endpoints: [inZone("pod-1-1", "zone-a"), { on: "pod-2-1", ready: false }, inZone("pod-2-2", "zone-b")],
      seen: { "pod-1-3 clusterIP": "pod-1-1", "pod-2-3 clusterIP": "pod-2-2" },
    },
    {
      name: "don't count on a node whose zone nobody is meant for",
      endpoints: [inZone("pod-1-1", "zone-a"), inZone("pod-2-1", "zone-a")],
      seen: { "pod-1-3 clusterIP": "pod-1-1 pod-2-1", "pod-2-3 clusterIP": "pod-1-1 pod-2-1" },
    },
    {
      name: "for nodes come before those for zones",
      endpoints: [
        { on: "pod-1-1", zoneHints: ["zone-a"], nodeHints: ["node1"] },
        { on: "pod-1-2", zoneHints: ["zone-a"], nodeHints: ["node3"] },
        { on: "pod-2-1", zoneHints: ["zone-b"], nodeHints: ["node3"] },
      ],
      seen: { "pod-1-3 clusterIP": "pod-1-1", "pod-2-3 clusterIP": "pod-2-1" },
    },
    {
      name: "are forgotten when all endpoints are terminating",
      endpoints: ["pod-1-1", "pod-2-1"].map((on, index) => ({
        ...inZone(on, index === 0 ? "zone-a" : "zone-b"),
        ready: false,
        serving: true,
        terminating: true,
      })),
      seen: { "pod-1-3 clusterIP": "pod-1-1 pod-2-1", "pod-2-3 clusterIP": "pod-1-1 pod-2-1" },
    },
  ];
  it.each(cases)("$name", async ({ endpoints, seen }) => {
    await service.setEndpoints(endpoints);
    for (const family of ["IPv4", "IPv6"] as const) {
      const words = await reachAll(site, service, family, seen);
      expect(Object.fromEntries(Object.entries(words).map(([key, text]) => [key, text.split(" saw ")[0]]))).toEqual(seen);
    }
  });

  it("never apply to the Local external policy", async () => {
    await service.change({ externalTrafficPolicy: "Local" });
    await service.setEndpoints([inZone("pod-1-1", "zone-b"), inZone("pod-2-1", "zone-a")]);
    const expected = { "client1 nodePort@node1": "pod-1-1 saw client1", "client1 nodePort@node2": "pod-2-1 saw client1" };
    expect(await reachAll(site, service, "IPv4", expected)).toEqual(expected);
  });

  it("follow the node when its zone changes", async () => {
    await service.setEndpoints([inZone("pod-1-1", "zone-a"), inZone("pod-2-1", "zone-b")]);
    const ask = (): Promise<string> => reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" });
    expect(await ask()).toBe("pod-1-1 saw pod-1-3");
    const moved = nodeManifests(site.cluster).map((node) => ({
      ...node,
      metadata: { ...(node["metadata"] as object), labels: { "topology.kubernetes.io/zone": "zone-b" } },
    }));
    await site.api.apply(moved);
    await expect.poll(ask).toBe("pod-2-1 saw pod-1-3");
  });
});
