import { hostPort, listedNames } from "@turnout/core";
import type { AskedPacket, Cause } from "@turnout/core";
import type { ReadFile } from "../tables/external-tables.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import type { Way } from "../ways/way.ts";

/** What the kernel has counted in this network namespace. */
export interface Counters {
  readonly reversePathDrops: number;
  readonly entries: number;
  readonly entriesMax: number;
}

/** Read what the kernel has counted; 0 where it does not count. */
export async function readCounters(read: ReadFile): Promise<Counters> {
  const [statistics, entries, entriesMax] = await Promise.all(
    ["/proc/net/netstat", "/proc/sys/net/netfilter/nf_conntrack_count", "/proc/sys/net/netfilter/nf_conntrack_max"].map(read),
  );
  const [names = "", values = ""] = (statistics ?? "").split("\n").filter((line) => line.startsWith("TcpExt:"));
  const at = names.split(" ").indexOf("IPReversePathFilter");
  return {
    reversePathDrops: at < 0 ? 0 : Number(values.split(" ")[at]),
    entries: Number(entries ?? 0),
    entriesMax: Number(entriesMax ?? 0),
  };
}

/** Say what the kernel's counters tell of packets like this one. Pure. */
export function counterCauses({ entries, entriesMax }: Counters): readonly Cause[] {
  if (entriesMax === 0 || entries < entriesMax * 0.98) return [];
  return [
    {
      id: "conntrack_full",
      says: `the kernel remembers ${entries} connections of ${entriesMax} at most, so new ones are dropped`,
      show: ["sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max"],
      fix: "let it remember more, and find who opens so many",
      commands: [
        `sysctl -w net.netfilter.nf_conntrack_max=${entriesMax * 2}`,
        "conntrack -L | grep -o 'src=[^ ]*' | sort | uniq -c | sort -n | tail",
      ],
    },
  ];
}

/**
 * Say where the kernel's count of packets that came in by the wrong device may be about this one. Pure.
 *
 * Shape: the count is since the host began, and of nobody in particular, so this is worth knowing and no more. What the host sends is not checked, and
 * where somebody said by which device the packet comes in, the kernel was asked whether it lets it in.
 */
export function counterNotes(
  packet: AskedPacket,
  ways: readonly Way[],
  facts: WayFacts,
  { reversePathDrops }: Counters,
): readonly string[] {
  const { device, isDeviceAssumed, source, destination, port, protocol, family } = packet;
  if (reversePathDrops === 0 || family === "IPv6" || isDeviceAssumed !== true) return [];
  const pods = new Set(ways.flatMap(({ there, endpoint }) => (there.is === "way" && endpoint.isLocal ? [there.device] : [])));
  // A packet that a bridge's port takes in comes in by the bridge, and a pod's device takes in that pod's alone.
  const others = [...facts.links.values()].filter(
    ({ name, master, namespace }) =>
      name !== device && name !== "lo" && master === undefined && namespace === undefined && !pods.has(name) && isStrict(name, facts),
  );
  const [first] = others;
  if (first === undefined) return [];
  const names = listedNames(
    others.map(({ name }) => name),
    DEVICES_SHOWN,
  );
  const target = `${hostPort(destination, port)}${protocol === "TCP" ? "" : `/${protocol.toLowerCase()}`}`;
  return [
    `the kernel has dropped ${reversePathDrops} packets so far for coming in by another device than answers would leave by (rp_filter is strict on ${names}). Whether they were like this one is not known: it was taken to come in by ${device}. Where it comes in by another device, ask with that: turnout why ${source} ${target} --in ${first.name}`,
  ];
}

function isStrict(device: string, { parameters }: WayFacts): boolean {
  const of = (name: string): number => Number(parameters.get(`ipv4/conf/${name}/rp_filter`) ?? 0);
  return Math.max(of("all"), of(device)) === 1;
}

const DEVICES_SHOWN = 4;
