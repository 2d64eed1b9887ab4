import { needs } from "@turnout/house/needs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { layoutsOf } from "./layout.ts";
import { reachAll } from "./reach.ts";
import type { TestService } from "./services.ts";
import { createSite } from "./site.ts";
import type { Site } from "./site.ts";
import { PATIENCE_MS } from "./witness.ts";

const FAMILIES = ["IPv4", "IPv6"] as const;

describe.each(layoutsOf("spread"))("a service with endpoints on two nodes, %s", needs("root", "ip", "nft>=1.0.1"), (layout) => {
  let site: Site;
  let service: TestService;
  beforeAll(async () => {
    site = await createSite({ layout });
    service = await site.services.create({ endpoints: ["pod-1-1", "pod-1-2", "pod-2-1", "pod-2-2"] });
  });
  afterAll(() => site?.destroy());

  it.each(FAMILIES)("answers over %s with all of them, whoever asks, however", async (family) => {
    const all = "pod-1-1 pod-1-2 pod-2-1 pod-2-2";
    const expected = {
      "pod-1-3 clusterIP": `${all} saw pod-1-3`,
      "pod-1-3 clusterIP UDP": `${all} saw pod-1-3`,
      "pod-2-3 clusterIP": `${all} saw pod-2-3`,
      "node1 clusterIP": `${all} saw node1`,
      "client1 nodePort@node2 UDP": `${all} saw node2`,
      "client1 externalIP": `${all} saw node1`,
      "client1 loadBalancerIP": `${all} saw node1`,
    };
    expect(await reachAll(site, service, family, expected)).toEqual(expected);
  });

  it.each(FAMILIES)("sends each of three over %s a third, this node's own or not", async (family) => {
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
