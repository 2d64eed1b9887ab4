import { namesLoopback, nodePortAddresses, unusableReason } from "@turnout/core/backend";
import type { Context } from "@turnout/core/backend";
import { chain, counted, hexBit, wordsOf } from "./chains.ts";
import { byteRules, countRule, countSetStatements } from "./count-sets.ts";
import { BYTES_CHAIN, DISCARD_CHAIN, layoutName, LOOPBACK_CHAIN, LOOPBACK_SET, OUTSIDE_CHAIN, REFUSE_CHAIN } from "./names.ts";
import { endpointMap, PROTOCOLS } from "./objects.ts";
import type { ChainObject, NftObject } from "./objects.ts";
import type { NftFacts, NftOptions } from "./options.ts";

/**
 * Base chains: where the kernel calls in. All nat chains of a hook run inside one hook of the kernel's, at dstnat (-100) or srcnat (100), and the first
 * that translates ends it. Priorities order them only among themselves: ours come before those at dstnat and srcnat, such as iptables', whichever
 * program made its chains first (docs/adr/0076-nat-chains-before-others.md).
 */
export const BASE_CHAINS: Readonly<Record<string, string>> = {
  "nat-prerouting": "type nat hook prerouting priority -101",
  "nat-output": "type nat hook output priority -101",
  "nat-postrouting": "type nat hook postrouting priority 99",
  // Behind all nat chains, also for packets of which another program's rule has rewritten the source.
  "mark-postrouting": "type filter hook postrouting priority 101",
  "filter-forward": "type filter hook forward priority 0",
  "filter-output": "type filter hook output priority 0",
  // Behind translation, and where each packet of a flow comes by first.
  "bytes-prerouting": "type filter hook prerouting priority -50",
  "bytes-output": "type filter hook output priority -50",
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

function skeletonChains(node: Context<NftFacts>["node"], answersOnAll: boolean, isCounting: boolean): readonly ChainObject[] {
  const words = wordsOf(node.family, isCounting);
  const { ip, loopback } = words;
  const bit = hexBit(node.settings.masqueradeBit);
  const destination = `${ip} daddr . meta l4proto . th dport`;
  const nodePort = answersOnAll ? `fib daddr type local ${ip} daddr != ${loopback}` : `${ip} daddr @nodeport-ips`;
  // Packets that reach the filter hooks still addressed to a service address were not translated: nobody listens there.
  const unclaimed = ["ct state new goto unclaimed"];
  return [
    chain(REFUSE_CHAIN, counted("counted-rejects", words, ["reject"])),
    ...(namesLoopback(node.settings, node.family)
      ? [chain(LOOPBACK_CHAIN, [`update @${LOOPBACK_SET} { meta l4proto counter }`, `goto ${REFUSE_CHAIN}`])]
      : []),
    ...(isCounting ? [chain(DISCARD_CHAIN, [countRule("counted-drops", ip), "drop"])] : []),
    ...(isCounting ? [chain(OUTSIDE_CHAIN, [countRule("counted-outside", ip), "drop"])] : []),
    chain("dispatch", [`${destination} vmap @services`, `${nodePort} meta l4proto . th dport vmap @nodeports`]),
    chain("unclaimed", [`${ip} daddr @cluster-ips reject`, ...node.serviceCIDRs.map((cidr) => `${ip} daddr ${cidr} drop`)]),
    chain("nat-prerouting", ["goto dispatch"]),
    chain("nat-output", ["goto dispatch"]),
    chain("nat-postrouting", [
      `meta mark and ${bit} == ${bit} masquerade fully-random`,
      `ct status dnat ${ip} saddr . ${ip} daddr @hairpin masquerade fully-random`,
    ]),
    chain("mark-postrouting", [`meta mark and ${bit} == ${bit} meta mark set meta mark xor ${bit}`]),
    chain("filter-forward", unclaimed),
    // What the host sends to an address of its own (a node-local DNS cache has a cluster IP) is answered by itself.
    chain(
      "filter-output",
      unclaimed.map((rule) => `oifname != "lo" ${rule}`),
    ),
  ];
}

/** Bytes of translated flows, once for each packet: what this node sends to itself was counted when it left. */
function byteChains(ip: string): readonly ChainObject[] {
  const toCounting = `ct status dnat goto ${BYTES_CHAIN}`;
  return [
    chain(BYTES_CHAIN, byteRules(ip)),
    chain("bytes-prerouting", [`iifname != "lo" ${toCounting}`]),
    chain("bytes-output", [toCounting]),
  ];
}

/** How endpoints are numbered in a key. */
const index = "numgen random mod 65536";

/** The statement that makes a map of endpoints, by its name. */
export function mapStatement(family: "ip" | "ip6", name: string): string {
  const [, ofNodePorts, protocol = ""] = /^(nodeport-)?endpoints-([a-z]+)/.exec(name) ?? [];
  const endpoint = `${family} daddr . ${protocol} dport`;
  const key = ofNodePorts === undefined ? endpoint : `${protocol} dport`;
  return `add map ${family} turnout ${name} { typeof ${key} . ${index} : ${endpoint}; }`;
}

/** Statements that make the table with its maps and sets, for one nft family. */
export function tableStatements(family: "ip" | "ip6", layout: string): readonly string[] {
  const address = family === "ip" ? "ipv4_addr" : "ipv6_addr";
  const set = (name: string, body: string): string => `add set ${family} turnout ${name} { ${body} }`;
  const map = (name: string, body: string): string => `add map ${family} turnout ${name} { ${body} }`;
  return [
    `add table ${family} turnout`,
    set("cluster-ips", `type ${address};`),
    set("nodeport-ips", `type ${address};`),
    set("hairpin", `type ${address} . ${address};`),
    map("services", `type ${address} . inet_proto . inet_service : verdict;`),
    map("nodeports", "type inet_proto . inet_service : verdict;"),
    // A map a protocol: nft adds the match of the protocol a map's type names to the rules that look things up in it.
    ...PROTOCOLS.flatMap((protocol) => (["service", "nodeport"] as const).map((kind) => mapStatement(family, endpointMap(kind, protocol)))),
    set("affinity", `typeof ${family} saddr . ${index} . ${index}; size 1048576; flags dynamic,timeout;`),
    set(LOOPBACK_SET, "type inet_proto; size 8; flags dynamic;"),
    map("affinity-endpoints", `typeof ${index} . ${index} . ${index} : verdict;`),
    ...(layout === layoutName(true) ? countSetStatements(family) : []),
    `add chain ${family} turnout layout-${layout}`,
  ];
}
