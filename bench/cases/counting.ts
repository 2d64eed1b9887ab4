import { shapesOr } from "../case.ts";
import type { BenchCase, CaseResult, Goal } from "../case.ts";
import { ratioText } from "../number-text.ts";
import { turnout } from "../proxies.ts";
import type { TrafficSamples } from "../roles/traffic.ts";
import { cellText, medianOf } from "../traffic-measures.ts";
import type { TrafficLength } from "../traffic-nodes.ts";
import { FROM } from "../traffic-targets.ts";
import { measureTraffic } from "../traffic-turns.ts";
import type { TrafficData } from "../traffic-turns.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 1_000, endpoints: 2 }];
const NFT = ["--backend", "nft"] as const;
const EBPF = ["--backend", "ebpf"] as const;
/** By name, with the name of those that do not count: each beside what counts. */
const RULES = [
  { name: "nft", plain: undefined, proxy: turnout(...NFT) },
  { name: "nft, counting", plain: "nft", proxy: turnout(...NFT, "--service-metrics", "100") },
  { name: "nft, counting bytes", plain: "nft", proxy: turnout(...NFT, "--backend-option", "count-bytes=true") },
  { name: "ebpf", plain: undefined, proxy: turnout(...EBPF) },
  { name: "ebpf, counting", plain: "ebpf", proxy: turnout(...EBPF, "--service-metrics", "100") },
] as const;
const ROUNDS = 20;
const LENGTH_MS = 200;
const CONNECTS = 200;
const MEASURES = ["connects", "requests", "bulk", "packets"] as const;
/** What counting may take of connects, requests and bytes a second. */
const SHARE_MIN = 0.95;
const SHARED = ["connects", "requests", "bulk"] as const;

/** What it takes to count connections, bytes, rejects and drops for each Service. */
export const counting: BenchCase = {
  name: "counting",
  about:
    "connects and packets a second, requests and throughput, and their CPU time, from a pod and from outside, with and without counting for each Service: nft and eBPF",
  needs: ["root", "ip", "nft", "ebpf", "built"],
  async run(context): Promise<CaseResult> {
    const rounds = context.runs ?? ROUNDS;
    const length: TrafficLength = { rounds, lengthMs: LENGTH_MS, connects: CONNECTS, measures: MEASURES, asked: ["plain"] };
    const data: TrafficData[] = [];
    for (const shape of shapesOr(SHAPES, context))
      data.push(...(await measureTraffic({ rules: RULES, shape, from: ["pod-1-1", "client1"], length }, context)));
    return {
      title: "Counting for each Service",
      about:
        "As in *traffic*: each ruleset has a node of its own, and all take turns. With `--service-metrics` nft's chains and eBPF's programs count each connection when it begins; with `count-bytes` nft counts each packet, too. " +
        `*Connect*: p50 / p99 of ${rounds * CONNECTS} TCP connects, one at a time. *Connects*: rate and CPU time of each, eight at once, medians of ${rounds} rounds of ${LENGTH_MS} ms. ` +
        "*Requests*: a byte there and back over a kept connection. *Bulk*: bytes one way, and the CPU time of a MB. " +
        "*Packets*: UDP one way, as many as go, by a socket that is not connected; eBPF counts each of them. In brackets: the ratio to the same without counting.",
      columns: ["services x endpoints", "rules", "from", "connect", ...MEASURES],
      rows: data.map((one) => [
        shapeText(one.shape),
        one.rules,
        FROM[one.from],
        ...(["connect", ...MEASURES] as const).map((measure) => cellText(one.samples, "plain", measure, plainOf(one, data))),
      ]),
      targets: goalsOf(data),
      data,
    };
  },
};

function plainOf({ shape, from, rules }: TrafficData, data: readonly TrafficData[]): TrafficSamples | undefined {
  const plain = RULES.find(({ name }) => name === rules)?.plain;
  return data.find((one) => one.shape === shape && one.from === from && one.rules === plain)?.samples;
}

function goalsOf(data: readonly TrafficData[]): readonly Goal[] {
  return data.flatMap((one) => {
    const plain = plainOf(one, data);
    if (plain === undefined) return [];
    return SHARED.map((measure): Goal => {
      const share = medianOf(one.samples, "plain", measure) / medianOf(plain, "plain", measure);
      const what = `${measure} with ${one.rules}, ${shapeText(one.shape)}, from ${FROM[one.from]}`;
      return { what, wanted: `at least ${ratioText(SHARE_MIN)} of those without`, measured: ratioText(share), isMet: share >= SHARE_MIN };
    });
  });
}
