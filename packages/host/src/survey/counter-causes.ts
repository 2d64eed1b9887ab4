import { hostPort } from "@turnout/core";
import type { AskedPacket, Cause } from "@turnout/core";
import type { ReadFile } from "./foreign-tables.ts";
import type { WayFacts } from "./way-facts.ts";
import type { Way } from "./way.ts";

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
export function counterCauses(
  packet: AskedPacket,
  ways: readonly Way[],
  facts: WayFacts,
  { reversePathDrops, entries, entriesMax }: Counters,
): readonly Cause[] {
  const causes: Cause[] = [];
  if (entriesMax > 0 && entries >= entriesMax * 0.98)
    causes.push({
      id: "conntrack_full",
      says: `the kernel remembers ${entries} connections of ${entriesMax} at most, so new ones are dropped`,
      show: ["sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max"],
      mend: "let it remember more, and find who opens so many",
      commands: [
        `sysctl -w net.netfilter.nf_conntrack_max=${entriesMax * 2}`,
        "conntrack -L | grep -o 'src=[^ ]*' | sort | uniq -c | sort -n | tail",
      ],
    });
  return reversePathDrops === 0 || packet.family === "IPv6"
    ? causes
    : [...causes, ...reversePathCauses(packet, ways, facts, reversePathDrops)];
}

/** A guess where nobody said by which device the packet comes in; where somebody did, the kernel was asked whether it lets it in. */
function reversePathCauses(packet: AskedPacket, ways: readonly Way[], { links, parameters }: WayFacts, drops: number): readonly Cause[] {
  const { device, isDeviceAssumed, source, destination, port, protocol } = packet;
  if (device !== "" && isDeviceAssumed !== true) return [];
  const isStrict = (name: string): boolean =>
    Math.max(...["all", name].map((one) => Number(parameters.get(`ipv4/conf/${one}/rp_filter`) ?? 0))) === 1;
  const onTheWay = [device, ...ways.flatMap(({ there }) => (there.is === "way" ? [there.device] : []))];
  const pods = ways.flatMap(({ there, endpoint }) => (there.is === "way" && endpoint.isLocal ? [there.device] : []));
  const strict = [...new Set([...onTheWay, ...links.keys()])].filter((name) => !["", "lo"].includes(name) && isStrict(name));
  const others = strict.filter((name) => name !== device && !pods.includes(name));
  if (strict.length === 0) return [];
  const assumed =
    device === "" ? "" : `. Nobody said by which device this one comes in: ${device} was assumed, by which answers would leave`;
  const shown = strict.slice(0, DEVICES_SHOWN).join(", ");
  const tried = device === "" ? [] : others.slice(0, DEVICES_TRIED);
  const target = `${hostPort(destination, port)}${protocol === "TCP" ? "" : `/${protocol.toLowerCase()}`}`;
  return [
    {
      id: "rp_filter",
      isSure: false,
      says: `the kernel has dropped ${drops} packets for coming in by another device than answers would leave by; rp_filter is strict on ${shown}${strict.length > DEVICES_SHOWN ? ` and ${strict.length - DEVICES_SHOWN} more` : ""}${assumed}`,
      show: ["nstat -az TcpExtIPReversePathFilter", "tcpdump -ni any host " + source],
      mend:
        tried.length === 0
          ? "give each network one way in and out, or loosen the check where packets are meant to come and go by different devices (rp_filter=2)"
          : "ask again with the device that such packets really come in by",
      ...(tried.length === 0 ? {} : { commands: tried.map((name) => `turnout why ${source} ${target} --in ${name}`) }),
    },
  ];
}

const DEVICES_SHOWN = 4;
const DEVICES_TRIED = 3;
