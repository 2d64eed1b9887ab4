/**
 * Words nft 1.0.6 doesn't take for a name, because its grammar has them; found by trying to name chains so.
 *
 * Edges: words that are special only behind others (`ttl`, `count`, `established`) are names elsewhere.
 */
export const RESERVED_WORDS: ReadonlySet<string> = new Set(
  (
    "accept add ah all and arp auto-merge bridge cgroup chain comment comp constant continue counter cpu create ct day dccp " +
    "define delete describe device devices dnat drop dst dup dynamic ecn element elements esp ether exists expires exthdr fib " +
    "flags flow flowtable flush frag fwd gc-interval get goto handle hbh hook hour ibriport ibrname icmp icmpv6 igmp iif " +
    "iifgroup iifname iiftype include index inet insert interval ip ip6 ipsec jhash jump limit list log lt map mark masquerade " +
    "meta meter mh missing monitor netdev nftrace not notrack numgen obriport obrname offload oif oifgroup oifname oiftype or " +
    "osf pkttype policy position priority queue quota random redefine redirect reject rename replace reset return rt rt0 rt2 " +
    "rtclassid rule ruleset sctp secmark set size skgid skuid snat socket srh symhash synproxy table tcp th time timeout tproxy " +
    "type typeof udp udplite undefine update vlan vmap xt"
  ).split(" "),
);
