import { readFileSync } from "node:fs";
import { ebpfModule } from "@turnout/backend-ebpf";
import { nftModule } from "@turnout/backend-nft";
import { service, slices, STAGE_SETTINGS } from "@turnout/conformance";
import type { RawObject } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { parseAllDocuments } from "yaml";
import { explainFlows, explainHealth, explainPackets } from "./compare.ts";
import type { Compared, Explanation } from "./compare.ts";
import { PERMITTED_FLOWS, PERMITTED_HEALTH, PERMITTED_PACKETS } from "./permitted.ts";
import { CLIENTS, questionsOf, writesBetween } from "./questions.ts";
import type { Question } from "./questions.ts";
import { worldText } from "./report.ts";
import { minimise } from "./smaller.ts";
import { HELD_BALANCER, nameOf, setupOf, worldOf } from "./world.ts";
import type { World } from "./world.ts";

const NFT: Compared = { backend: nftModule, mode: nftModule, settings: STAGE_SETTINGS };
const EBPF: Compared = { ...NFT, backend: ebpfModule };
const WORLDS = Array.from({ length: 300 }, (_, seed) => worldOf(seed));

const shop = service("shop", { number: 1, ways: ["externalIP"] });
const SHOP = [shop, ...slices("shop", ["pod-1-1", "pod-2-1"])];
const ASKED: Question = { from: "client1", family: "IPv4", protocol: "UDP", address: "198.51.100.1", port: 80 };
const RIGHT = ["pod-1-1:8080 saw node1", "pod-2-1:8080 saw node1"];

describe("worlds", () => {
  it("are the same again for the same seed, and have what an API server accepts", () => {
    expect(worldOf(7)).toEqual(WORLDS[7]);
    for (const objects of WORLDS.flatMap(({ phases }) => phases)) {
      const specs = objects.filter(({ kind }) => kind === "Service").map((object) => object["spec"] as ServiceSpec);
      const clusterIPs = specs.flatMap((spec) => spec.clusterIPs);
      expect(new Set(clusterIPs).size).toBe(clusterIPs.length);
      const nodePorts = specs.flatMap((spec) => [...new Set(spec.ports.flatMap(({ nodePort = [] }) => nodePort))]);
      expect(new Set(nodePorts).size).toBe(nodePorts.length);
      expect(new Set(objects.map((object) => JSON.stringify(nameOf(object)))).size).toBe(objects.length);
    }
  });

  it.each([
    ["traffic policies", '"internalTrafficPolicy":"Local"', '"externalTrafficPolicy":"Local"'],
    ["affinity, ranges and health checks", '"ClientIP"', '"loadBalancerSourceRanges"', '"healthCheckNodePort"'],
    ["endpoints that end, and that are not ready", '"terminating":true', '"ready":false}', '"serving":true,"terminating":true'],
    ["hints and trigger times", '"forZones"', '"forNodes"', "last-change-trigger-time"],
    ["one family and two", '"SingleStack"', '"RequireDualStack"', '"ipMode":"Proxy"'],
  ])("have %s", (_name, ...texts) => {
    const all = JSON.stringify(WORLDS);
    for (const text of texts) expect(all).toContain(text);
  });

  it("change from one phase to the next, mostly a little", () => {
    const steps = WORLDS.map(({ phases: [first = [], second = []] }) => writesBetween(first, second));
    expect(steps.filter((writes) => writes.length === 0).length).toBeLessThan(WORLDS.length / 10);
    expect(steps.some((writes) => writes.some((write) => "remove" in write && write.remove.kind === "Service"))).toBe(true);
  });

  it("change in an order in which an endpoint that moves from slice to slice is never away, and a cluster IP is one Service's", () => {
    const [one = {}, other = {}] = [slices("shop", ["pod-1-1"], "1"), slices("shop", ["pod-1-1"], "2")].map(([first]) => first);
    const empty = { ...one, endpoints: [] };
    const next = service("next", { number: 1 });
    expect(writesBetween([shop, one], [empty, other, next])).toEqual([
      { remove: nameOf(shop) },
      { put: next },
      { put: other },
      { put: empty },
    ]);
    expect(writesBetween([shop, one], [shop, other])).toEqual([{ put: other }, { remove: nameOf(one) }]);
  });

  it("share a configuration with their neighbours, and not with all", () => {
    const setups = Array.from({ length: 400 }, (_, seed) => JSON.stringify(setupOf(seed)));
    expect(new Set(setups.slice(0, 20)).size).toBe(1);
    expect(new Set(setups).size).toBeGreaterThan(5);
  });
});

interface ServiceSpec {
  readonly clusterIPs: readonly string[];
  readonly ports: readonly { readonly nodePort?: number }[];
}

describe("questions", () => {
  it("are asked by every client in both families, of addresses that no Service has, too", () => {
    const questions = questionsOf(SHOP, 1, 1_000);
    expect(new Set(questions.map(({ from }) => from))).toEqual(new Set(CLIENTS));
    expect(new Set(questions.map(({ family }) => family)).size).toBe(2);
    expect(questions).toContainEqual(ASKED);
    expect(questions.map(({ address }) => address)).toContain("10.96.0.99");
    expect(questionsOf(SHOP, 1, 10)).toEqual(questions.slice(0, 10));
  });
});

describe("a difference in packets", () => {
  it("is not permitted where Turnout is not what the rules say, whatever kube-proxy does", () => {
    const twice = [...SHOP, service("other", { number: 1, ways: ["externalIP"], created: "2025-01-01T00:00:00Z" })];
    const answers = { turnout: ["dropped"], kubeProxy: RIGHT };
    for (const objects of [SHOP, twice]) expect(explainPackets(NFT, objects, ASKED, answers)).toBeUndefined();
  });

  it("is not permitted where the rules name no reason", () => {
    for (const kubeProxy of [["refused"], ["pod-1-1:8080 saw node1"], ["pod-1-1:8080 saw client1", "pod-2-1:8080 saw client1"]])
      expect(explainPackets(NFT, SHOP, ASKED, { turnout: RIGHT, kubeProxy })).toBeUndefined();
  });

  it("is permitted where a declared variant makes it, for that backend only", () => {
    const asked: Question = { ...ASKED, address: "10.96.0.1", port: 82 };
    const answers = { turnout: ["untouched saw client1"], kubeProxy: ["refused"] };
    expect(explainPackets(EBPF, SHOP, asked, answers)).toEqual({ variants: ["undefinedClusterIPPort"] });
    expect(explainPackets(NFT, SHOP, asked, answers)).toBeUndefined();
    expect(explainPackets(EBPF, SHOP, asked, { ...answers, kubeProxy: ["dropped"] })).toBeUndefined();
  });

  it("is not permitted where packets should be left as they are, and one proxy refuses them", () => {
    const asked: Question = { ...ASKED, port: 82 };
    const answers = { turnout: ["untouched saw client1"], kubeProxy: ["refused"] };
    for (const compared of [NFT, EBPF]) expect(explainPackets(compared, SHOP, asked, answers)).toBeUndefined();
  });

  it("is chance where affinity chooses the endpoint, as long as it is one of them", () => {
    const spec = { ...(shop["spec"] as RawObject), sessionAffinity: "ClientIP" };
    const affine = [{ ...shop, spec }, ...SHOP.slice(1)];
    const [one = "", other = ""] = RIGHT;
    expect(explainPackets(NFT, affine, ASKED, { turnout: [one], kubeProxy: [other] })).toEqual({ chance: "R-46" });
    expect(explainPackets(NFT, SHOP, ASKED, { turnout: [one], kubeProxy: [other] })).toBeUndefined();
    expect(explainPackets(NFT, affine, ASKED, { turnout: [one], kubeProxy: ["pod-2-2:8080 saw node1"] })).toBeUndefined();
  });

  it("is permitted by the rule for two entries of one address, in health checks, too", () => {
    const health = { ...(shop["spec"] as RawObject), healthCheckNodePort: 32_001 };
    const twice = [{ ...shop, spec: health }, ...SHOP.slice(1), ...slices("shop", [{ on: "pod-2-1", ready: false }], "2")];
    expect(explainPackets(NFT, twice, ASKED, { turnout: RIGHT, kubeProxy: RIGHT.slice(0, 1) })).toEqual({ rule: "R-15" });
    const question = { family: "IPv4", address: "172.18.0.1", port: 32_001 } as const;
    const answers = { question, turnout: ["200 1 {}"], kubeProxy: ["503 0 {}"] };
    expect(explainHealth({ objects: twice, ...answers })).toEqual({ rule: "R-15" });
    expect(explainHealth({ objects: SHOP, ...answers })).toBeUndefined();
  });
});

it("a health check node port may answer on a load-balancer IP of the Service that the host has, and nowhere else", () => {
  const spec = { ...(shop["spec"] as RawObject), healthCheckNodePort: 32_001 };
  const objects = [{ ...shop, spec, status: { loadBalancer: { ingress: [{ ip: HELD_BALANCER.IPv4 }] } } }];
  const at = (address: string): Explanation =>
    explainHealth({
      objects,
      question: { family: "IPv4", address, port: 32_001 },
      turnout: ["200 1 {}"],
      kubeProxy: ["refused"],
    });
  expect(at(HELD_BALANCER.IPv4)).toEqual({ rule: "R-51" });
  expect(at("192.0.2.1")).toBeUndefined();
});

describe("a difference in kept flows", () => {
  const server = { question: ASKED, server: "pod-1-1:8080" };

  it("is permitted where the Service is gone and kube-proxy keeps its flows", () => {
    const gone = { before: SHOP, after: [] };
    expect(explainFlows(NFT, gone, server, { turnout: ["forgotten"], kubeProxy: ["kept"] })).toEqual({ rule: "R-44" });
    expect(explainFlows(NFT, gone, server, { turnout: ["kept"], kubeProxy: ["forgotten"] })).toBeUndefined();
  });

  it("is permitted where a load-balancer IP passes to the load balancer", () => {
    const [vip, proxied] = (["VIP", "Proxy"] as const).map((ipMode) => service("shop", { number: 1, ways: ["loadBalancerIP"], ipMode }));
    const change = { before: [...SHOP.slice(1), vip ?? {}], after: [...SHOP.slice(1), proxied ?? {}] };
    const balanced = { ...server, question: { ...ASKED, address: "198.51.100.101" } };
    expect(explainFlows(NFT, change, balanced, { turnout: ["forgotten"], kubeProxy: ["kept"] })).toEqual({ rule: "R-44" });
  });

  it("is not permitted where the endpoint still serves, nor for TCP", () => {
    const still = { before: SHOP, after: [shop, ...slices("shop", ["pod-1-1"])] };
    const fates = { turnout: ["forgotten"], kubeProxy: ["kept"] } as const;
    expect(explainFlows(NFT, still, server, fates)).toBeUndefined();
    const question: Question = { ...ASKED, protocol: "TCP" };
    expect(explainFlows(NFT, { before: SHOP, after: [] }, { ...server, question }, fates)).toBeUndefined();
  });

  it("is permitted where another Service took over, not where the same one has other endpoints", () => {
    const fates = { turnout: ["forgotten"], kubeProxy: ["kept"] } as const;
    const taken = { before: SHOP, after: [service("other", { number: 1, ways: ["externalIP"] })] };
    expect(explainFlows(NFT, taken, server, fates)).toEqual({ rule: "R-43" });
    expect(explainFlows(NFT, { before: SHOP, after: [shop, ...slices("shop", ["pod-2-1"])] }, server, fates)).toBeUndefined();
  });

  it("is permitted where a Service has no endpoint of the family left", () => {
    const fates = { turnout: ["forgotten"], kubeProxy: ["kept"] } as const;
    const after = SHOP.filter((object) => object["addressType"] !== "IPv4");
    expect(explainFlows(NFT, { before: SHOP, after }, server, fates)).toEqual({ rule: "R-43" });
  });
});

it("every permitted difference names a rule of docs/rules.md", () => {
  const rules = readFileSync(new URL("../../docs/rules.md", import.meta.url), "utf8");
  const named = [...PERMITTED_PACKETS, ...PERMITTED_FLOWS, ...PERMITTED_HEALTH].map(({ rule }) => rule);
  expect(named.length).toBeGreaterThan(5);
  for (const rule of named) expect(rules).toContain(`- **${rule}** `);
});

describe("a world that differs", () => {
  const isLocal = (objects: readonly RawObject[] | undefined): boolean =>
    objects?.some((object) => nameOf(object).name === "s2" && JSON.stringify(object).includes('"externalTrafficPolicy":"Local"')) ?? false;
  const differs = (world: World): Promise<boolean> => Promise.resolve(isLocal(world.phases.at(-1)));

  it("is made smaller until nothing can be left out", async () => {
    const large = WORLDS.find(({ phases }) => isLocal(phases[1]));
    const { phases } = await minimise(large ?? { phases: [] }, differs, 2_000);
    expect(phases).toHaveLength(1);
    expect(phases[0]).toMatchObject([{ kind: "Service", metadata: { name: "s2" }, spec: { externalTrafficPolicy: "Local" } }]);
    expect(JSON.stringify(phases).length).toBeLessThan(400);
  });

  it("stays as it is when the tries are used up", async () => {
    const world = WORLDS[0] as World;
    expect(await minimise(world, () => Promise.resolve(true), 0)).toBe(world);
  });

  it("is printed as manifests, with the answers and what the rules say", () => {
    const difference = {
      phase: 0,
      about: "client1 → …",
      turnout: ["refused"],
      kubeProxy: RIGHT,
      explanation: undefined,
      again: { question: ASKED },
    };
    const text = worldText({ phases: [SHOP] }, difference, NFT);
    expect(text).toContain("Turnout refused; kube-proxy pod-1-1:8080 saw node1");
    expect(text).toContain("docs/rules.md: pod-1-1:8080 saw node1, pod-2-1:8080 saw node1 (R-28");
    const objects = parseAllDocuments(text).map((document) => document.toJS() as unknown);
    expect(objects.filter((object) => object !== null)).toEqual(SHOP);
  });
});
