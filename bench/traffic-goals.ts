import type { Goal } from "./case.ts";
import { ratioText } from "./number-text.ts";
import type { TrafficSamples } from "./roles/traffic.ts";
import { median } from "./statistics.ts";
import { hasMeasured, medianOf } from "./traffic-measures.ts";
import { FROM, isOwn, TARGET_NAMES } from "./traffic-targets.ts";
import type { TargetName } from "./traffic-targets.ts";
import type { TrafficData } from "./traffic-turns.ts";
import { shapeText } from "./workload.ts";

/** How much less than without a proxy established traffic may have. */
const ESTABLISHED_MIN = 0.95;
/** What may be noise where one is to be no worse than another. */
const NOISE = 0.05;
const NEXT_TO = [
  ["Turnout, nft", "kube-proxy, nftables"],
  ["Turnout, iptables", "kube-proxy, iptables"],
] as const;

/** What traffic is to reach; without kube-proxy's rules nothing is said beside them. Pure. */
export function trafficGoals(data: readonly TrafficData[]): readonly Goal[] {
  const sizes = [...new Set(data.map(({ shape }) => shape))];
  return [
    ...sizes.flatMap((shape) => {
      const here = data.filter((one) => one.shape === shape);
      return NEXT_TO.flatMap(([ours, theirs]) =>
        (["connects", "packets"] as const).flatMap((measure) => goalAgainst(here, { ours, theirs, measure })),
      );
    }),
    ...data.filter(({ rules }) => rules === "Turnout, eBPF").flatMap((one) => ebpfGoals(one, data)),
  ];
}

interface Pair {
  readonly ours: string;
  readonly theirs: string;
  readonly measure: "connects" | "packets";
}

/** By CPU time, which other programs disturb less; of all ways at one size together, because a single one is moved by chance. */
function goalAgainst(here: readonly TrafficData[], { ours, theirs, measure }: Pair): readonly Goal[] {
  const ratios = here.flatMap(({ shape, rules, from, samples }) => {
    const other = here.find((one) => one.from === from && one.rules === theirs)?.samples;
    if (rules !== ours || other === undefined) return [];
    const asked = TARGET_NAMES.filter((name) => !isOwn(name) && hasMeasured(samples, name, measure));
    return asked.map((name) => ({ shape, ratio: medianOf(samples, name, measure, "cpuUs") / medianOf(other, name, measure, "cpuUs") }));
  });
  const [first] = ratios;
  if (first === undefined) return [];
  const middle = median(ratios.map(({ ratio }) => ratio));
  const what = `CPU time of ${measure}, ${ours}, ${shapeText(first.shape)}, median of ${ratios.length} ways`;
  return [goal(what, `not more than ${theirs} (at most ${ratioText(1 + NOISE)})`, middle, middle <= 1 + NOISE)];
}

function ebpfGoals({ shape, from, samples }: TrafficData, data: readonly TrafficData[]): readonly Goal[] {
  const under = (rules: string): TrafficSamples | undefined =>
    data.find((one) => one.rules === rules && one.shape === shape && one.from === from)?.samples;
  const [none, nft] = [under("no proxy"), under("Turnout, nft")];
  const at = `${shapeText(shape)}, from ${FROM[from]}`;
  if (none === undefined || nft === undefined) return [];
  return from === "client1" ? goalsOutside(samples, nft, at) : goalsInside(samples, { none, nft }, at);
}

/** Sockets are served where they connect. */
function goalsInside(
  ebpf: TrafficSamples,
  { none, nft }: { readonly none: TrafficSamples; readonly nft: TrafficSamples },
  at: string,
): readonly Goal[] {
  const establishedGoal = (other: TrafficSamples, target: TargetName, than: string): Goal => {
    const ratios = (["requests", "bulk"] as const).map((measure) => medianOf(ebpf, "plain", measure) / medianOf(other, target, measure));
    const worse = Math.min(...ratios);
    const wanted = `at least ${ratioText(ESTABLISHED_MIN)} of ${than}`;
    return goal(`established traffic with eBPF, ${at}`, wanted, worse, worse >= ESTABLISHED_MIN);
  };
  const ahead = medianOf(ebpf, "plain", "connects") / medianOf(nft, "plain", "connects");
  return [
    establishedGoal(ebpf, "own", "the endpoint's own address"),
    establishedGoal(none, "own", "a node without rules"),
    goal(`connects with eBPF, ${at}`, "ahead of nft", ahead, ahead > 1),
  ];
}

/** Packets are rewritten by conntrack under both, so neither can be far ahead. */
function goalsOutside(ebpf: TrafficSamples, nft: TrafficSamples, at: string): readonly Goal[] {
  const cpu = medianOf(ebpf, "plain", "requests", "cpuUs") / medianOf(nft, "plain", "requests", "cpuUs");
  const connects = medianOf(ebpf, "plain", "connects") / medianOf(nft, "plain", "connects");
  const [least, most] = [1 - NOISE, 1 + NOISE];
  return [
    goal(`CPU per request with eBPF, ${at}`, `not more than nft's (at most ${ratioText(most)})`, cpu, cpu <= most),
    goal(`connects with eBPF, ${at}`, `not fewer than with nft (at least ${ratioText(least)})`, connects, connects >= least),
  ];
}

function goal(what: string, wanted: string, ratio: number, isMet: boolean): Goal {
  return { what, wanted, measured: ratioText(ratio), isMet };
}
