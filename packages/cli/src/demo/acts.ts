import type { IPFamily } from "@turnout/core";
import type { TargetRequest } from "@turnout/lab";
import type { RefusedFinding, SourceFinding, SpreadFinding, AffinityFinding } from "./findings.ts";
import { addressOf, NODE_PORT, portOf, SHOP, type ShopService, type Way } from "./shop.ts";
import type { Stage } from "./stage.ts";
import { REFUSAL_MS } from "./waiting.ts";

const SPREAD_REQUESTS = 300;
const SOURCE_REQUESTS = 40;
const AFFINITY_REQUESTS = 40;

function targetOf(service: ShopService, way: Way, family: IPFamily): TargetRequest {
  return { address: addressOf(service, way, family), port: portOf(service), transport: service.protocol };
}

/** Run one finding after another over both families. */
async function inEachFamily<T>(stage: Stage, find: (family: IPFamily) => Promise<readonly T[]>): Promise<readonly T[]> {
  const all: T[] = [];
  for (const family of stage.families) all.push(...(await find(family)));
  return all;
}

/** Send many requests and see who answers. */
export function seeSpread(stage: Stage): Promise<readonly SpreadFinding[]> {
  const views: readonly (readonly [from: string, service: ShopService, way: Way])[] = [
    ["client1", SHOP.frontend, "loadBalancerIP"],
    ["pod-2-4", SHOP.cart, "clusterIP"],
    ["pod-1-4", SHOP.dns, "clusterIP"],
  ];
  return inEachFamily(stage, async (family) => {
    const findings: SpreadFinding[] = [];
    for (const [from, service, way] of views) {
      const tally = await stage.cluster
        .place(from)
        .agent()
        .burst({ ...targetOf(service, way, family), count: SPREAD_REQUESTS });
      const expected = service.replicas.slice(0, service.startWith).map(({ name }) => name);
      findings.push({ service: service.manifest.name, from, family, expected, tally });
    }
    return findings;
  });
}

/** Who asks whom, whose address should be seen, and the reason in a newcomer's words. */
interface SourceView {
  readonly from: string;
  readonly to: string;
  readonly request: (family: IPFamily) => TargetRequest;
  readonly expected: readonly string[];
  readonly why: string;
}

function sourceViews(stage: Stage): readonly SourceView[] {
  const at = (service: ShopService, way: Way) => (family: IPFamily) => targetOf(service, way, family);
  return [
    {
      from: "client1",
      to: "frontend, load balancer",
      request: at(SHOP.frontend, "loadBalancerIP"),
      expected: ["node1"],
      why: "masqueraded: the pod may be on another node, and its answer must come back this way",
    },
    {
      from: "client1",
      to: `frontend, node2's port ${NODE_PORT}`,
      request: (family) => ({ address: stage.cluster.node("node2").address(family), port: NODE_PORT }),
      expected: ["node2"],
      why: "the same, through the other node",
    },
    {
      from: "client1",
      to: "payments, load balancer",
      request: at(SHOP.payments, "loadBalancerIP"),
      expected: ["client1"],
      why: "kept: externalTrafficPolicy Local stays on the node that was asked",
    },
    {
      from: "pod-1-4",
      to: "cart, cluster IP",
      request: at(SHOP.cart, "clusterIP"),
      expected: ["pod-1-4"],
      why: "kept: pods reach each other directly",
    },
    {
      from: "pod-1-2",
      to: "cart, itself one of its pods",
      request: at(SHOP.cart, "clusterIP"),
      expected: ["node1", "pod-1-2"],
      why: "kept, but masqueraded when it reaches itself: else the answer would not pass the node",
    },
  ];
}

/** Ask from various places and see whose address the servers saw. */
export function seeSources(stage: Stage): Promise<readonly SourceFinding[]> {
  return inEachFamily(stage, async (family) => {
    const findings: SourceFinding[] = [];
    for (const { from, to, request, expected, why } of sourceViews(stage)) {
      const { clients } = await stage.cluster
        .place(from)
        .agent()
        .burst({ ...request(family), count: SOURCE_REQUESTS });
      const seen = Object.keys(clients).map(stage.nameOf).toSorted();
      findings.push({ from, to, family, expected, seen, why });
    }
    return findings;
  });
}

/** See whether clients of a service with session affinity keep their server. */
export function seeAffinity(stage: Stage): Promise<readonly AffinityFinding[]> {
  return inEachFamily(
    stage,
    async (family) =>
      await Promise.all(
        ["pod-1-4", "pod-2-4", "node2"].map(async (from): Promise<AffinityFinding> => {
          const agent = stage.cluster.place(from).agent();
          const request = targetOf(SHOP.checkout, "clusterIP", family);
          // The first request decides; several at once would each be a first one.
          await agent.attempt(request);
          return { from, family, tally: await agent.burst({ ...request, count: AFFINITY_REQUESTS }) };
        }),
      ),
  );
}

/** Ask a service that nobody serves. */
export function seeRefusal(stage: Stage): Promise<readonly RefusedFinding[]> {
  return inEachFamily(stage, async (family) => {
    const request = { ...targetOf(SHOP.search, "clusterIP", family), timeoutMs: REFUSAL_MS };
    const { outcome } = await stage.cluster.place("pod-1-4").agent().attempt(request);
    return [{ family, outcome }];
  });
}
