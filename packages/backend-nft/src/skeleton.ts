import { namesLoopback, nodePortAddresses, unusableReason } from "@turnout/core/backend";
import type { Context } from "@turnout/core/backend";
import { concat, ct, goTo, match, meta, numgen, payload, setMark, vmap } from "@turnout/host/nft-statement";
import type { NftCommand, NftExpression, NftHook, NftRuleStatement, NftSetSpec, NftSubject } from "@turnout/host/nft-statement";
import { chain, counted, prefixOf, SCRATCH, wordsOf } from "./chains.ts";
import { byteRules, countIn, countRule, countSetCommands } from "./count-sets.ts";
import {
  BYTES_CHAIN,
  DISCARD_CHAIN,
  isClientsMap,
  isServingMap,
  layoutName,
  LOOPBACK_CHAIN,
  LOOPBACK_SET,
  OUTSIDE_CHAIN,
  REFUSE_CHAIN,
  TABLE,
} from "./names.ts";
import { endpointMap, PROTOCOLS } from "./objects.ts";
import type { ChainObject, ChainRule, NftObject } from "./objects.ts";
import type { NftFacts, NftOptions } from "./options.ts";

/**
 * Base chains: where the kernel calls in. All nat chains of a hook run inside one hook of the kernel's, at dstnat (-100) or srcnat (100), and the first
 * that translates ends it. Priorities order them only among themselves: ours come before those at dstnat and srcnat, such as iptables', whichever
 * program made its chains first (docs/adr/0076-nat-chains-before-others.md).
 */
export const BASE_CHAINS: Readonly<Record<string, NftHook>> = {
  "nat-prerouting": { type: "nat", hook: "prerouting", prio: -101 },
  "nat-output": { type: "nat", hook: "output", prio: -101 },
  "nat-postrouting": { type: "nat", hook: "postrouting", prio: 99 },
  // Behind all nat chains, also for packets of which another program's rule has rewritten the source.
  "mark-postrouting": { type: "filter", hook: "postrouting", prio: 101 },
  "filter-forward": { type: "filter", hook: "forward", prio: 0 },
  "filter-output": { type: "filter", hook: "output", prio: 0 },
  // Behind translation, and where each packet of a flow comes by first.
  "bytes-prerouting": { type: "filter", hook: "prerouting", prio: -50 },
  "bytes-output": { type: "filter", hook: "output", prio: -50 },
};

/** The chains by which packets that come in by a device ("": that this host sends) come to elements. */
export function waysIn(device: string): readonly string[] {
  return [device === "" ? "nat-output" : "nat-prerouting", "dispatch"];
}

/** Say what the table holds whatever the services are. */
export function renderSkeleton(
  { node, host }: Context<NftFacts>,
  { counters, countBytes }: Pick<NftOptions, "counters" | "countBytes">,
): readonly NftObject[] {
  const answering = answeringAddresses(node, host);
  const table: NftObject = { kind: "table", key: "layout", value: layoutName(counters) };
  const elements: readonly NftObject[] = answering === "all" ? [] : answering.map((ip) => ({ kind: "nodeport-ips", key: ip, value: true }));
  const { ip } = wordsOf(node.family, counters);
  return [table, ...skeletonChains(node, answering === "all", counters), ...(countBytes ? byteChains(ip) : []), ...elements];
}

/** kube-proxy's nftables mode answers node ports on the primary address unless told otherwise. @source KEP-3866 */
export const NODE_PORT_ADDRESSES: readonly string[] = ["primary"];

/** The kernel answers no node port on loopback: the process answers TCP there, where loopback is named. */
function answeringAddresses({ family, addresses, settings }: Context<NftFacts>["node"], host: NftFacts): "all" | readonly string[] {
  const wanted = settings.nodePortAddresses ?? NODE_PORT_ADDRESSES;
  const chosen = nodePortAddresses({ wanted, family, primary: addresses[0], hostAddresses: host.addresses[family] });
  return chosen === "all" ? chosen : chosen.filter((address) => unusableReason(address) !== "loopback");
}

const DROP: NftRuleStatement = { drop: null };
const MASQUERADE: NftRuleStatement = { masquerade: { flags: "fully-random" } };

function skeletonChains(node: Context<NftFacts>["node"], answersOnAll: boolean, isCounting: boolean): readonly ChainObject[] {
  const words = wordsOf(node.family, isCounting);
  const { ip, loopback } = words;
  const bit = 2 ** node.settings.masqueradeBit;
  const address = payload(ip, "daddr");
  const port = [meta("l4proto"), payload("th", "dport")];
  const nodePort = answersOnAll
    ? [match({ fib: { result: "type", flags: ["daddr"] } }, "local"), match(address, loopback, "!=")]
    : [match(address, "@nodeport-ips")];
  const isMarked = match({ "&": [meta("mark"), bit] }, bit);
  const isTranslated = match(ct("status"), "dnat", "in");
  // Packets that reach the filter hooks still addressed to a service address were not translated: no one listens there.
  const unclaimed: ChainRule = [match(ct("state"), "new", "in"), goTo("unclaimed")];
  return [
    chain(REFUSE_CHAIN, () => counted("counted-rejects", words, [[{ reject: null }]])),
    ...(namesLoopback(node.settings, node.family)
      ? [chain(LOOPBACK_CHAIN, () => [[countIn(LOOPBACK_SET, meta("l4proto"))], [goTo(REFUSE_CHAIN)]])]
      : []),
    ...(isCounting ? [chain(DISCARD_CHAIN, () => [countRule("counted-drops", ip), [DROP]])] : []),
    ...(isCounting ? [chain(OUTSIDE_CHAIN, () => [countRule("counted-outside", ip), [DROP]])] : []),
    chain("dispatch", () => [[vmap(concat(address, ...port), "@services")], [...nodePort, vmap(concat(...port), "@nodeports")]]),
    chain("unclaimed", () => [
      [match(address, "@cluster-ips"), { reject: null }],
      ...node.serviceCIDRs.map((cidr): ChainRule => [match(address, prefixOf(cidr)), DROP]),
    ]),
    chain("nat-prerouting", () => [[goTo("dispatch")]]),
    chain("nat-output", () => [[goTo("dispatch")]]),
    chain("nat-postrouting", () => [
      [isMarked, MASQUERADE],
      [isTranslated, match(concat(payload(ip, "saddr"), address), "@hairpin"), MASQUERADE],
    ]),
    chain("mark-postrouting", () => [[isMarked, setMark({ "^": [meta("mark"), bit] })]]),
    chain("filter-forward", () => [unclaimed]),
    // What the host sends to an address of its own (a node-local DNS cache has a cluster IP) is answered by itself.
    chain("filter-output", () => [[match(meta("oifname"), "lo", "!="), ...unclaimed]]),
  ];
}

/** Bytes of translated flows, once for each packet: what this node sends to itself was counted when it left. */
function byteChains(ip: string): readonly ChainObject[] {
  const toCounting: ChainRule = [match(ct("status"), "dnat", "in"), goTo(BYTES_CHAIN)];
  return [
    chain(BYTES_CHAIN, () => byteRules(ip)),
    chain("bytes-prerouting", () => [[match(meta("iifname"), "lo", "!="), ...toCounting]]),
    chain("bytes-output", () => [toCounting]),
  ];
}

/** How endpoints are numbered in a key. */
const INDEX = numgen(65_536);

/** A type that is that of several expressions. */
function like(...parts: readonly NftExpression[]): { readonly typeof: NftExpression } {
  return { typeof: concat(...parts) };
}

/** A map that comes and goes with what is in it, by its name, as a command is about it. */
export function mapOf(family: "ip" | "ip6", name: string): NftSubject {
  if (isServingMap(name)) return { map: { family, table: TABLE, name, type: { typeof: SCRATCH }, map: "verdict" } };
  if (!isClientsMap(name)) return endpointMapOf(family, name);
  // Without a size the kernel takes 65,535 clients, and memory only for those that there are.
  const spec = { type: { typeof: payload(family, "saddr") }, map: { typeof: SCRATCH }, flags: ["dynamic", "timeout"] };
  return { map: { family, table: TABLE, name, ...spec } };
}

function endpointMapOf(family: "ip" | "ip6", name: string): NftSubject {
  const [, ofNodePorts, protocol = ""] = /^(nodeport-)?endpoints-([a-z]+)/.exec(name) ?? [];
  const [address, port] = [payload(family, "daddr"), payload(protocol, "dport")];
  const type = ofNodePorts === undefined ? like(address, port, INDEX) : like(port, INDEX);
  return { map: { family, table: TABLE, name, type, map: like(address, port) } };
}

/** Commands that make the table with its maps and sets, for one nft family. */
export function tableCommands(family: "ip" | "ip6", layout: string): readonly NftCommand[] {
  const address = family === "ip" ? "ipv4_addr" : "ipv6_addr";
  const set = (name: string, spec: Omit<NftSetSpec, "family" | "table" | "name">): NftCommand => ({
    add: { set: { family, table: TABLE, name, ...spec } },
  });
  const verdicts = (name: string, type: NftSetSpec["type"] = ""): NftCommand => ({
    add: { map: { family, table: TABLE, name, type, map: "verdict" } },
  });
  return [
    { add: { table: { family, name: TABLE } } },
    set("cluster-ips", { type: address }),
    set("nodeport-ips", { type: address }),
    set("hairpin", { type: [address, address] }),
    verdicts("services", [address, "inet_proto", "inet_service"]),
    verdicts("nodeports", ["inet_proto", "inet_service"]),
    // A map a protocol: nft adds the match of the protocol a map's type names to the rules that look things up in it.
    ...PROTOCOLS.flatMap((protocol) =>
      (["service", "nodeport"] as const).map((kind) => ({ add: endpointMapOf(family, endpointMap(kind, protocol)) })),
    ),
    set(LOOPBACK_SET, { type: "inet_proto", size: 8, flags: ["dynamic"] }),
    ...(layout === layoutName(true) ? countSetCommands(family) : []),
    { add: { chain: { family, table: TABLE, name: `layout-${layout}` } } },
  ];
}
