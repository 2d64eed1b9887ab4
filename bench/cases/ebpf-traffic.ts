import { createCluster } from "@turnout/lab";
import type { Cluster } from "@turnout/lab";
import { shapesOr } from "../case.ts";
import type { BenchCase, CaseResult, Goal } from "../case.ts";
import { ratioText } from "../number-text.ts";
import { openRole, runRole } from "../role-process.ts";
import type { BackendParameters, ComparedBackend } from "../roles/backend-run.ts";
import type { TrafficParameters, TrafficSample, TrafficSamples, TrafficTarget } from "../roles/traffic.ts";
import { median } from "../statistics.ts";
import { clusterIP, endpointsOf, SERVICE_PORT, shapeText, TARGET_PORT } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SHAPES: readonly Shape[] = [
  { services: 1, endpoints: 2 },
  { services: 10_000, endpoints: 2 },
];
const RULES = ["none", "ebpf", "nft", "iptables"] as const satisfies readonly (ComparedBackend | "none")[];
const ROUNDS = 5;
const LENGTH_MS = 250;
/** A pod of the workload's range, so that its source address is kept. */
const CLIENT_IP = "11.255.0.2";
const CLIENTS = ["pod-1-1", "node1"] as const;
const SERVER = "pod-1-2";
/** How much less than without a proxy established traffic may have. */
const ESTABLISHED_MIN = 0.95;

/** What was measured under one ruleset. */
interface TrafficData {
  readonly shape: Shape;
  readonly rules: (typeof RULES)[number];
  readonly client: (typeof CLIENTS)[number];
  readonly samples: TrafficSamples;
}

/** What pods and the node get through a cluster IP, by each dataplane. */
export const ebpfTraffic: BenchCase = {
  name: "ebpf-traffic",
  about: "connects, requests and throughput from pod to pod and host to pod through a cluster IP: eBPF, nft, iptables, and no proxy",
  needs: ["root", "ip", "nft", "iptables", "ebpf"],
  async run(context): Promise<CaseResult> {
    const data: TrafficData[] = [];
    for (const shape of shapesOr(SHAPES, context)) {
      // Without rules it makes no difference how many services there are not.
      for (const rules of RULES.filter((one) => one !== "none" || data.length === 0)) {
        context.progress(`${shapeText(shape)}: ${rules}`);
        data.push(...(await measureUnder(shape, rules, context.runs ?? ROUNDS)));
      }
    }
    return {
      title: "Traffic through a cluster IP, with eBPF",
      about:
        "A pod, or the node, connects to a pod on the same node through the last service. In brackets: the ratio to the same traffic to the endpoint's own address, which takes turns with it " +
        "under the same rules, and the ratio of the client's CPU time for each connect, answer or byte, which other work on the machine disturbs less. *Connects*: TCP, eight at once. *Requests*: a byte there and back over one TCP connection. *Bulk*: one way over one TCP connection. *UDP*: datagrams there and back, one after another, " +
        `by a connected socket and by one that is not. Medians of ${context.runs ?? ROUNDS} measures of ${LENGTH_MS} ms each, by Node programs: their own work is most of it.`,
      columns: ["services x endpoints", "rules", "from", "connects", "requests", "bulk", "UDP connected", "UDP unconnected"],
      rows: data.map(rowOf),
      targets: goalsOf(data),
      data,
    };
  },
};

async function measureUnder(shape: Shape, rules: TrafficData["rules"], rounds: number): Promise<readonly TrafficData[]> {
  const cluster = await createCluster({ nodes: [{ name: "node1", pods: 2 }], families: ["IPv4"], cgroups: ["node1"] });
  try {
    const shared: Shape = { ...shape, shared: true };
    await addWorkload(cluster, shared);
    if (rules !== "none") {
      const parameters: BackendParameters = { backend: rules, shape: shared };
      await runRole("backend-rules", parameters, { place: cluster.node("node1") });
    }
    const server = openRole("traffic-server", { addresses: endpointsOf(0, shared).map(({ ip }) => ip) }, { place: cluster.place(SERVER) });
    try {
      await server.phase("listening");
      const data: TrafficData[] = [];
      for (const client of CLIENTS) {
        const parameters: TrafficParameters = { targets: targetsOf(shared, rules !== "none"), rounds, lengthMs: LENGTH_MS };
        const samples = await runRole<TrafficSamples>("traffic-client", parameters, { place: cluster.place(client) });
        data.push({ shape, rules, client, samples });
      }
      return data;
    } finally {
      server.kill();
    }
  } finally {
    cluster.destroy();
  }
}

/** Give the pods addresses of the workload, and the node the ways there. */
async function addWorkload(cluster: Cluster, shape: Shape): Promise<void> {
  const ip = (place: string, line: string): Promise<unknown> => cluster.place(place).run("ip", line.split(" "));
  for (const { ip: address } of endpointsOf(0, shape)) {
    await ip(SERVER, `address add ${address}/32 dev eth0`);
    await ip("node1", `route add ${address}/32 dev veth2`);
  }
  await ip("pod-1-1", `address add ${CLIENT_IP}/32 dev eth0`);
  await ip("node1", `route add ${CLIENT_IP}/32 dev veth1`);
  await ip("pod-1-1", `route change default via 169.254.1.1 dev eth0 onlink src ${CLIENT_IP}`);
}

function targetsOf(shape: Shape, hasServices: boolean): readonly TrafficTarget[] {
  const [endpoint] = endpointsOf(0, shape);
  const direct = { name: "direct", address: endpoint?.ip ?? "", port: TARGET_PORT };
  const last = { name: "service", address: clusterIP(shape.services - 1), port: SERVICE_PORT };
  return [
    { ...direct, protocol: "TCP" },
    ...(hasServices ? [{ ...last, protocol: "TCP" } as const] : []),
    { ...direct, name: "direct UDP", protocol: "UDP" },
    ...(hasServices ? [{ ...last, name: "service UDP", address: clusterIP(shape.services), protocol: "UDP" } as const] : []),
  ];
}

const MEASURES = [
  { measure: "connects", suffix: "", text: (rate: number): string => `${(rate / 1000).toFixed(1)}k/s` },
  { measure: "requests", suffix: "", text: (rate: number): string => `${(rate / 1000).toFixed(1)}k/s` },
  { measure: "bulk", suffix: "", text: (rate: number): string => `${(rate / 1e9).toFixed(2)} GB/s` },
  { measure: "connected", suffix: " UDP", text: (rate: number): string => `${(rate / 1000).toFixed(1)}k/s` },
  { measure: "unconnected", suffix: " UDP", text: (rate: number): string => `${(rate / 1000).toFixed(1)}k/s` },
] as const;

function rowOf({ shape, rules, client, samples }: TrafficData): readonly string[] {
  return [
    rules === "none" ? "" : shapeText(shape),
    rules,
    client === "node1" ? "the node" : "a pod",
    ...MEASURES.map(({ measure, suffix, text }) => {
      const direct = medianOf(samples, `direct${suffix}`, measure);
      if (rules === "none") return text(direct);
      const rate = medianOf(samples, `service${suffix}`, measure);
      const cpu = medianOf(samples, `service${suffix}`, measure, "cpuUs") / medianOf(samples, `direct${suffix}`, measure, "cpuUs");
      return `${text(rate)} (${ratioText(rate / direct)}, CPU ${ratioText(cpu)})`;
    }),
  ];
}

function medianOf(samples: TrafficSamples, target: string, measure: string, of: keyof TrafficSample = "perSecond"): number {
  return median((samples[target]?.[measure] ?? []).map((sample) => sample[of]));
}

function goalsOf(data: readonly TrafficData[]): readonly Goal[] {
  return data
    .filter(({ rules }) => rules === "ebpf")
    .flatMap(({ shape, client, samples }) => {
      const nft = data.find((one) => one.rules === "nft" && one.shape === shape && one.client === client);
      const at = `${shapeText(shape)}, from ${client === "node1" ? "the node" : "a pod"}`;
      const established = Math.min(
        ...["requests", "bulk"].map((measure) => medianOf(samples, "service", measure) / medianOf(samples, "direct", measure)),
      );
      const goals: Goal[] = [
        {
          what: `established traffic with eBPF, ${at}`,
          wanted: `at least ${ratioText(ESTABLISHED_MIN)} of no proxy`,
          measured: ratioText(established),
          isMet: established >= ESTABLISHED_MIN,
        },
      ];
      if (nft === undefined) return goals;
      const ahead = medianOf(samples, "service", "connects") / medianOf(nft.samples, "service", "connects");
      goals.push({ what: `connects with eBPF, ${at}`, wanted: "ahead of nft", measured: ratioText(ahead), isMet: ahead > 1 });
      return goals;
    });
}
