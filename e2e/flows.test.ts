import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import type { TestService } from "./services.ts";
import { SERVER_PORT } from "./services.ts";
import { HOST_PORT, createSite } from "./site.ts";
import type { Site } from "./site.ts";
import { PATIENCE_MS } from "./witness.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;
const TWO = ["pod-1-1", "pod-2-1"];
const ASKERS = ["pod-1-3", "pod-2-3", "node1", "node2", "client1", "client2"];

/** What the kit's scenarios don't show of flows over real packets. */
describe.each(layoutsOf("UDP flows"))("flows, %s", needs("root", "ip", "nft>=1.0.1", "conntrack"), (layout) => {
  let site: Site;
  let nextPort = 40_000;
  beforeAll(async () => {
    site = await createSite({ layout, clients: 2 });
  });
  afterAll(() => site?.destroy());

  /** A flow to the cluster IP: datagrams from one source port. Says who answers, or what happens instead. */
  const openFlow = (service: TestService): (() => Promise<string>) => {
    const fromPort = (nextPort += 1);
    return async () => {
      const { outcome, server = "" } = await site
        .place("pod-1-3")
        .agent()
        .attempt({ ...service.target("clusterIP", "IPv4"), transport: "UDP", fromPort, timeoutMs: 1_000 });
      return outcome === "ok" ? server : outcome;
    };
  };

  it("of UDP that are others' are left alone", async () => {
    const conntrackIds = async (): Promise<readonly string[]> => {
      const { stdout } = await site.cluster.node("node1").run("conntrack", ["-L", "-p", "udp", "-o", "id"]);
      return stdout.split("\n").flatMap((line) => (/sport=4600[12] /.test(line) ? (/ id=(\d+)/.exec(line)?.[1] ?? []) : []));
    };
    const direct = { address: site.place("pod-2-1").address("IPv4"), port: SERVER_PORT, transport: "UDP" as const, fromPort: 46_001 };
    const toHost = { address: site.place("node1").address("IPv4"), port: HOST_PORT, transport: "UDP" as const, fromPort: 46_002 };
    expect(await site.place("pod-1-3").agent().attempt(direct)).toMatchObject({ outcome: "ok" });
    expect(await site.place("client1").agent().attempt(toHost)).toMatchObject({ outcome: "ok" });
    const before = await conntrackIds();
    expect(before).toHaveLength(2);
    const service = await site.services.create({ endpoints: TWO });
    const flow = openFlow(service);
    const first = await flow();
    const other = TWO.find((one) => one !== first) ?? "";
    await service.setEndpoints([other]);
    await expect.poll(flow).toBe(other);
    expect(await conntrackIds()).toEqual(before);
  });

  it("of UDP are one thing, TCP connections another: those outlive their endpoint in the list", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const agent = site.place("client1").agent();
    const held = await agent.hold({ ...service.target("nodePort@node1", "IPv4"), everyMs: 20 });
    const witness = openFlow(service);
    expect(await witness()).toBe("pod-1-1");
    await service.setEndpoints(["pod-2-1"]);
    await expect.poll(witness).toBe("pod-2-1");
    const { answers } = await agent.holdStatus(held);
    await expect.poll(async () => (await agent.holdStatus(held)).answers).toBeGreaterThan(answers + 3);
    expect(await agent.release(held)).toMatchObject({ state: "open", server: "pod-1-1" });
  });

  it("of affine clients are kept while the proxy is killed and comes back", async () => {
    const service = await site.services.create({ endpoints: [...TWO, "pod-1-2", "pod-2-2"], fields: { affinitySeconds: 600 } });
    const target = service.target("clusterIP", "IPv4");
    const ask = (): Promise<readonly unknown[]> =>
      Promise.all(ASKERS.map(async (from) => (await site.place(from).agent().attempt(target)).server));
    const before = await ask();
    await Promise.all(site.proxies.map((proxy) => proxy.end("SIGKILL")));
    for (const proxy of site.proxies) proxy.start();
    await site.waitForSync();
    expect(before).not.toContain(undefined);
    expect(await ask()).toEqual(before);
  });

  it.each(FAMILIES)("over %s are a third for each of three endpoints, this node's own or not", async (family) => {
    const three = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1", "pod-2-2"] });
    const target = three.target("clusterIP", family);
    const tally = await site
      .place("pod-1-3")
      .agent()
      .burst({ ...target, transport: "TCP", timeoutMs: PATIENCE_MS, count: 2_400, concurrency: 8 });
    expect(tally.failed).toEqual({});
    // 800 each with a deviation of 23: 690 is missed by chance in one of 100,000 runs. Without a second draw (ADR 0010) the third gets 600.
    expect(Object.keys(tally.servers).toSorted()).toEqual(["pod-1-1", "pod-2-1", "pod-2-2"]);
    expect(Math.min(...Object.values(tally.servers))).toBeGreaterThanOrEqual(690);
  });
});
