import { describe, expect, it, test } from "vitest";
import { sumOfMetric } from "./changes.ts";
import type { Findings } from "./findings.ts";
import { hintsText } from "./hints.ts";
import { painter, reportText, wantsColors } from "./report-text.ts";
import { countText, durationText, medianAndWorst, reportOf } from "./report.ts";
import { addressOf, SHOP } from "./shop.ts";
import { GOOD, tallyOf } from "../test-support/demo-findings.ts";
import { failuresOf } from "./verdict.ts";
import { KNOWN_BACKENDS } from "../registry.ts";

const plain = painter(false);

describe("the verdict", () => {
  it("finds nothing wrong when all went well; a late answer on a kept connection is no failure", () => {
    expect(failuresOf(GOOD)).toEqual([]);
  });

  const [spread] = GOOD.spread as [Findings["spread"][number]];
  const [flow] = GOOD.flows as [Findings["flows"][number]];
  const [held] = GOOD.held as [Findings["held"][number]];
  const cases: readonly (readonly [name: string, broken: Partial<Findings>, failure: string])[] = [
    [
      "a pod without requests",
      { spread: [{ ...spread, tally: tallyOf({ "cart-1": 300 }) }] },
      "pod-2-4 → cart, IPv4: no request reached cart-2",
    ],
    [
      "an answer by a stranger",
      { spread: [{ ...spread, tally: tallyOf({ "cart-1": 1, "cart-2": 1, "dns-1": 1 }) }] },
      "pod-2-4 → cart, IPv4: answered by dns-1, which should not serve it",
    ],
    [
      "a request that was reset",
      { spread: [{ ...spread, tally: tallyOf({ "cart-1": 1, "cart-2": 1 }, { attempts: 3, failed: { reset: 1 } }) }] },
      "pod-2-4 → cart, IPv4: reset 1",
    ],
    [
      "an address that should not have been seen",
      { sources: [{ from: "pod-1-4", to: "cart", family: "IPv6", expected: ["pod-1-4"], seen: ["node1", "pod-1-4"], why: "" }] },
      "pod-1-4 → cart, IPv6: seen as node1, pod-1-4 instead of pod-1-4",
    ],
    [
      "a client that changed its server",
      { affinity: [{ from: "pod-1-4", family: "IPv4", tally: tallyOf({ a: 39, b: 1 }) }] },
      "pod-1-4 → checkout, IPv4: answered by a, b",
    ],
    ["silence instead of a refusal", { refused: [{ family: "IPv6", outcome: "timeout" }] }, "search, IPv6: timeout instead of refused"],
    ["a UDP flow that nobody took over", { flows: [{ ...flow, after: undefined }] }, "UDP flow, IPv4: went from metrics-1 to nobody"],
    [
      "a UDP flow that was never stable",
      { flows: [{ ...flow, before: ["metrics-1", "metrics-2"] }] },
      "UDP flow, IPv4: went from metrics-1, metrics-2 to metrics-2",
    ],
    [
      "a change that was never followed",
      { toZero: [{ node: "node2", family: "IPv6", tookMs: undefined }] },
      "a change of banner was never followed on node2, IPv6",
    ],
    [
      "an old pod that still answers after the rollout",
      { rollout: { ...GOOD.rollout, answering: ["frontend-1"] } },
      "after the rollout frontend was frontend-1, not frontend-v2-1",
    ],
    [
      "a restart that did not catch up",
      { restart: { ...GOOD.restart, caughtUpMs: undefined } },
      "the restarted proxy on node1 never caught up",
    ],
    [
      "no traffic while the proxy was dead",
      { restart: { ...GOOD.restart, answeredMeanwhile: 0 } },
      "no request was answered while the proxy on node1 was dead",
    ],
    [
      "one failed request among many",
      { traffic: [{ what: "load", tally: tallyOf({ a: 9_999 }, { attempts: 10_000, failed: { timeout: 1 } }) }] },
      "load: timeout 1",
    ],
    ["a load that did nothing", { traffic: [{ what: "load", tally: tallyOf({}) }] }, "load: no request was made"],
    ["a kept connection that was reset", { held: [{ ...held, state: "reset" }] }, "a connection kept open to frontend-1: reset"],
    ["a kept connection without answers", { held: [{ ...held, answers: 0 }] }, "a connection kept open to frontend-1: no answers"],
  ];
  test.each(cases)("finds %s", (_name, broken, failure) => {
    expect(failuresOf({ ...GOOD, ...broken })).toEqual([failure]);
  });

  it("has a case for every finding that can go wrong", () => {
    const broken = new Set(cases.flatMap(([, part]) => Object.keys(part)));
    const neutral = ["setup", "trafficMs", "switches", "fromZero"];
    expect([...broken, ...neutral].toSorted()).toEqual(Object.keys(GOOD).toSorted());
  });
});

describe("the report", () => {
  const text = reportText(reportOf(GOOD), plain);

  it("ends with the count of what failed", () => {
    expect(text).toMatch(/\n✓ 1,500 requests in 9\.7 s, 0 failed; 1 connection kept open, 0 broken\.\n$/);
  });

  it("adds the families of a service up and draws shares", () => {
    expect(text).toContain("  cart  cart-1  ███████████████  50% of 600\n        cart-2  ███████████████  50% of 600\n");
  });

  it("says a source address once when both families agree, and twice when they don't", () => {
    expect(text).toContain("  client1 → frontend  the pod saw node1\n      masqueraded\n");
    const [v4, v6] = GOOD.sources as [Findings["sources"][number], Findings["sources"][number]];
    const differing = reportText(reportOf({ ...GOOD, sources: [v4, { ...v6, seen: ["client1"] }] }), plain);
    expect(differing).toContain("client1 → frontend, IPv4  the pod saw node1");
    expect(differing).toContain("client1 → frontend, IPv6  the pod saw client1");
  });

  it("gives the middle and the worst of the times", () => {
    expect(text).toMatch(/another pod serves banner {3}median 8\.3 ms, worst 30 ms +3 measured\n/);
    expect(medianAndWorst([])).toBeUndefined();
    expect(
      medianAndWorst([
        { node: "n", family: "IPv4", tookMs: 3 },
        { node: "n", family: "IPv4", tookMs: undefined },
      ]),
    ).toBeUndefined();
  });

  it("tells every service of the shop", () => {
    for (const { manifest } of Object.values(SHOP)) expect(text).toContain(`  ${manifest.name} `);
  });

  it("lists what went wrong and counts it", () => {
    const bad = reportOf({ ...GOOD, refused: [{ family: "IPv4", outcome: "timeout" }], held: [] });
    expect(reportText(bad, plain)).toMatch(
      /What went wrong\n {2}✗ search, IPv4: timeout instead of refused\n\n✗ .*; 1 thing went wrong\.\n$/,
    );
  });

  it("has colours only when asked for", () => {
    expect(text).not.toContain("\u001b[");
    expect(reportText(reportOf(GOOD), painter(true))).toContain("\u001b[1m");
  });
});

describe("small things", () => {
  test.each([
    [0.04, "0.0 ms"],
    [9.94, "9.9 ms"],
    [9.96, "10 ms"],
    [999.4, "999 ms"],
    [999.6, "1.0 s"],
    [12_340, "12.3 s"],
    [undefined, "never"],
  ])("%s ms is written %s", (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });

  test("counts have their thousands apart and their plurals right", () => {
    expect([countText(1, "pod"), countText(12_345, "request")]).toEqual(["1 pod", "12,345 requests"]);
  });

  test.each([
    ["a terminal", true, {}, true],
    ["a pipe", false, {}, false],
    ["a terminal with NO_COLOR", true, { NO_COLOR: "1" }, false],
    ["an empty NO_COLOR", true, { NO_COLOR: "" }, true],
    ["a pipe with FORCE_COLOR", false, { FORCE_COLOR: "1" }, true],
    ["a terminal with FORCE_COLOR=0", true, { FORCE_COLOR: "0" }, false],
  ])("%s: colours or not", (_name, isTerminal, variables, expected) => {
    expect(wantsColors(isTerminal, variables)).toBe(expected);
  });

  test("a metric is added up over its labels, and not mistaken for another", () => {
    const page =
      '# TYPE turnout_objects gauge\nturnout_objects{ip_family="IPv4"} 55\nturnout_objects{ip_family="IPv6"} 54\nturnout_objects_put_total 7\n';
    expect([sumOfMetric(page, "turnout_objects"), sumOfMetric(page, "turnout_objects_put_total"), sumOfMetric(page, "nothing")]).toEqual([
      109, 7, 0,
    ]);
  });

  test("no two services of the shop share an address or a server port, and every address is of its family", () => {
    const services = Object.values(SHOP);
    const addresses = services.flatMap(({ manifest }) => [...manifest.clusterIPs, ...(manifest.ingress ?? []).map(({ ip }) => ip)]);
    expect(new Set(addresses).size).toBe(addresses.length);
    expect(new Set(services.map(({ serverPort }) => serverPort)).size).toBe(services.length);
    expect(addressOf(SHOP.frontend, "loadBalancerIP", "IPv6")).toBe("fd00:198::10");
    expect(() => addressOf(SHOP.cart, "loadBalancerIP", "IPv4")).toThrow("cart has no IPv4 loadBalancerIP");
  });

  test("hints for nft name its table, hints for another backend don't", () => {
    const facts = { node1: "n1", node2: "n2", client: "c", node2Address: "172.18.0.2", kubeconfig: "/k" };
    const looks = KNOWN_BACKENDS.find(({ name }) => name === "nft")?.looks ?? [];
    expect(hintsText({ ...facts, looks })).toContain("ip netns exec n1 nft list table ip turnout");
    const other = hintsText({ ...facts, looks: [] });
    expect(other).not.toContain("nft");
    expect(other).toMatch(/npx turnout demo --clean\n$/);
  });
});
