import type { IPFamily } from "@turnout/core";
import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import type { TestService, Way } from "./services.ts";
import { HOST_PORT, createSite } from "./site.ts";
import type { Site } from "./site.ts";
import { SERVER_PORT } from "./services.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;

/** Every server goes on answering throughout, so a flow that is not moved shows as an answer from the wrong one. */
describe.each(layoutsOf("UDP flows"))("UDP flows, %s", needs("root", "ip", "nft>=1.0.1", "conntrack"), (layout) => {
  let site: Site;
  let nextPort = 40_000;
  beforeAll(async () => {
    site = await createSite({ layout });
  });
  afterAll(() => site?.destroy());

  /** A flow: datagrams from one source port. Says who answers, or what happens instead. */
  const openFlow = (service: TestService, from: string, way: Way, family: IPFamily): (() => Promise<string>) => {
    const fromPort = (nextPort += 1);
    return async () => {
      const { outcome, server = "" } = await site
        .place(from)
        .agent()
        .attempt({ ...service.target(way, family), transport: "UDP", fromPort, timeoutMs: 1_000 });
      return outcome === "ok" ? server : outcome;
    };
  };
  const often = async (flow: () => Promise<string>): Promise<readonly string[]> => {
    const seen = new Set<string>();
    for (let count = 0; count < 8; count += 1) seen.add(await flow());
    return [...seen];
  };
  const TWO = ["pod-1-1", "pod-2-1"];
  const otherOf = (name: string | undefined): string => TWO.find((one) => one !== name) ?? "";

  const ways = (
    ["pod-1-3 clusterIP", "node1 clusterIP", "client1 nodePort@node1", "client1 externalIP", "client1 loadBalancerIP"] as const
  ).flatMap((key) => FAMILIES.map((family) => [key, family] as const));
  it.each(ways)("move to an endpoint that is left when theirs goes: %s, %s", async (key, family) => {
    const [from = "", way] = key.split(" ");
    const service = await site.services.create({ endpoints: TWO });
    const flow = openFlow(service, from, way as Way, family);
    const before = await often(flow);
    expect(before).toHaveLength(1);
    await service.setEndpoints([otherOf(before[0])]);
    await expect.poll(flow).toBe(otherOf(before[0]));
  });

  it("stay where they are when other endpoints come and go", async () => {
    const service = await site.services.create({ endpoints: TWO });
    const flows = Array.from({ length: 16 }, () => openFlow(service, "pod-1-3", "clusterIP", "IPv4"));
    const before = await Promise.all(flows.map((flow) => flow()));
    expect(before.toSorted()[0]).toBe("pod-1-1");
    await service.setEndpoints(["pod-1-1", "pod-1-2", "pod-2-2"]);
    const leavers = flows.filter((_, index) => before[index] !== "pod-1-1");
    await expect.poll(async () => (await Promise.all(leavers.map((flow) => flow()))).includes("pod-2-1")).toBe(false);
    const stayers = flows.filter((_, index) => before[index] === "pod-1-1");
    expect(new Set(await Promise.all(stayers.map((flow) => flow())))).toEqual(new Set(["pod-1-1"]));
  });

  it("stay with an endpoint that is terminating and still serves", async () => {
    const service = await site.services.create({ endpoints: TWO });
    const leavingFlow = openFlow(service, "pod-1-3", "clusterIP", "IPv4");
    const first = await leavingFlow();
    // A second flow, on an endpoint that goes for good in the same change, shows when old flows have been forgotten.
    const witness = await site.services.create({ endpoints: ["pod-1-1"] });
    const witnessFlow = openFlow(witness, "pod-1-3", "clusterIP", "IPv4");
    expect(await witnessFlow()).toBe("pod-1-1");
    await service.setEndpoints([{ on: first, ready: false, serving: true, terminating: true }, otherOf(first)]);
    await witness.setEndpoints(["pod-2-2"]);
    await expect.poll(witnessFlow).toBe("pod-2-2");
    expect(await often(leavingFlow)).toEqual([first]);
  });

  it.each(FAMILIES)("are refused over %s when the last endpoint goes, and come back with the next", async (family) => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const inside = openFlow(service, "pod-1-3", "clusterIP", family);
    const outside = openFlow(service, "client1", "nodePort@node1", family);
    expect([await inside(), await outside()]).toEqual(["pod-1-1", "pod-1-1"]);
    await service.setEndpoints([]);
    await expect.poll(inside).toBe("refused");
    await expect.poll(outside).toBe("refused");
    await service.setEndpoints(["pod-2-2"]);
    await expect.poll(inside).toBe("pod-2-2");
    await expect.poll(outside).toBe("pod-2-2");
  });

  it.each(FAMILIES)("end over %s when the service is deleted, and work when it is made again", async (family) => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const flow = openFlow(service, "pod-1-3", "clusterIP", family);
    expect(await flow()).toBe("pod-1-1");
    await service.remove();
    await expect.poll(flow).toBe("timeout");
    await service.setEndpoints(["pod-2-1"]);
    await service.replace(service.manifest);
    await expect.poll(flow).toBe("pod-2-1");
  });

  it.each(FAMILIES)("that began before there was a service are taken up by it over %s", async (family) => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const [first = { port: 0 }, ...rest] = service.manifest.ports;
    const closed = service.manifest.ports.map((port) => ({ ...port, nodePort: 0 }));
    const flow = openFlow(service, "client1", "nodePort@node1", family);
    const { manifest } = service;
    await service.replace({ ...manifest, ports: closed, type: "LoadBalancer" });
    const early = { ...openTarget(first.nodePort, family), transport: "UDP" as const, fromPort: nextPort };
    expect(await site.place("client1").agent().attempt(early)).toMatchObject({ outcome: "refused" });
    await service.replace({ ...manifest, ports: [first, ...rest] });
    await expect.poll(flow).toBe("pod-1-1");
  });
  const openTarget = (nodePort: number | undefined, family: IPFamily): { address: string; port: number } => ({
    address: site.place("node1").address(family),
    port: nodePort ?? 0,
  });

  it("of others are left alone", async () => {
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
    const flow = openFlow(service, "pod-1-3", "clusterIP", "IPv4");
    const first = await flow();
    await service.setEndpoints([otherOf(first)]);
    await expect.poll(flow).toBe(otherOf(first));
    expect(await conntrackIds()).toEqual(before);
  });

  it("are one thing, TCP connections another: those outlive their endpoint in the list", async () => {
    const service = await site.services.create({ endpoints: ["pod-1-1"] });
    const agent = site.place("client1").agent();
    const held = await agent.hold({ ...service.target("nodePort@node1", "IPv4"), everyMs: 20 });
    const witness = openFlow(service, "pod-1-3", "clusterIP", "IPv4");
    expect(await witness()).toBe("pod-1-1");
    await service.setEndpoints(["pod-2-1"]);
    await expect.poll(witness).toBe("pod-2-1");
    const { answers } = await agent.holdStatus(held);
    await expect.poll(async () => (await agent.holdStatus(held)).answers).toBeGreaterThan(answers + 3);
    expect(await agent.release(held)).toMatchObject({ state: "open", server: "pod-1-1" });
  });
});
