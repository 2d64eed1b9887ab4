import type { Tally } from "@turnout/lab";
import type { Findings } from "../demo/findings.ts";

/** A tally of requests that all were answered, so many by each server. */
export function tallyOf(servers: Readonly<Record<string, number>>, more: Partial<Tally> = {}): Tally {
  const ok = Object.values(servers).reduce((sum, count) => sum + count, 0);
  return { attempts: ok, ok, failed: {}, servers, clients: {}, p50Ms: 1, p99Ms: 12, ...more };
}

/** What a demo sees in which everything goes well. */
export const GOOD: Findings = {
  setup: {
    backend: "nft",
    versions: { kernel: "6.1.0", nft: "1.0.6" },
    nodes: 2,
    pods: 8,
    families: ["IPv4", "IPv6"],
    stageMs: 812.4,
    readyMs: 1_240,
  },
  spread: [
    { service: "cart", from: "pod-2-4", family: "IPv4", expected: ["cart-1", "cart-2"], tally: tallyOf({ "cart-1": 140, "cart-2": 160 }) },
    { service: "cart", from: "pod-2-4", family: "IPv6", expected: ["cart-1", "cart-2"], tally: tallyOf({ "cart-2": 140, "cart-1": 160 }) },
  ],
  sources: [
    { from: "client1", to: "frontend", family: "IPv4", expected: ["node1"], seen: ["node1"], why: "masqueraded" },
    { from: "client1", to: "frontend", family: "IPv6", expected: ["node1"], seen: ["node1"], why: "masqueraded" },
  ],
  affinity: [{ from: "pod-1-4", family: "IPv4", tally: tallyOf({ "checkout-1": 40 }) }],
  refused: [
    { family: "IPv4", outcome: "refused" },
    { family: "IPv6", outcome: "refused" },
  ],
  switches: [
    { node: "node1", family: "IPv4", tookMs: 8.25 },
    { node: "node2", family: "IPv4", tookMs: 30 },
    { node: "node1", family: "IPv6", tookMs: 4 },
  ],
  toZero: [{ node: "node1", family: "IPv4", tookMs: 9 }],
  fromZero: [{ node: "node1", family: "IPv4", tookMs: 11 }],
  rollout: { service: "frontend", replaced: 3, durationMs: 1_500, expected: ["frontend-v2-1"], answering: ["frontend-v2-1"] },
  flows: [{ family: "IPv4", port: 40_125, before: ["metrics-1"], after: "metrics-2", tookMs: 52 }],
  restart: { node: "node1", downMs: 1_010, answeredMeanwhile: 800, caughtUpMs: 504, objects: 110, written: 2 },
  traffic: [{ what: "outside client → frontend", tally: tallyOf({ "frontend-1": 1_500 }) }],
  held: [{ state: "open", asks: 240, answers: 240, late: 3, server: "frontend-1", client: "" }],
  trafficMs: 9_700,
};
