/**
 * The kernel modules that tests of IPVS load in a guest: IPVS with every scheduler, ipset with the types that kube-proxy's ipvs mode uses, what
 * rules of iptables match and do, and the devices of a small cluster.
 *
 * Edges: no `sctp`, which IPVS and iptables don't need: with it the kernel answers SCTP packets that the laboratory's agents wait for with an ABORT.
 * `twos` is the one scheduler of Linux that Debian does not build. nf_tables is not here: in Debian's guest it is built without the families
 * ip, ip6 and inet, so `nft` and `iptables-nft` cannot do anything there; `iptables-legacy` can.
 * @source Debian's user-mode-linux 6.1um4, `linux.uml --showconfig`
 */
export const IPVS_MODULES: readonly string[] = [
  "ip_vs ip_vs_rr ip_vs_wrr ip_vs_lc ip_vs_wlc ip_vs_lblc ip_vs_lblcr ip_vs_sh ip_vs_dh ip_vs_mh",
  "ip_vs_sed ip_vs_nq ip_vs_fo ip_vs_ovf",
  "ip_set ip_set_hash_ip ip_set_hash_ipport ip_set_hash_ipportip ip_set_hash_ipportnet ip_set_bitmap_port",
  "iptable_nat iptable_filter iptable_mangle ip6table_nat ip6table_filter ip6table_mangle ipt_REJECT ip6t_REJECT",
  "xt_set xt_ipvs xt_comment xt_mark xt_conntrack xt_addrtype xt_physdev xt_multiport xt_statistic xt_recent",
  "xt_tcpudp xt_sctp xt_nat xt_MASQUERADE xt_nfacct",
  "nf_conntrack nf_conntrack_netlink dummy veth bridge br_netfilter",
].flatMap((names) => names.split(" "));
