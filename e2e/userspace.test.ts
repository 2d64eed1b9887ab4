import type { IPFamily } from "@turnout/core";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { startLoad } from "./load.ts";
import { reach, reachAll } from "./reach.ts";
import type { EndpointFixture } from "./services.ts";
import { CLUSTER_CIDR, createSite } from "./site.ts";
import type { Site } from "./site.ts";

const FAMILIES: readonly IPFamily[] = ["IPv4", "IPv6"];
/** Port of the servers that are rolled, next to those that every pod has. */
const ROLLED_PORT = 9_000;

/** The dataplane is the process: addresses on turnout0, sockets on them, and connections of its own to endpoints. */
describe.each(layoutsOf("the userspace backend"))("the userspace backend, %s", needs("root", "ip"), (layout) => {
  let site: Site;
  beforeAll(async () => {
    site = await createSite({ layout, flags: [...CLUSTER_CIDR, "--backend", "userspace"] });
  });
  afterAll(() => site?.destroy());

  // Polled: sockets are opened one after the other, so the barrier's may answer before another of the same sync.

  it.each(FAMILIES)("answers in every way over %s, TCP and UDP", async (family) => {
    const service = await site.services.create({ endpoints: ["pod-1-1", "pod-2-1"] });
    const both = (node: string): string => `pod-1-1 pod-2-1 saw ${node}`;
    const expected = {
      "pod-1-3 clusterIP": both("node1"),
      "pod-1-1 clusterIP": both("node1"),
      "node2 clusterIP UDP": both("node2"),
      "client1 nodePort@node1": both("node1"),
      "client1 nodePort@node2 UDP": both("node2"),
      "client1 externalIP UDP": both("node1"),
      "pod-2-3 loadBalancerIP": both("node2"),
    };
    await expect.poll(() => reachAll(site, service, family, expected)).toEqual(expected);
  });

  it.each(FAMILIES)("keeps to the policies over %s", async (family) => {
    const service = await site.services.create({
      endpoints: ["pod-1-1", "pod-2-1"],
      fields: { externalTrafficPolicy: "Local", internalTrafficPolicy: "Local", sourceRanges: ["10.1.0.0/16", "fd00:1::/32"] },
    });
    const expected = {
      "pod-1-3 clusterIP": "pod-1-1 saw node1",
      "client1 nodePort@node1": "pod-1-1 saw node1",
      "client1 nodePort@node2": "pod-2-1 saw node2",
      "pod-1-3 externalIP": "pod-1-1 pod-2-1 saw node1",
      "pod-1-3 loadBalancerIP": "pod-1-1 pod-2-1 saw node1",
      "client1 loadBalancerIP": "reset",
      "client1 loadBalancerIP UDP": "timeout",
    };
    await expect.poll(() => reachAll(site, service, family, expected)).toEqual(expected);
    await service.setEndpoints([]);
    const refused = { "pod-1-3 clusterIP": "reset", "pod-1-3 clusterIP UDP": "refused", "client1 nodePort@node1 UDP": "refused" };
    await expect.poll(() => reachAll(site, service, family, refused)).toEqual(refused);
    await service.setEndpoints(["pod-2-2"]);
    const elsewhere = { "client1 nodePort@node1": "reset", "pod-1-3 externalIP": "pod-2-2 saw node1" };
    await expect.poll(() => reachAll(site, service, family, elsewhere)).toEqual(elsewhere);
  });

  it("moves UDP clients when their endpoint goes, and gives addresses back", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const flow = async (): Promise<string> => {
      const { outcome, server = "" } = await site
        .place("pod-1-3")
        .agent()
        .attempt({ ...service.target("clusterIP", "IPv4"), transport: "UDP", fromPort: 41_000 });
      return outcome === "ok" ? server : outcome;
    };
    expect(await flow()).toBe("pod-1-1");
    await service.setEndpoints(["pod-2-1"]);
    await expect.poll(flow).toBe("pod-2-1");
    const { address } = service.target("externalIP", "IPv6");
    const onDevice = async (): Promise<boolean> =>
      (await site.place("node1").run("ip", ["-6", "address", "show", "dev", "turnout0"])).stdout.includes(`${address}/128`);
    expect(await onDevice()).toBe(true);
    await service.remove();
    await expect.poll(onDevice).toBe(false);
  });

  it("fails no request and cuts no connection while endpoints are rolled", async () => {
    const serve = (name: string): Promise<void> => site.place(name).agent().serve({ name, transport: "TCP", port: ROLLED_PORT });
    const leaving = (on: string): EndpointFixture => ({ on, ready: false, serving: true, terminating: true });
    const pairs = [
      ["pod-1-1", "pod-1-2"],
      ["pod-2-1", "pod-2-2"],
    ] as const;
    for (const [old] of pairs) await serve(old);
    let endpoints: (string | EndpointFixture)[] = pairs.map(([old]) => old);
    const service = await site.services.create({ endpoints, targetPort: ROLLED_PORT, protocols: ["TCP"] });
    const load = await startLoad(site, [
      { from: "pod-1-3", way: "clusterIP", service },
      { from: "client1", way: "nodePort@node2", service },
      { from: "client1", way: "externalIP", service },
    ]);
    await load.more(20);
    for (const [old, fresh] of pairs) {
      await serve(fresh);
      await service.setEndpoints([...endpoints, fresh]);
      endpoints = [...endpoints.filter((one) => one !== old), fresh];
      await service.setEndpoints([...endpoints, leaving(old)]);
      await site.place(old).agent().stop({ transport: "TCP", port: ROLLED_PORT, how: "drain" });
      await load.more(20);
      await service.setEndpoints(endpoints);
    }
    await load.more(20);
    const { tallies, held } = await load.stop();
    expect(tallies.map(({ failed }) => failed)).toEqual(tallies.map(() => ({})));
    expect(new Set(tallies.flatMap(({ servers }) => Object.keys(servers)))).toEqual(new Set(pairs.flat()));
    expect(new Set(held)).toEqual(new Set(["open"]));
  });

  it("leaves nothing behind when it ends, and starts again", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const proxy = site.proxy("node1");
    const devices = async (): Promise<string> => (await site.place("node1").run("ip", ["-o", "link"])).stdout;
    expect(await devices()).toContain("turnout0");
    expect(await proxy.end("SIGTERM")).toEqual({ code: 0, signal: null });
    expect(await devices()).not.toContain("turnout0");
    expect(proxy.log()).toContain("nothing is answered any more");
    proxy.start();
    await site.waitForSync();
    await proxy.end("SIGKILL");
    expect(await devices()).toContain("turnout0");
    proxy.start();
    await site.waitForSync();
    expect(await reach(site, service, "IPv4", { from: "pod-1-3", way: "clusterIP" })).toBe("pod-1-1 saw node1");
  });
});
