import { setTimeout as sleep } from "node:timers/promises";
import type { IPFamily } from "@turnout/core";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import type { TestService, Way } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const FOUR = ["pod-1-1", "pod-1-2", "pod-2-1", "pod-2-2"];
const ASKERS = ["pod-1-3", "pod-2-3", "node1", "node2", "client1", "client2"];
const LONG_SECONDS = 600;
const SHORT_SECONDS = 2;

describe.each(layoutsOf("session affinity"))("session affinity, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  beforeAll(async () => {
    site = await createSite({ layout, clients: 2 });
  });
  afterAll(() => site?.destroy());

  /** Servers that answer `count` connections. */
  const serversOf = async (service: TestService, family: IPFamily, from: string, way: Way, count = 40): Promise<readonly string[]> => {
    const { servers, failed } = await site
      .place(from)
      .agent()
      .burst({ ...service.target(way, family), count });
    expect(failed).toEqual({});
    return Object.keys(servers).toSorted();
  };
  const serverOf = async (service: TestService, family: IPFamily, from: string): Promise<string> => {
    const { outcome, server = "" } = await site.place(from).agent().attempt(service.target("clusterIP", family));
    expect(outcome).toBe("ok");
    return server;
  };

  it.each(FAMILIES)("keeps a client with one endpoint over %s, through whichever address it comes", async (family) => {
    const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: LONG_SECONDS } });
    for (const from of ["pod-1-3", "client1"]) {
      const first = await serversOf(service, family, from, "nodePort@node1");
      expect(first).toHaveLength(1);
      for (const way of ["clusterIP", "externalIP", "loadBalancerIP"] as const)
        expect(await serversOf(service, family, from, way)).toEqual(first);
    }
  });

  it("is each client's own: six clients don't all share one endpoint", async () => {
    const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: LONG_SECONDS } });
    // By chance they would once in 4^5; a new service each time makes that 1 in 10^9 over three.
    const another = await Promise.all(
      [1, 2].map(() => site.services.create({ endpoints: FOUR, fields: { affinitySeconds: LONG_SECONDS } })),
    );
    const spread = await Promise.all(
      [service, ...another].map(async (one) => new Set(await Promise.all(ASKERS.map((from) => serverOf(one, "IPv4", from)))).size),
    );
    expect(Math.max(...spread)).toBeGreaterThan(1);
  });

  it("holds for UDP", async () => {
    const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: LONG_SECONDS } });
    const { servers, failed } = await site
      .place("pod-1-3")
      .agent()
      .burst({ ...service.target("clusterIP", "IPv6"), transport: "UDP", count: 40 });
    expect([Object.keys(servers).length, failed]).toEqual([1, {}]);
  });

  it("is kept while other endpoints come and go, and while the proxy restarts", async () => {
    const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: LONG_SECONDS } });
    const before = await Promise.all(ASKERS.map((from) => serverOf(service, "IPv4", from)));
    await service.setEndpoints([...FOUR, "pod-2-3"]);
    expect(await Promise.all(ASKERS.map((from) => serverOf(service, "IPv4", from)))).toEqual(before);
    await Promise.all(site.proxies.map((proxy) => proxy.end("SIGKILL")));
    for (const proxy of site.proxies) proxy.start();
    await site.waitForSync();
    expect(await Promise.all(ASKERS.map((from) => serverOf(service, "IPv4", from)))).toEqual(before);
    const [kept = ""] = before;
    await service.setEndpoints([kept, "pod-2-3"]);
    expect(await serversOf(service, "IPv4", ASKERS[0] ?? "", "clusterIP")).toEqual([kept]);
  });

  it("lets go of an endpoint that goes, without one failure", async () => {
    const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: LONG_SECONDS } });
    const first = await serverOf(service, "IPv6", "pod-1-3");
    await service.setEndpoints(FOUR.filter((name) => name !== first));
    const [second] = await serversOf(service, "IPv6", "pod-1-3", "clusterIP");
    expect(second).not.toBe(first);
    expect(await serversOf(service, "IPv6", "pod-1-3", "externalIP")).toEqual([second]);
  });

  it("is switched on and off while the service lives", async () => {
    const service = await site.services.create({ endpoints: FOUR });
    expect(await serversOf(service, "IPv4", "client1", "nodePort@node2", 80)).toEqual(FOUR);
    await service.change({ affinitySeconds: LONG_SECONDS });
    expect(await serversOf(service, "IPv4", "client1", "nodePort@node2")).toHaveLength(1);
    const { affinitySeconds: _, ...without } = service.manifest;
    await service.replace(without);
    expect(await serversOf(service, "IPv4", "client1", "nodePort@node2", 80)).toEqual(FOUR);
  });

  it.each(["clusterIP", "nodePort@node1"] as const)("ends when a client of %s was silent for the timeout", async (way) => {
    const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: SHORT_SECONDS } });
    const ask = (): Promise<readonly string[]> =>
      Promise.all(ASKERS.map(async (from) => (await site.place(from).agent().attempt(service.target(way, "IPv4"))).server ?? ""));
    const first = await ask();
    // All six pick the same again by chance once in 4^6; twice in a row it is 1 in 10^7.
    await expect
      .poll(async () => {
        await sleep((SHORT_SECONDS + 0.3) * 1_000);
        return await ask();
      })
      .not.toEqual(first);
  });

  it("lasts longer than the timeout for a client that keeps coming", async () => {
    const service = await site.services.create({ endpoints: FOUR, fields: { affinitySeconds: SHORT_SECONDS } });
    const seen = new Set<string>();
    let longestGapMs = 0;
    const startedMs = performance.now();
    for (let lastMs = startedMs; lastMs - startedMs < 3 * SHORT_SECONDS * 1_000;) {
      seen.add((await Promise.all(ASKERS.map((from) => serverOf(service, "IPv4", from)))).join(" "));
      await sleep(200);
      longestGapMs = Math.max(longestGapMs, performance.now() - lastMs);
      lastMs = performance.now();
    }
    // On a machine that stood still for longer than the timeout nothing was shown, and nothing is claimed.
    expect(longestGapMs > SHORT_SECONDS * 900 ? 1 : seen.size).toBe(1);
  });
});
