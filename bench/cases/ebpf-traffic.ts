import { shapesOr } from "../case.ts";
import type { BenchCase, CaseContext, CaseResult, Goal } from "../case.ts";
import { ratioText } from "../number-text.ts";
import type { TrafficSample, TrafficSamples } from "../roles/traffic.ts";
import { median, percentile } from "../statistics.ts";
import { TRAFFIC_MEASURES } from "../traffic-measures.ts";
import { createTrafficNode } from "../traffic-nodes.ts";
import { medianOf, takeTurns } from "../traffic-turns.ts";
import type { TrafficFrom, TrafficLength, TrafficNode, TrafficRules } from "../traffic-nodes.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SMALL: Shape = { services: 1, endpoints: 2 };
const LARGE: Shape = { services: 10_000, endpoints: 2 };
const RULES: readonly TrafficRules[] = ["none", "ebpf", "nft", "iptables"];
const ROUNDS = 10;
const LENGTH_MS = 200;
/** Connects that are timed in each round. */
const CONNECTS = 200;
const FROM: Readonly<Record<TrafficFrom, string>> = { "pod-1-1": "a pod", node1: "the node", client1: "outside" };
/** How much less than without a proxy established traffic may have. */
const ESTABLISHED_MIN = 0.95;
/** What may be noise where eBPF is to be no worse than nft. */
const NOISE = 0.05;

/** What one client measured. */
interface TrafficData {
  readonly shape: Shape;
  readonly rules: TrafficRules;
  readonly from: TrafficFrom;
  readonly samples: TrafficSamples;
}

/** What pods, the node and clients outside get through a Service, by each dataplane. */
export const ebpfTraffic: BenchCase = {
  name: "ebpf-traffic",
  about:
    "connects, requests, throughput and CPU time from a pod and the node through a cluster IP, and from outside through a node port: eBPF, nft, iptables, and no proxy",
  needs: ["root", "ip", "nft", "iptables", "ebpf"],
  async run(context): Promise<CaseResult> {
    const rounds = context.runs ?? ROUNDS;
    const data: TrafficData[] = [];
    for (const shape of shapesOr(context.isQuick ? [SMALL] : [SMALL, LARGE], context)) {
      data.push(...(await measureAt(shape, { rounds, lengthMs: LENGTH_MS, connects: CONNECTS }, context)));
    }
    return {
      title: "Traffic through a Service, with eBPF",
      about:
        "A pod, or the node, connects to a pod on the same node through the cluster IP of the last Service; a client outside through a node port, so its packets get the node's address. " +
        "Each ruleset has a node of its own; all of them are there at once and take turns at each measure. *None* is the endpoint's own address on a node without rules, asked twice: its ratios are what chance does. " +
        "In brackets: ratios to the endpoint's own address under the same rules, which takes turns with it every 20 ms; a connect to that passes the rules as well, which takes time with iptables. " +
        `*Connect*: p50 / p99 of ${rounds * CONNECTS} TCP connects, one at a time, and the ratio of p50. The others are rates and the CPU time of each connect, answer, MB or datagram, and the ratios of both, ` +
        `medians of ${rounds} rounds of ${LENGTH_MS} ms. *Connects*: TCP, eight at once. *Requests*: a byte there and back over one TCP connection. *Bulk*: one way over one TCP connection. ` +
        "*UDP*: datagrams there and back, one after another, by a connected socket and by one that is not: two packets each. " +
        "*CPU time* is that of the client, the server and the kernel's ksoftirqd together. Here a packet is taken along its whole way, through the node too, on the time of whoever sent it, and " +
        "what is left over is done by ksoftirqd; so what the node does is in, and other programs' work is not. Client and server are Node programs: their own work is most of it.",
      columns: ["services x endpoints", "rules", "from", "connect", "connects", "requests", "bulk", "UDP connected", "UDP unconnected"],
      rows: data.map(rowOf),
      targets: goalsOf(data),
      data,
    };
  },
};

async function measureAt(shape: Shape, length: TrafficLength, { progress }: CaseContext): Promise<readonly TrafficData[]> {
  const nodes: TrafficNode[] = [];
  try {
    for (const rules of RULES) {
      progress(`${shapeText(shape)}: ${rules}`);
      nodes.push(await createTrafficNode(rules, shape));
    }
    progress(`${shapeText(shape)}: traffic`);
    const data: TrafficData[] = [];
    for (const from of Object.keys(FROM) as TrafficFrom[]) {
      const clients = await Promise.all(nodes.map(async (node) => ({ rules: node.rules, client: await node.open(from, length) })));
      data.push(...(await takeTurns(clients)).map(({ rules, samples }) => ({ shape, rules, from, samples })));
    }
    return data;
  } finally {
    for (const node of nodes) node.destroy();
  }
}

function rowOf({ shape, rules, from, samples }: TrafficData): readonly string[] {
  return [
    shapeText(shape),
    rules,
    FROM[from],
    connectText(samples),
    ...TRAFFIC_MEASURES.map(({ measure, suffix, rateText, cpuText }) => {
      const of = (target: string, what: keyof TrafficSample): number => medianOf(samples, `${target}${suffix}`, measure, what);
      const textOf = (target: string): string => `${rateText(of(target, "perSecond"))}, ${cpuText(of(target, "cpuUs"))}`;
      const ratios = (["perSecond", "cpuUs"] as const).map((what) => ratioText(of("service", what) / of("direct", what)));
      return `${textOf("service")} (${ratios.join(", ")})`;
    }),
  ];
}

function connectText({ connectMs: { direct = [], service = [] } }: TrafficSamples): string {
  const textOf = (times: readonly number[]): string =>
    `${Math.round(median(times) * 1000)} / ${Math.round(percentile(times, 0.99) * 1000)} µs`;
  return `${textOf(service)} (${ratioText(median(service) / median(direct))})`;
}

function goalsOf(data: readonly TrafficData[]): readonly Goal[] {
  return data
    .filter(({ rules }) => rules === "ebpf")
    .flatMap(({ shape, from, samples }) => {
      const under = (rules: TrafficRules): TrafficSamples | undefined =>
        data.find((one) => one.rules === rules && one.shape === shape && one.from === from)?.samples;
      const [none, nft] = [under("none"), under("nft")];
      const at = `${shapeText(shape)}, from ${FROM[from]}`;
      if (none === undefined || nft === undefined) return [];
      return from === "client1" ? goalsOutside(samples, nft, at) : goalsInside(samples, { none, nft }, at);
    });
}

/** Sockets are served where they connect. */
function goalsInside(
  ebpf: TrafficSamples,
  { none, nft }: { readonly none: TrafficSamples; readonly nft: TrafficSamples },
  at: string,
): readonly Goal[] {
  const establishedGoal = (other: TrafficSamples, target: string, than: string): Goal => {
    const ratios = ["requests", "bulk"].map((measure) => medianOf(ebpf, "service", measure) / medianOf(other, target, measure));
    const worse = Math.min(...ratios);
    return {
      what: `established traffic with eBPF, ${at}`,
      wanted: `at least ${ratioText(ESTABLISHED_MIN)} of ${than}`,
      measured: ratioText(worse),
      isMet: worse >= ESTABLISHED_MIN,
    };
  };
  const ahead = medianOf(ebpf, "service", "connects") / medianOf(nft, "service", "connects");
  return [
    establishedGoal(ebpf, "direct", "the endpoint's own address"),
    establishedGoal(none, "service", "a node without rules"),
    { what: `connects with eBPF, ${at}`, wanted: "ahead of nft", measured: ratioText(ahead), isMet: ahead > 1 },
  ];
}

/** Packets are rewritten by conntrack under both, so neither can be far ahead. */
function goalsOutside(ebpf: TrafficSamples, nft: TrafficSamples, at: string): readonly Goal[] {
  const cpu = medianOf(ebpf, "service", "requests", "cpuUs") / medianOf(nft, "service", "requests", "cpuUs");
  const connects = medianOf(ebpf, "service", "connects") / medianOf(nft, "service", "connects");
  return [
    {
      what: `CPU per request with eBPF, ${at}`,
      wanted: `not more than nft's (at most ${ratioText(1 + NOISE)})`,
      measured: ratioText(cpu),
      isMet: cpu <= 1 + NOISE,
    },
    {
      what: `connects with eBPF, ${at}`,
      wanted: `not fewer than with nft (at least ${ratioText(1 - NOISE)})`,
      measured: ratioText(connects),
      isMet: connects >= 1 - NOISE,
    },
  ];
}
