import { nodeManifests } from "@turnout/lab";
import type { GetResult } from "@turnout/lab";
import { needs } from "@turnout/house/needs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { TURNOUT } from "./proxy.ts";
import { reach } from "./reach.ts";
import type { TestService } from "./services.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

type Manifest = Readonly<Record<string, unknown>>;

describe.each(layoutsOf("the turnout process"))("the turnout process, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  let service: TestService;
  beforeAll(async () => {
    site = await createSite({ layout });
    service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"] });
  });
  afterAll(() => site?.destroy());
  afterEach(async () => {
    await site.api.apply(nodeManifests(site.cluster));
    const proxy = site.proxy("node1");
    if (proxy.isRunning) return;
    proxy.start(CLUSTER_CIDR);
    await site.waitForSync();
  });

  const get = (from: string, path: string, port = 10_256): Promise<GetResult> =>
    site
      .place(from)
      .agent()
      .get({ address: site.place("node1").address("IPv4"), port, path });
  const works = (): Promise<string> => reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" });
  const WORKS = "pod-1-1 pod-2-1 saw pod-1-3";
  const node1 = (change: (node: Manifest) => Manifest): Promise<void> =>
    site.api.apply(nodeManifests(site.cluster).slice(0, 1).map(change));
  const tables = async (): Promise<readonly string[]> => {
    const { stdout } = await site.cluster.node("node1").run("nft", ["list", "tables"]);
    return stdout.trim().split("\n").toSorted();
  };

  it("answers /healthz and /livez with what kube-proxy says there", async () => {
    const health = await get("client1", "/healthz");
    expect(health).toMatchObject({ status: 200, headers: { "content-type": "application/json", "x-content-type-options": "nosniff" } });
    expect(JSON.parse(health.body)).toMatchObject({
      healthy: true,
      nodeEligible: true,
      status: { IPv4: { healthy: true }, IPv6: { healthy: true } },
    });
    const live = await get("client1", "/livez");
    expect([live.status, JSON.parse(live.body)]).toEqual([200, expect.not.objectContaining({ nodeEligible: true })]);
  });

  it("is not healthy, though alive, on a node that the autoscaler takes away", async () => {
    await node1((node) => ({
      ...node,
      spec: { ...(node["spec"] as object), taints: [{ key: "ToBeDeletedByClusterAutoscaler", effect: "NoSchedule" }] },
    }));
    await expect.poll(async () => (await get("node1", "/healthz")).status).toBe(503);
    expect((await get("node1", "/livez")).status).toBe(200);
    await site.api.apply(nodeManifests(site.cluster));
    await expect.poll(async () => (await get("node1", "/healthz")).status).toBe(200);
  });

  it("tells kube-proxy's metrics, and counts syncs in them", async () => {
    const syncs = async (): Promise<number> => {
      const { body } = await get("node1", "/metrics", 10_249);
      return Number(/^kubeproxy_sync_proxy_rules_duration_seconds_count\{[^}]*ip_family="IPv4"[^}]*\} (\d+)$/m.exec(body)?.[1]);
    };
    const before = await syncs();
    expect(before).toBeGreaterThan(0);
    await service.setEndpoints(["pod-1-1", "pod-2-1", "pod-2-2"]);
    expect(await syncs()).toBeGreaterThan(before);
    await service.setEndpoints(["pod-1-1", "pod-2-1"]);
    expect((await get("node1", "/proxyMode", 10_249)).body).toBe("nftables");
    expect((await get("node1", "/metrics", 10_249)).body).toContain("kubeproxy_proxy_healthz_total");
  });

  it.each(["IPv4", "IPv6"] as const)("answers at health check node ports over %s for ready endpoints here", async (family) => {
    const leaving = { on: "pod-1-1", ready: false, serving: true, terminating: true };
    const fields = { externalTrafficPolicy: "Local", healthCheckNodePort: 31_000, type: "LoadBalancer" } as const;
    const local = await site.services.create({ endpoints: [leaving, "pod-2-1", "pod-2-2"], fields });
    const health = (node: string): Promise<GetResult> =>
      site
        .place("client1")
        .agent()
        .get({ address: site.place(node).address(family), port: 31_000, path: "/" });
    // Health check node ports follow the sync; nobody waits for them.
    await expect.poll(async () => (await health("node2")).headers["x-load-balancing-endpoint-weight"]).toBe("2");
    const serving = await health("node2");
    expect(serving).toMatchObject({ status: 200, headers: { "content-type": "application/json", "x-content-type-options": "nosniff" } });
    expect(JSON.parse(serving.body)).toEqual({
      service: { namespace: "default", name: local.manifest.name },
      localEndpoints: 2,
      serviceProxyHealthy: true,
    });
    await expect.poll(() => health("node1")).toMatchObject({ status: 503 });
    await local.change({ externalTrafficPolicy: "Cluster" });
    await expect.poll(() => health("node2")).toMatchObject({ outcome: "refused" });
    await local.remove();
  });

  it("ends with 0 on SIGTERM and leaves its rules in force", async () => {
    const proxy = site.proxy("node1");
    expect(await proxy.end("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(await works()).toBe(WORKS);
  });

  it("with --once syncs, leaves its rules and ends with 0", async () => {
    const proxy = site.proxy("node1");
    await proxy.end("SIGKILL");
    await service.setEndpoints(["pod-1-2"]);
    proxy.start([...CLUSTER_CIDR, "--once"]);
    expect(await proxy.ended()).toEqual({ code: 0, signal: null });
    expect(await works()).toBe("pod-1-2 saw pod-1-3");
    await service.setEndpoints(["pod-1-1", "pod-2-1"]);
  });

  it("with --once gives up on an API server that is away, says so, and leaves the rules of before", async () => {
    const proxy = site.proxy("node1");
    await proxy.end("SIGKILL");
    await site.api.pause();
    proxy.start([...CLUSTER_CIDR, "--once", "--timeout", "1s"]);
    expect(await proxy.ended()).toEqual({ code: 1, signal: null });
    expect(proxy.log()).toContain("[timed_out]");
    await site.api.resume();
    expect(await works()).toBe(WORKS);
  });

  it("with --dry-run touches nothing and prints what it would do; cleanup removes ours and nothing else", async () => {
    const { run } = site.cluster.node("node1");
    const proxy = site.proxy("node1");
    await proxy.end("SIGTERM");
    await run("nft", ["add", "table", "ip", "somebody-else"]);
    expect(await tables()).toEqual(["table ip somebody-else", "table ip turnout", "table ip6 turnout"]);
    await run(TURNOUT, ["cleanup", "--backend", "nft"]);
    expect(await tables()).toEqual(["table ip somebody-else"]);
    proxy.start([...CLUSTER_CIDR, "--once", "--dry-run"]);
    expect(await proxy.ended()).toEqual({ code: 0, signal: null });
    expect(await tables()).toEqual(["table ip somebody-else"]);
    expect(proxy.log()).toContain("add table ip turnout");
    await run("nft", ["delete", "table", "ip", "somebody-else"]);
  });

  it.each([
    [
      "its address changes",
      (node: Manifest): Manifest => ({ ...node, status: { addresses: [{ type: "InternalIP", address: "172.18.0.77" }] } }),
      CLUSTER_CIDR,
      "pod-1-3",
    ],
    [
      "its pod ranges change and count",
      (node: Manifest): Manifest => ({ ...node, spec: { podCIDRs: ["10.99.0.0/24"] } }),
      ["--detect-local-mode", "NodeCIDR"],
      // It is no pod of this node's any more.
      "node1",
    ],
  ] as const)("follows Services on when the node is another one: %s", async (_, change, flags, seen) => {
    const proxy = site.proxy("node1");
    await proxy.end("SIGTERM");
    proxy.start(flags);
    await site.waitForSync();
    await node1(change);
    await service.setEndpoints(["pod-1-2"]);
    // A Node object comes over a watch of its own: the Service's change may be in force before it.
    await expect.poll(works).toBe(`pod-1-2 saw ${seen}`);
    await site.api.apply(nodeManifests(site.cluster));
    await expect.poll(works).toBe("pod-1-2 saw pod-1-3");
    await service.setEndpoints(["pod-1-1", "pod-2-1"]);
    expect(await works()).toBe(WORKS);
  });

  it("follows Services on when the node is deleted, with the addresses it had, and says so", async () => {
    const proxy = site.proxy("node1");
    await proxy.end("SIGTERM");
    proxy.start();
    await site.waitForSync();
    await site.api.delete({ kind: "Node", namespace: "", name: "node1" });
    await expect.poll(() => proxy.log(), { timeout: 20_000 }).toContain("this node's Node object is gone, what it said last is still used");
    await service.setEndpoints(["pod-1-2"]);
    expect(await works()).toBe("pod-1-2 saw pod-1-3");
    await service.setEndpoints(["pod-1-1", "pod-2-1"]);
    expect(await works()).toBe(WORKS);
    expect((await get("node1", "/healthz")).status).toBe(503);
    expect((await get("node1", "/livez")).status).toBe(200);
    await site.api.apply(nodeManifests(site.cluster));
    await expect.poll(async () => (await get("node1", "/healthz")).status).toBe(200);
  });

  it("repairs what somebody removed from its table", async () => {
    const { run } = site.cluster.node("node1");
    await run("nft", ["flush", "chain", "ip", "turnout", "nat-prerouting"]);
    await expect.poll(works).toBe(WORKS);
    await run("nft", ["delete", "table", "ip", "turnout"]);
    await expect.poll(works).toBe(WORKS);
  });
});
