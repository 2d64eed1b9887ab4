import { RANGES } from "@turnout/lab";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { reachAll } from "./reach.ts";
import type { TestService } from "./services.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;

/** Only node1 runs the proxy and node2 sends it what is for services, so that pods of another node show as what the mode takes them for. */
describe.each(layoutsOf("telling pods from others"))("telling pods from others, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  let service: TestService;
  beforeAll(async () => {
    site = await createSite({ layout, proxied: ["node1"] });
    for (const family of FAMILIES) {
      await site.cluster.node("node2").run("ip", ["route", "add", RANGES.services[family], "via", site.place("node1").address(family)]);
    }
    service = await site.services.create({ endpoints: ["pod-1-1"] });
  });
  afterAll(() => site?.destroy());

  const modes: readonly (readonly [string, readonly string[], Readonly<Record<string, string>>])[] = [
    ["by the cluster's pod range", CLUSTER_CIDR, { "pod-1-2": "pod-1-2", "pod-2-1": "pod-2-1", client1: "node1", node1: "node1" }],
    ["by the node's pod range", ["--detect-local-mode", "NodeCIDR"], { "pod-1-2": "pod-1-2", "pod-2-1": "node1", client1: "node1" }],
    [
      "by interface prefix",
      ["--detect-local-mode", "InterfaceNamePrefix", "--pod-interface-name-prefix", "veth"],
      { "pod-1-2": "pod-1-2", "pod-2-1": "node1", client1: "node1" },
    ],
    [
      "by one interface",
      ["--detect-local-mode", "BridgeInterface", "--pod-bridge-interface", "veth2"],
      { "pod-1-2": "pod-1-2", "pod-1-3": "node1", client1: "node1" },
    ],
    ["not at all", [], { "pod-1-2": "pod-1-2", "pod-2-1": "pod-2-1", client1: "client1" }],
    ["and masquerading all", [...CLUSTER_CIDR, "--masquerade-all"], { "pod-1-2": "node1", "pod-2-1": "node1", client1: "node1" }],
  ];
  it.each(modes)("%s", async (_, flags, seen) => {
    const proxy = site.proxy("node1");
    expect(await proxy.end("SIGTERM")).toEqual({ code: 0, signal: null });
    proxy.start(flags);
    await site.waitForSync();
    const expected = Object.fromEntries(Object.entries(seen).map(([from, client]) => [`${from} clusterIP`, `pod-1-1 saw ${client}`]));
    for (const family of FAMILIES) expect(await reachAll(site, service, family, expected)).toEqual(expected);
  });
});
