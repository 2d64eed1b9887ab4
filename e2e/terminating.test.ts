import type { IPFamily } from "@turnout/core";
import type { GetResult } from "@turnout/lab";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { reachAll } from "./reach.ts";
import type { EndpointFixture, TestService } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const HEALTH_PORT = 31_000;

const leaving = (on: string): EndpointFixture => ({ on, ready: false, serving: true, terminating: true });
const gone = (on: string): EndpointFixture => ({ on, ready: false, serving: false, terminating: true });

describe.each(layoutsOf("terminating"))("endpoints that are terminating, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  let services: Readonly<Record<"cluster" | "internalLocal" | "externalLocal", TestService>>;
  beforeAll(async () => {
    site = await createSite({ layout });
    services = await site.services.createAll({
      cluster: { endpoints: [] },
      internalLocal: { endpoints: [], fields: { internalTrafficPolicy: "Local" } },
      externalLocal: { endpoints: [], fields: { externalTrafficPolicy: "Local", healthCheckNodePort: HEALTH_PORT, type: "LoadBalancer" } },
    });
  });
  afterAll(() => site?.destroy());

  it.each(FAMILIES)("serve over %s only while nothing is ready", async (family) => {
    await services.cluster.setEndpoints([leaving("pod-1-1"), leaving("pod-2-1"), gone("pod-2-2")]);
    const fallback = { "pod-1-3 clusterIP": "pod-1-1 pod-2-1 saw pod-1-3", "client1 externalIP UDP": "pod-1-1 pod-2-1 saw node1" };
    expect(await reachAll(site, services.cluster, family, fallback)).toEqual(fallback);
    await services.cluster.setEndpoints([leaving("pod-1-1"), leaving("pod-2-1"), "pod-1-2"]);
    const ready = { "pod-1-3 clusterIP": "pod-1-2 saw pod-1-3", "pod-2-3 clusterIP": "pod-1-2 saw pod-2-3" };
    expect(await reachAll(site, services.cluster, family, ready)).toEqual(ready);
    await services.cluster.setEndpoints([gone("pod-1-1"), gone("pod-2-1")]);
    const none = { "pod-1-3 clusterIP": "refused" };
    expect(await reachAll(site, services.cluster, family, none)).toEqual(none);
  });

  it("that are published as ready count as ready", async () => {
    await services.cluster.setEndpoints([{ on: "pod-1-1", ready: true, serving: false, terminating: true }, leaving("pod-2-1")]);
    const expected = { "pod-1-3 clusterIP": "pod-1-1 saw pod-1-3" };
    expect(await reachAll(site, services.cluster, "IPv4", expected)).toEqual(expected);
  });

  it.each(FAMILIES)("serve over %s locally under the Local internal policy, though others are ready elsewhere", async (family) => {
    await services.internalLocal.setEndpoints([leaving("pod-1-1"), "pod-2-1"]);
    const expected = {
      "pod-1-3 clusterIP": "pod-1-1 saw pod-1-3",
      "node1 clusterIP": "pod-1-1 saw node1",
      "pod-2-3 clusterIP": "pod-2-1 saw pod-2-3",
      "client1 nodePort@node1": "pod-2-1 saw node1",
    };
    expect(await reachAll(site, services.internalLocal, family, expected)).toEqual(expected);
  });

  it.each(FAMILIES)("serve over %s locally under the Local external policy, and pods still use what is ready", async (family) => {
    await services.externalLocal.setEndpoints([leaving("pod-1-1"), "pod-2-1"]);
    const expected = {
      "client1 nodePort@node1": "pod-1-1 saw client1",
      "client1 nodePort@node2": "pod-2-1 saw client1",
      "client1 loadBalancerIP UDP": "pod-1-1 saw client1",
      "pod-1-3 externalIP": "pod-2-1 saw pod-1-3",
      "pod-1-3 clusterIP": "pod-2-1 saw pod-1-3",
    };
    expect(await reachAll(site, services.externalLocal, family, expected)).toEqual(expected);
  });

  const health = (node: string, family: IPFamily): Promise<GetResult> =>
    site
      .place("client1")
      .agent()
      .get({ address: site.place(node).address(family), port: HEALTH_PORT, path: "/" });

  it.each(FAMILIES)("don't count for the health check node port over %s, and ready local ones do", async (family) => {
    await services.externalLocal.setEndpoints([leaving("pod-1-1"), "pod-2-1", "pod-2-2"]);
    // Health check node ports follow the sync; nobody waits for them.
    await expect.poll(async () => (await health("node2", family)).headers["x-load-balancing-endpoint-weight"]).toBe("2");
    const serving = await health("node2", family);
    expect(serving).toMatchObject({ status: 200, headers: { "content-type": "application/json", "x-content-type-options": "nosniff" } });
    expect(JSON.parse(serving.body)).toEqual({
      service: { namespace: "default", name: services.externalLocal.manifest.name },
      localEndpoints: 2,
      serviceProxyHealthy: true,
    });
    await expect.poll(() => health("node1", family)).toMatchObject({ status: 503 });
  });

  it("have no health check node port once the external policy is Cluster", async () => {
    await services.externalLocal.change({ externalTrafficPolicy: "Cluster" });
    await expect.poll(() => health("node2", "IPv4")).toMatchObject({ outcome: "refused" });
    await services.externalLocal.change({ externalTrafficPolicy: "Local" });
    await expect.poll(() => health("node2", "IPv4")).toMatchObject({ status: 200 });
  });
});
