import type { BenchCase, CaseResult } from "../case.ts";
import { kubeProxyVersion } from "../kube-proxy/process.ts";
import { unmetNeed } from "../machine.ts";
import { HOST_PROXIES } from "../proxies.ts";
import { trafficGoals } from "../traffic-goals.ts";
import { cellText, hasMeasured } from "../traffic-measures.ts";
import type { TrafficLength, TrafficRules } from "../traffic-nodes.ts";
import { askedText, FROM, TARGET_NAMES } from "../traffic-targets.ts";
import type { TrafficFrom } from "../traffic-targets.ts";
import { measureTraffic } from "../traffic-turns.ts";
import type { TrafficData } from "../traffic-turns.ts";
import { shapeText } from "../workload.ts";
import type { Shape } from "../workload.ts";

const SMALL: readonly Shape[] = [
  { services: 1, endpoints: 2 },
  { services: 1_000, endpoints: 2 },
];
const LARGE: Shape = { services: 10_000, endpoints: 2 };
const ROUNDS = 5;
const LENGTH_MS = 200;
/** Connects that are timed in each round. */
const CONNECTS = 200;
const MEASURES = ["connects", "packets", "requests", "bulk"] as const;
const PLACES = Object.keys(FROM) as readonly TrafficFrom[];

/** Columns of the table, each with the rules that it is compared with. */
const RULES: readonly (TrafficRules & { readonly comparedWith?: string })[] = [
  { name: "no proxy", proxy: undefined },
  { name: "Turnout, eBPF", proxy: HOST_PROXIES["turnout ebpf"], comparedWith: "kube-proxy, nftables" },
  { name: "Turnout, nft", proxy: HOST_PROXIES["turnout nft"], comparedWith: "kube-proxy, nftables" },
  { name: "kube-proxy, nftables", proxy: HOST_PROXIES["kube-proxy nftables"] },
  { name: "Turnout, iptables", proxy: HOST_PROXIES["turnout iptables (legacy)"], comparedWith: "kube-proxy, iptables" },
  { name: "kube-proxy, iptables", proxy: HOST_PROXIES["kube-proxy iptables (legacy)"] },
];

/** What pods, the node and clients outside get through Services, under the rules of each proxy. */
export const traffic: BenchCase = {
  name: "traffic",
  about:
    "connects and packets a second and their CPU time from a pod, the node and outside, over TCP, UDP and IPv6, with affinity and source ranges: eBPF, nft, iptables, no proxy, and the real kube-proxy (KUBE_PROXY=path)",
  needs: ["root", "ip", "nft", "iptables-legacy", "bpf", "cgroup2", "built"],
  async run(context): Promise<CaseResult> {
    const rounds = context.runs ?? ROUNDS;
    const length: TrafficLength = { rounds, lengthMs: LENGTH_MS, connects: CONNECTS, measures: MEASURES, asked: TARGET_NAMES };
    const without = unmetNeed("kube-proxy");
    const rules = RULES.filter(({ proxy }) => without === undefined || proxy?.program !== "kube-proxy");
    const data: TrafficData[] = [];
    for (const shape of context.shapes ?? (context.isQuick ? SMALL : [...SMALL, LARGE]))
      data.push(...(await measureTraffic({ rules, shape, from: PLACES, length }, context)));
    return {
      title: "Traffic through Services",
      about: `${aboutRun(rounds, length)} ${aboutKubeProxy(without)}`,
      columns: ["services x endpoints", "measure", "from", "asks", ...RULES.map(({ name }) => name)],
      rows: rowsOf(data),
      targets: trafficGoals(data),
      data,
    };
  },
};

function aboutRun(rounds: number, { connects, lengthMs }: TrafficLength): string {
  return (
    "Each ruleset has a node of its own; the proxy is ended when its rules are in force, and they stay. The nodes of one size are there at once, and their clients take turns every 20 ms. " +
    `*Connects*: TCP, eight at once. *Packets*: UDP one way, by a socket that is not connected, those that came. *Connect*: p50 / p99 of ${rounds * connects} TCP connects, one at a time. *Requests*: a byte there and back over one TCP connection. *Bulk*: one way over one. ` +
    `All but *connect* are a rate and the CPU time of each connect, packet, answer or MB, medians of ${rounds} rounds of ${lengthMs} ms. *CPU time* is that of client, server and the kernel's ksoftirqd together; what the node does for a packet is in it. ` +
    "*Endpoint* is the endpoint's own address, without a Service. Up to 32 Services of each kind, spread over all, are asked in turn."
  );
}

function aboutKubeProxy(without: string | undefined): string {
  if (without !== undefined) return `kube-proxy's rules were left out: ${without}.`;
  const version = kubeProxyVersion(process.env["KUBE_PROXY"] ?? "kube-proxy");
  return `kube-proxy is the real one, ${version}. In brackets: Turnout's ratios to kube-proxy, of rate and CPU time: nft and eBPF to its nftables mode, iptables to its iptables mode, both with the legacy tools.`;
}

/** A line for each size, measure, place and address that something was measured at. Pure. */
export function rowsOf(data: readonly TrafficData[]): readonly (readonly string[])[] {
  const sizes = new Set(data.map(({ shape }) => shape));
  return [...sizes].flatMap((shape) =>
    (["connects", "packets", "connect", "requests", "bulk"] as const).flatMap((measure) =>
      PLACES.flatMap((from) => {
        const here = data.filter((one) => one.shape === shape && one.from === from);
        const under = (name: string | undefined): TrafficData["samples"] | undefined => here.find(({ rules }) => rules === name)?.samples;
        const asked = TARGET_NAMES.filter((target) => here.some(({ samples }) => hasMeasured(samples, target, measure)));
        return asked.map((target) => [
          shapeText(shape),
          measure,
          FROM[from],
          askedText(target, from) ?? "",
          ...RULES.map(({ name, comparedWith }) => {
            const samples = under(name);
            return samples === undefined ? "not run" : cellText(samples, target, measure, under(comparedWith));
          }),
        ]);
      }),
    ),
  );
}
