import { describe, expect, it } from "vitest";
import { rowsOf } from "./cases/traffic.ts";
import type { TrafficSamples } from "./roles/traffic.ts";
import { trafficGoals } from "./traffic-goals.ts";
import type { TargetName, TrafficFrom } from "./traffic-targets.ts";
import type { TrafficData } from "./traffic-turns.ts";

const SHAPE = { services: 1_000, endpoints: 2 };

/** As a client measures: the same rate and CPU time of all that is given. */
function samplesOf(perSecond: number, cpuUs: number, targets: readonly TargetName[] = ["own", "plain"]): TrafficSamples {
  const sample = [{ perSecond, cpuUs }];
  const all = { connects: sample, packets: sample, requests: sample, bulk: sample };
  return {
    rates: Object.fromEntries(targets.map((target) => [target, all])),
    connectMs: Object.fromEntries(targets.map((target) => [target, [0.1, 0.1, 0.3]])),
  };
}

const under = (rules: string, samples: TrafficSamples, from: TrafficFrom = "pod-1-1"): TrafficData => ({
  shape: SHAPE,
  rules,
  from,
  samples,
});

describe("the table", () => {
  const rows = rowsOf([
    under("no proxy", samplesOf(9_000, 80, ["own"])),
    under("Turnout, nft", samplesOf(8_000, 100)),
    under("kube-proxy, nftables", samplesOf(4_000, 200)),
  ]);
  const rowAt = (measure: string, asks: string): readonly string[] | undefined => rows.find((row) => row[1] === measure && row[3] === asks);

  it("has Turnout's ratios to kube-proxy, and says what was not run", () =>
    expect(rowAt("connects", "cluster IP")?.join(" | ")).toBe(
      "1,000 x 2 | connects | a pod | cluster IP |  | not run | 8.0k/s, 100.0 µs (2.0x, 0.50x) | 4.0k/s, 200.0 µs | not run | not run",
    ));

  it("has what a node without a proxy can give", () => expect(rowAt("packets", "endpoint")?.[4]).toBe("9.0k/s, 80.0 µs"));

  it("has single connects by p50 and p99", () => expect(rowAt("connect", "cluster IP")?.[6]).toBe("100 / 300 µs (1.00x)"));

  it("has no line that nobody measured", () => {
    expect(rows).toHaveLength(2 * 5);
    expect(rows.flatMap((row) => (row[3]?.includes("IPv6") === true ? [row] : []))).toEqual([]);
  });
});

describe("goals", () => {
  it("compare CPU time with kube-proxy's, of all ways together", () => {
    const data = [
      under("Turnout, nft", samplesOf(1, 100)),
      under("kube-proxy, nftables", samplesOf(1, 100)),
      under("Turnout, nft", samplesOf(1, 130), "node1"),
      under("kube-proxy, nftables", samplesOf(1, 100), "node1"),
    ];
    expect(trafficGoals(data)).toMatchObject([
      { what: "CPU time of connects, Turnout, nft, 1,000 x 2, median of 2 ways", measured: "1.15x", isMet: false },
      { what: "CPU time of packets, Turnout, nft, 1,000 x 2, median of 2 ways", measured: "1.15x", isMet: false },
    ]);
  });

  it("say nothing beside a kube-proxy that was not run", () => expect(trafficGoals([under("Turnout, nft", samplesOf(1, 1))])).toEqual([]));

  it("compare eBPF with no rules and with nft", () => {
    const data = [under("no proxy", samplesOf(100, 1)), under("Turnout, eBPF", samplesOf(90, 1)), under("Turnout, nft", samplesOf(80, 1))];
    expect(trafficGoals(data).map(({ measured, isMet }) => [measured, isMet])).toEqual([
      ["1.00x", true],
      ["0.90x", false],
      ["1.13x", true],
    ]);
    const outside = data.map((one): TrafficData => ({ ...one, from: "client1" }));
    expect(trafficGoals(outside).map(({ measured, isMet }) => [measured, isMet])).toEqual([
      ["1.00x", true],
      ["1.13x", true],
    ]);
  });
});
