import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { startLoad } from "./load.ts";
import type { LoadSource } from "./load.ts";
import { reach } from "./reach.ts";
import type { EndpointFixture, TestService } from "./services.ts";
import { CLUSTER_CIDR, createSite, HTTP_PORT } from "./site.ts";
import type { Site } from "./site.ts";

/** Seconds of affinity that the tool refuses, see {@link REFUSING_NFT}. */
const REFUSED_SECONDS = 1_234;
/** nft as it is, but for whatever names that timeout: it comes out as something that nft refuses. Chains of affinity are made by nft, elements alone are not. */
const REFUSING_NFT = `#!/bin/sh
sed -u 's/.*timeout ${REFUSED_SECONDS}s.*/add nonsense/' | nft "$@"
`;
/** Port of the servers that are rolled, next to those that every pod has. */
const ROLLED_PORT = 9_000;

describe.each(layoutsOf("under load"))("under load, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  beforeAll(async () => {
    site = await createSite({ layout });
  });
  afterAll(() => site?.destroy());

  const sourcesOf = (service: TestService, http?: TestService): readonly LoadSource[] => [
    { from: "pod-1-3", way: "clusterIP", service },
    { from: "node1", way: "clusterIP", service },
    { from: "client1", way: "nodePort@node2", service },
    { from: "client1", way: "externalIP", service },
    { from: "pod-2-3", way: "loadBalancerIP", service },
    ...(http === undefined ? [] : [{ from: "pod-2-3", way: "clusterIP" as const, service: http, transport: "HTTP" as const }]),
  ];

  it.each(["Cluster", "Local"] as const)("a rolling update fails no request, external policy %s", async (externalTrafficPolicy) => {
    const serve = (name: string): Promise<void> => site.place(name).agent().serve({ name, transport: "TCP", port: ROLLED_PORT });
    const leaving = (on: string): EndpointFixture => ({ on, ready: false, serving: true, terminating: true });
    const pairs = [
      ["pod-1-1", "pod-1-2"],
      ["pod-2-1", "pod-2-2"],
    ] as const;
    for (const [old] of pairs) await serve(old);
    let endpoints: (string | EndpointFixture)[] = pairs.map(([old]) => old);
    const service = await site.services.create({
      endpoints,
      targetPort: ROLLED_PORT,
      protocols: ["TCP"],
      fields: { externalTrafficPolicy },
    });
    const load = await startLoad(site, sourcesOf(service));
    await load.more(20);
    for (const [old, fresh] of pairs) {
      await serve(fresh);
      endpoints = [...endpoints, fresh];
      await service.setEndpoints(endpoints);
      endpoints = endpoints.map((one) => (one === old ? leaving(old) : one));
      await service.setEndpoints(endpoints);
      await site.place(old).agent().stop({ transport: "TCP", port: ROLLED_PORT, how: "drain" });
      await load.more(20);
      endpoints = endpoints.filter((one) => typeof one === "string");
      await service.setEndpoints(endpoints);
    }
    await load.more(20);
    const { tallies, held } = await load.stop();
    expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
    expect(new Set(tallies.flatMap(({ servers }) => Object.keys(servers)))).toEqual(new Set(pairs.flat()));
    expect(new Set(held)).toEqual(new Set(["open"]));
    for (const [, fresh] of pairs) await site.place(fresh).agent().stop({ transport: "TCP", port: ROLLED_PORT, how: "reset" });
  });

  it.each(["SIGTERM", "SIGKILL"] as const)("the proxy's end by %s and its new start break nothing", async (signal) => {
    const service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"] });
    const http = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"], targetPort: HTTP_PORT, protocols: ["TCP"] });
    const load = await startLoad(site, sourcesOf(service, http));
    await load.more(20);
    const endings = await Promise.all(site.proxies.map((proxy) => proxy.end(signal)));
    expect(endings).toEqual(endings.map(() => (signal === "SIGTERM" ? { code: 0, signal: null } : { code: null, signal })));
    await load.more(40);
    for (const proxy of site.proxies) proxy.start();
    await site.waitForSync();
    await load.more(40);
    const { words, held } = await load.stop();
    expect(words).toEqual([
      "pod-1-1 pod-2-1 saw pod-1-3",
      "pod-1-1 pod-2-1 saw node1",
      "pod-1-1 pod-2-1 saw node2",
      "pod-1-1 pod-2-1 saw node1",
      "pod-1-1 pod-2-1 saw node2",
      "pod-1-1 pod-2-1 saw pod-2-3",
    ]);
    expect(new Set(held)).toEqual(new Set(["open"]));
  });

  it("a restart in which the tool refuses one row fails no request of the others", async () => {
    const folder = await mkdtemp(join(tmpdir(), "turnout-e2e-"));
    try {
      const tool = join(folder, "nft");
      await writeFile(tool, REFUSING_NFT, { mode: 0o755 });
      const service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"] });
      const load = await startLoad(site, sourcesOf(service));
      await load.more(20);
      await Promise.all(site.proxies.map((proxy) => proxy.end("SIGKILL")));
      const refused = await site.services.create({ endpoints: ["pod-1-2"], fields: { affinitySeconds: REFUSED_SECONDS } });
      for (const proxy of site.proxies) proxy.start([...CLUSTER_CIDR, "--backend-option", `nft-path=${tool}`]);
      await site.waitForSync();
      // Rows that work are in force before it is found out which one is refused.
      const saying = (): number => site.proxies.filter((proxy) => proxy.log().includes("row refused by the host, kept as it was")).length;
      await expect.poll(saying).toBe(site.proxies.length);
      await load.more(40);
      await Promise.all(site.proxies.map((proxy) => proxy.end("SIGTERM")));
      for (const proxy of site.proxies) proxy.start(CLUSTER_CIDR);
      await site.waitForSync();
      await load.more(20);
      const { tallies, held } = await load.stop();
      expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
      expect(new Set(held)).toEqual(new Set(["open"]));
      expect(await reach(site, refused, "IPv4", { from: "pod-1-3", way: "clusterIP" })).toBe("pod-1-2 saw pod-1-3");
    } finally {
      await rm(folder, { recursive: true });
    }
  });

  it("what changed while the proxy was away holds once it is back", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const gone = await site.services.create({ endpoints: ["pod-1-1"] });
    await Promise.all(site.proxies.map((proxy) => proxy.end("SIGKILL")));
    await service.setEndpoints(["pod-2-1"]);
    await gone.remove();
    const ask = (one: TestService): Promise<string> => reach(site, one, "IPv4", { from: "pod-1-3", way: "clusterIP" });
    expect([await ask(service), await ask(gone)]).toEqual(["pod-1-1 saw pod-1-3", "pod-1-1 saw pod-1-3"]);
    for (const proxy of site.proxies) proxy.start();
    await site.waitForSync();
    expect([await ask(service), await ask(gone)]).toEqual(["pod-2-1 saw pod-1-3", "timeout"]);
  });
});
