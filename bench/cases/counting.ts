import { shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { ratioText } from "../number-text.ts";
import type { TrafficSample, TrafficSamples } from "../roles/traffic.ts";
import { median, percentile } from "../statistics.ts";
import { TRAFFIC_MEASURES } from "../traffic-measures.ts";
import type { TrafficMeasure } from "../traffic-measures.ts";
import { createTrafficNode } from "../traffic-nodes.ts";
import type { TrafficNode, TrafficRules } from "../traffic-nodes.ts";
import { medianOf, takeTurns } from "../traffic-turns.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [{ services: 1_000, endpoints: 2 }];
/** Each beside what counts. */
const PAIRS: readonly (readonly [plain: TrafficRules, counting: TrafficRules])[] = [
  ["nft", "nft, counting"],
  ["nft", "nft, counting bytes"],
  ["ebpf", "ebpf, counting"],
];
const ROUNDS = 20;
const LENGTH_MS = 200;
const CONNECTS = 200;
const FROM = { "pod-1-1": "a pod", client1: "outside" } as const;
/** All but connected sockets of UDP. */
const MEASURES = TRAFFIC_MEASURES.filter(({ measure }) => measure !== "connected");
/** What counting may take of connects, requests and bytes a second. */
const SHARE_MIN = 0.95;

interface CountingData {
  readonly shape: Shape;
  readonly from: keyof typeof FROM;
  readonly rules: TrafficRules;
  readonly samples: TrafficSamples;
}

/** What it takes to count connections, bytes, rejects and drops for each Service. */
export const counting: BenchCase = {
  name: "counting",
  about:
    "connects a second, requests and throughput, and their CPU time, from a pod and from outside, with and without counting for each Service: nft and eBPF",
  needs: ["root", "ip", "nft", "ebpf"],
  async run(context): Promise<CaseResult> {
    const rounds = context.runs ?? ROUNDS;
    const data: CountingData[] = [];
    for (const shape of shapesOr(SHAPES, context)) data.push(...(await measureAt(shape, rounds, context)));
    return {
      title: "Counting for each Service",
      about:
        "As in *ebpf-traffic*: each ruleset has a node of its own, and all take turns. With `--service-metrics` nft's chains and eBPF's programs count each connection when it begins; with `count-bytes` nft counts each packet, too. " +
        `*Connect*: p50 / p99 of ${rounds * CONNECTS} TCP connects, one at a time. *Connects*: rate and CPU time of each, eight at once, medians of ${rounds} rounds of ${LENGTH_MS} ms. ` +
        "*Requests*: a byte there and back over a kept connection. *Bulk*: bytes one way, and the CPU time of a MB. " +
        "*UDP*: datagrams there and back by sockets that are not connected; eBPF counts each of them. In brackets: the ratio to the same without counting.",
      columns: ["services x endpoints", "rules", "from", "connect", "connects", "requests", "bulk", "UDP unconnected"],
      rows: data.map((one) => rowOf(one, data)),
      targets: goalsOf(data),
      data,
    };
  },
};

async function measureAt(shape: Shape, rounds: number, { progress }: CaseContext): Promise<readonly CountingData[]> {
  const nodes: TrafficNode[] = [];
  try {
    for (const rules of PAIRS.flat()) {
      progress(`${shapeText(shape)}: ${rules}`);
      nodes.push(await createTrafficNode(rules, shape));
    }
    const data: CountingData[] = [];
    for (const from of Object.keys(FROM) as (keyof typeof FROM)[]) {
      progress(`${shapeText(shape)}: traffic from ${FROM[from]}`);
      const length = { rounds, lengthMs: LENGTH_MS, connects: CONNECTS };
      const clients = await Promise.all(nodes.map(async (node) => ({ rules: node.rules, client: await node.open(from, length) })));
      data.push(...(await takeTurns(clients)).map((one) => ({ shape, from, ...one })));
    }
    return data;
  } finally {
    for (const node of nodes) node.destroy();
  }
}

function plainOf({ shape, from, rules }: CountingData, data: readonly CountingData[]): CountingData | undefined {
  const plain = PAIRS.find(([, counts]) => counts === rules)?.[0];
  return data.find((one) => one.shape === shape && one.from === from && one.rules === plain);
}

function rowOf(one: CountingData, data: readonly CountingData[]): readonly string[] {
  const { shape, rules, from, samples } = one;
  const plain = plainOf(one, data)?.samples;
  const times = samples.connectMs["service"] ?? [];
  const beside = plain === undefined ? "" : ` (${ratioText(median(times) / median(plain.connectMs["service"] ?? []))})`;
  const textOf = ({ measure, suffix, rateText, cpuText }: TrafficMeasure): string => {
    const of = (some: TrafficSamples, what: keyof TrafficSample): number => medianOf(some, `service${suffix}`, measure, what);
    const ratios = plain && (["perSecond", "cpuUs"] as const).map((what) => ratioText(of(samples, what) / of(plain, what)));
    const besides = ratios === undefined ? "" : ` (${ratios.join(", ")})`;
    return `${rateText(of(samples, "perSecond"))}, ${cpuText(of(samples, "cpuUs"))}${besides}`;
  };
  return [
    shapeText(shape),
    rules,
    FROM[from],
    `${Math.round(median(times) * 1000)} / ${Math.round(percentile(times, 0.99) * 1000)} µs${beside}`,
    ...MEASURES.map(textOf),
  ];
}

function goalsOf(data: readonly CountingData[]): readonly Goal[] {
  return data.flatMap((one) => {
    const plain = plainOf(one, data)?.samples;
    if (plain === undefined) return [];
    return MEASURES.filter(({ measure }) => measure !== "unconnected").map(({ measure }): Goal => {
      const share = medianOf(one.samples, "service", measure) / medianOf(plain, "service", measure);
      const what = `${measure} with ${one.rules}, ${shapeText(one.shape)}, from ${FROM[one.from]}`;
      return { what, wanted: `at least ${ratioText(SHARE_MIN)} of those without`, measured: ratioText(share), isMet: share >= SHARE_MIN };
    });
  });
}
