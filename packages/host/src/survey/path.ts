import { hostPort } from "@turnout/core";
import type { AskedPacket, Cause, Exec, Fate, FateEndpoint, Survey } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";
import { flowCauses } from "./flow-causes.ts";
import { foreignCauses } from "./foreign-causes.ts";
import { isProxyChain, readForeignTables } from "./foreign-tables.ts";
import type { ForeignTables, ReadFile } from "./foreign-tables.ts";
import { playChain } from "./rules/play.ts";
import type { ForeignTable, HookedPacket } from "./rules/rule.ts";
import { readWay, readWayFacts } from "./way.ts";
import { wayCauses, waySteps } from "./way-causes.ts";
import type { Way, WayFacts } from "./way.ts";

/** What the host is read with. */
export interface PathTools {
  readonly exec: Exec;
  readonly netlink: Pick<Netlink, "flowsOfClient">;
  readonly read: ReadFile;
}

/** A packet, and what is to become of it. */
export interface PathQuestion {
  readonly packet: AskedPacket;
  readonly fate: Fate;
  readonly hostAddresses: readonly string[];
  /** The backend's own rules are in kube-proxy's chains; elsewhere these are another proxy's. */
  readonly hasKubeChains: boolean;
  /** Of the packet mark; undefined: the backend asks for masquerade otherwise. */
  readonly masqueradeBit: number | undefined;
}

/** Endpoints looked at; the others are like them. */
const ENDPOINTS_MAX = 3;
const SET_ROUNDS = 4;
const KUBE_SERVICES = "KUBE-SERVICES";

/**
 * Look at what else decides about a packet on this host: routes, kernel parameters, devices, connections the kernel remembers, rules of other
 * programs. Reads only.
 * @throws {ProxyError} what `ip` fails with.
 */
export async function surveyPath(tools: PathTools, question: PathQuestion, signal: AbortSignal): Promise<Survey> {
  const { packet, fate } = question;
  const endpoints = targetsOf(packet, fate);
  const [ways, foreign, flows, counters] = await Promise.all([
    Promise.all(endpoints.map((endpoint) => readWay(tools, packet, endpoint, signal))),
    readForeignTables(tools, packet.family, { readsServices: !question.hasKubeChains }, signal),
    tools.netlink.flowsOfClient(packet.family, packet),
    readCounters(tools.read),
  ]);
  const facts = await readWayFacts(tools, packet, ways, signal);
  const ruled = await Promise.all(ways.map((way) => playForeign(tools.exec, foreign.tables, question, way, facts, signal)));
  const isServed = fate.is === "forward";
  return {
    steps: isServed ? waySteps(ways) : [],
    causes: [
      ...(isServed || fate.is === "pass"
        ? [...firstOfEach(ways.map((way) => wayCauses(packet, way, facts))), ...shared(ruled)]
        : shared(ruled)),
      ...flowCauses(packet, fate, flows),
      ...proxyCauses(question, foreign),
      ...counterCauses(packet, ways, facts, counters),
    ],
    unseen: foreign.unseen,
  };
}

/** kube-proxy's chains serve the address beside the backend's own rules. */
function proxyCauses({ packet, hasKubeChains }: PathQuestion, { tables, proxyTables }: ForeignTables): readonly Cause[] {
  const mend = "see that only one proxy runs here, then restart this one: it removes what others left (unless told --keep-other-rules)";
  const [table] = hasKubeChains ? proxyTables : [];
  if (table !== undefined)
    return [
      {
        id: "two_proxies",
        says: `another service proxy has rules in force on this node: table ${table}`,
        show: `nft -t list table ${table}`,
        mend,
      },
    ];
  const nat = tables.find(({ place, chains }) => place === "nat" && chains.has(KUBE_SERVICES));
  const isServed = nat?.chains.get(KUBE_SERVICES)?.rules.some(({ text }) => text.includes(` ${packet.destination}/`)) ?? false;
  if (hasKubeChains || nat === undefined || !isServed) return [];
  const says = `another service proxy serves this address, too: chain ${KUBE_SERVICES} of the ${nat.name}`;
  return [{ id: "two_proxies", says, show: `${nat.tool} -t nat -S ${KUBE_SERVICES} | grep ${packet.destination}`, mend }];
}

/** A packet that is no Service's goes where it is addressed to. */
function targetsOf({ destination, port }: AskedPacket, fate: Fate): readonly FateEndpoint[] {
  if (fate.is !== "forward") return [{ ip: destination, port, nodeName: undefined, isLocal: false, masquerade: false }];
  // Of those here and those elsewhere some: their ways differ.
  const [here, there] = [true, false].map((isLocal) => fate.endpoints.filter((endpoint) => endpoint.isLocal === isLocal));
  return [...(here ?? []).slice(0, ENDPOINTS_MAX), ...(there ?? []).slice(0, ENDPOINTS_MAX)];
}

/** What is wrong alike on the ways to several endpoints is said of the first. */
function firstOfEach(found: readonly (readonly Cause[])[]): readonly Cause[] {
  const byId = Map.groupBy(found.flat(), ({ id }) => id);
  return [...byId.values()].flatMap(([first, ...others]) => {
    const more = new Set(others.map(({ says }) => says).filter((says) => says !== first?.says)).size;
    return first === undefined ? [] : [more === 0 ? first : { ...first, says: `${first.says} (and ${more} more like it)` }];
  });
}

/** What concerns several endpoints is said once. */
function shared(found: readonly (readonly Cause[])[]): readonly Cause[] {
  const told = new Map<string, Cause>();
  for (const cause of found.flat()) if (!told.has(`${cause.id} ${cause.show}`)) told.set(`${cause.id} ${cause.show}`, cause);
  return [...told.values()];
}

/** Play the packet through the rules of others; sets they ask for are looked into as they are met. */
async function playForeign(
  exec: Exec,
  tables: readonly ForeignTable[],
  question: PathQuestion,
  way: Way,
  facts: WayFacts,
  signal: AbortSignal,
): Promise<readonly Cause[]> {
  const { packet, fate, hostAddresses, masqueradeBit } = question;
  const held = new Map<string, boolean>();
  const outDevice = way.there.is === "way" && !way.there.isLocal ? way.there.device : "";
  const backDevice = way.back?.is === "way" && !way.back.isLocal ? way.back.device : "";
  for (let round = 0; ; round++) {
    const asked = new Map<string, readonly string[]>();
    const isInSet: HookedPacket["isInSet"] = (set, address, port) => {
      const member = port === undefined ? address : `${address},${packet.protocol.toLowerCase()}:${port}`;
      const key = `${set} ${member}`;
      if (!held.has(key)) asked.set(key, [set, member]);
      return held.get(key);
    };
    const isLocal = (address: string): boolean => hostAddresses.includes(address) || address.startsWith("127.") || address === "::1";
    const markBit = masqueradeBit === undefined ? 0 : 2 ** masqueradeBit;
    const hooked = {
      packet,
      endpoint: way.endpoint,
      outDevice,
      backDevice,
      isTranslated: fate.is === "forward",
      markBit,
      isLocal,
      isInSet,
    };
    const causes = [...foreignCauses(tables, hooked), ...mtuCauses(tables, question, way, facts, { isLocal, isInSet })];
    if (asked.size === 0 || round === SET_ROUNDS) return causes;
    await Promise.all(
      [...asked].map(async ([key, [set = "", member = ""]]) => {
        const { code } = await exec.run("ipset", ["test", set, member], { signal });
        held.set(key, code === 0);
      }),
    );
  }
}

/** A narrower device behind a wider one is no fault, as long as the sender gets to hear of it. */
function mtuCauses(
  tables: readonly ForeignTable[],
  { packet, hostAddresses }: PathQuestion,
  { there, endpoint }: Way,
  { links }: WayFacts,
  sets: Pick<HookedPacket, "isLocal" | "isInSet">,
): readonly Cause[] {
  if (there.is !== "way" || packet.device === "") return [];
  const [wide, narrow] = [links.get(packet.device), links.get(there.device)];
  if (wide === undefined || narrow === undefined || narrow.mtu >= wide.mtu) return [];
  const message: HookedPacket = {
    family: packet.family,
    protocol: packet.family === "IPv4" ? "icmp" : "icmpv6",
    source: hostAddresses[0] ?? "",
    destination: packet.source,
    sourcePort: undefined,
    destinationPort: undefined,
    inDevice: "",
    outDevice: packet.device,
    state: "related",
    isTranslated: true,
    mark: 0,
    ...sets,
  };
  for (const table of tables) {
    for (const chain of table.chains.values()) {
      if (chain.hook?.at !== "output" && chain.hook?.at !== "postrouting") continue;
      const played = playChain(table, chain, message, isProxyChain);
      if (played.is === "pass") continue;
      const says = `packets of more than ${narrow.mtu} bytes don't fit ${there.device} on the way to ${hostPort(endpoint.ip, endpoint.port)} (${packet.device} takes ${wide.mtu}), and ${table.name}, chain ${played.chain ?? ""}, drops the ICMP messages that would tell the client: connections open, then hang`;
      return [
        {
          id: "mtu",
          says,
          show: `ip link show ${there.device}; ip link show ${packet.device}`,
          mend: `let ICMP through (${packet.family === "IPv4" ? "fragmentation needed" : "packet too big"}), or give both networks the same MTU`,
        },
      ];
    }
  }
  return [];
}

/** What the kernel has counted in this network namespace. */
interface Counters {
  readonly reversePathDrops: number;
  readonly entries: number;
  readonly entriesMax: number;
}

async function readCounters(read: ReadFile): Promise<Counters> {
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

function counterCauses(
  { family, device }: AskedPacket,
  ways: readonly Way[],
  { parameters }: WayFacts,
  { reversePathDrops, entries, entriesMax }: Counters,
): readonly Cause[] {
  const causes: Cause[] = [];
  if (entriesMax > 0 && entries >= entriesMax * 0.98)
    causes.push({
      id: "conntrack_full",
      says: `the kernel remembers ${entries} connections of ${entriesMax} at most, so new ones are dropped`,
      show: "sysctl net.netfilter.nf_conntrack_count net.netfilter.nf_conntrack_max",
      mend: `sysctl -w net.netfilter.nf_conntrack_max=${entriesMax * 2}, and find who opens so many: conntrack -L | awk '{print $5}' | sort | uniq -c | sort -n`,
    });
  const devices = [device, ...ways.flatMap(({ there }) => (there.is === "way" ? [there.device] : []))].filter((name) => name !== "");
  const strict = devices.find(
    (name) => Math.max(...["all", name].map((one) => Number(parameters.get(`ipv4/conf/${one}/rp_filter`) ?? 0))) === 1,
  );
  if (family === "IPv4" && reversePathDrops > 0 && strict !== undefined) {
    const says = `rp_filter is strict on ${strict}, and the kernel has dropped ${reversePathDrops} packets for coming in by another device than answers would leave by`;
    causes.push({
      id: "rp_filter",
      isSure: false,
      says,
      show: "nstat -az TcpExtIPReversePathFilter; sysctl net.ipv4.conf.all.rp_filter",
      mend: "sysctl -w net.ipv4.conf.all.rp_filter=2 (and of the devices), or give each network one way in and out; ask again with --in DEVICE, the device that packets really come by",
    });
  }
  return causes;
}
