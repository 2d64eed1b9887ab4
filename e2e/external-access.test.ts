import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { inLayouts } from "./layout.ts";
import { reachAddress, reachAll } from "./reach.ts";
import { SERVICE_PORT } from "./services.ts";
import type { TestService } from "./services.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const CASES = inLayouts("access from outside", FAMILIES);
const CLIENT1 = ["203.0.113.1/32", "fd00:203::1/128"];
const NODES = ["172.18.0.0/24", "fd00:18::/64"];
/** Held by the fabric itself, which stands for a cloud's load balancer. */
const BALANCER = { IPv4: "198.51.100.250", IPv6: "fd00:198::fa" } as const;
const SECOND = { IPv4: "172.19.0.1", IPv6: "fd00:19::1" } as const;

describe.each(CASES)("access from outside over %s, %s", needs("root", "ip", "nft>=1.0.1"), (family, layout) => {
  let site: Site;
  let services: Readonly<Record<"open" | "ranged" | "rangedEmpty" | "rangedNodes" | "balanced", TestService>>;
  beforeAll(async () => {
    site = await createSite({ layout, families: [family], clients: 2 });
    const { fabric } = site.cluster;
    await fabric.run("ip", ["address", "add", BALANCER[family], "dev", "lo"]);
    await fabric.agent().serve({ name: "load-balancer", transport: "TCP", port: SERVICE_PORT, address: BALANCER[family] });
    services = await site.services.createAll({
      open: { endpoints: ["pod-1-1", "pod-2-1"] },
      ranged: { endpoints: ["pod-2-1"], fields: { sourceRanges: CLIENT1 } },
      rangedEmpty: { endpoints: [], fields: { sourceRanges: CLIENT1 } },
      rangedNodes: { endpoints: ["pod-2-1"], fields: { sourceRanges: NODES } },
      balanced: { endpoints: ["pod-1-1"], fields: { ingress: [{ ip: BALANCER[family], ipMode: "Proxy" }] } },
    });
  });
  afterAll(() => site?.destroy());

  it("works through every node's node port, external and load-balancer addresses", async () => {
    const expected = {
      "client1 nodePort@node1": "pod-1-1 pod-2-1 saw node1",
      "client2 nodePort@node2": "pod-1-1 pod-2-1 saw node2",
      "client1 nodePort@node2 UDP": "pod-1-1 pod-2-1 saw node2",
      "client1 externalIP": "pod-1-1 pod-2-1 saw node1",
      "client1 externalIP UDP": "pod-1-1 pod-2-1 saw node1",
      "client2 loadBalancerIP": "pod-1-1 pod-2-1 saw node1",
      "node2 nodePort@node1": "pod-1-1 pod-2-1 saw node1",
      "pod-1-2 nodePort@node2": "pod-1-1 pod-2-1 saw node2",
    };
    expect(await reachAll(site, services.open, family, expected)).toEqual(expected);
  });

  it("through a load-balancer address is for its source ranges only; the other ways are open", async () => {
    const expected = {
      "client1 loadBalancerIP": "pod-2-1 saw node1",
      "client2 loadBalancerIP": "timeout",
      "client2 loadBalancerIP UDP": "timeout",
      "pod-1-2 loadBalancerIP": "timeout",
      "node1 loadBalancerIP": "timeout",
      "client2 externalIP": "pod-2-1 saw node1",
      "client2 nodePort@node1": "pod-2-1 saw node1",
      "pod-1-2 clusterIP": "pod-2-1 saw pod-1-2",
    };
    expect(await reachAll(site, services.ranged, family, expected)).toEqual(expected);
  });

  it("through a load-balancer address is for the nodes when their range is named", async () => {
    const expected = { "node1 loadBalancerIP": "pod-2-1 saw node1", "client1 loadBalancerIP": "timeout" };
    expect(await reachAll(site, services.rangedNodes, family, expected)).toEqual(expected);
  });

  it("without endpoints is refused inside the source ranges and dropped outside", async () => {
    const expected = { "client1 loadBalancerIP": "refused", "client2 loadBalancerIP": "timeout", "client2 externalIP": "refused" };
    expect(await reachAll(site, services.rangedEmpty, family, expected)).toEqual(expected);
  });

  it("opens and closes when the source ranges change", async () => {
    await services.ranged.change({ sourceRanges: [] });
    const open = { "client1 loadBalancerIP": "pod-2-1 saw node1", "client2 loadBalancerIP": "pod-2-1 saw node1" };
    expect(await reachAll(site, services.ranged, family, open)).toEqual(open);
    await services.ranged.change({ sourceRanges: CLIENT1 });
    const closed = { "client1 loadBalancerIP": "pod-2-1 saw node1", "client2 loadBalancerIP": "timeout" };
    expect(await reachAll(site, services.ranged, family, closed)).toEqual(closed);
  });

  it("leaves an address in ipMode Proxy to the load balancer, until it becomes a VIP", async () => {
    const expected = { "pod-1-2 loadBalancerIP": "load-balancer saw pod-1-2", "node1 loadBalancerIP": "load-balancer saw node1" };
    expect(await reachAll(site, services.balanced, family, expected)).toEqual(expected);
    await services.balanced.change({ ingress: [{ ip: BALANCER[family], ipMode: "VIP" }] });
    const vip = { "pod-1-2 loadBalancerIP": "pod-1-1 saw node1", "node1 loadBalancerIP": "pod-1-1 saw node1" };
    expect(await reachAll(site, services.balanced, family, vip)).toEqual(vip);
  });

  it("uses node ports on the addresses chosen: the node's own by default, others when told", async () => {
    const second = { address: SECOND[family], port: services.open.target("nodePort@node1", family).port };
    // Deprecated from the start, so that the kernel never masquerades to it.
    await site.cluster.node("node1").run("ip", ["address", "add", SECOND[family], "dev", "eth0", "preferred_lft", "0"]);
    await site.cluster.routeTo(SECOND[family], "node1");
    expect(await reachAddress(site, "client1", second)).toBe("refused");

    const proxy = site.proxy("node1");
    await proxy.end("SIGTERM");
    proxy.start([...CLUSTER_CIDR, "--nodeport-addresses", `${SECOND[family]}/${family === "IPv4" ? 32 : 128}`]);
    await site.waitForSync();
    expect(await reachAddress(site, "client1", second)).toBe("pod-1-1 pod-2-1 saw node1");
    const elsewhere = { "client1 nodePort@node1": "refused", "client1 nodePort@node2": "pod-1-1 pod-2-1 saw node2" };
    expect(await reachAll(site, services.open, family, elsewhere)).toEqual(elsewhere);
  });
});
