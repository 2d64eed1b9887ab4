import { FAMILIES } from "@turnout/core";
import type { Way } from "../services.ts";
import { HOST_PORT } from "../site.ts";
import type { FaultStage, ServiceName } from "./stage.ts";
import { FORWARDED } from "./fault.ts";
import type { HealthyCase } from "./fault.ts";

/** What may be around packets, as shell commands on node1 that put it there and take it away. */
export interface HealthyVariant {
  readonly name: string;
  readonly inject: string;
  readonly fix: string;
  /** Backends that can have it; default all. */
  readonly backends?: readonly string[];
}

/** What is around the packets that arrive; nothing of it is to be blamed. */
export const HEALTHY_VARIANTS: readonly HealthyVariant[] = [
  { name: "as it is", inject: "true", fix: "true" },
  {
    name: "firewalls that let them through",
    backends: FORWARDED,
    inject: `nft 'add table inet firewalld; add chain inet firewalld filter_FORWARD { type filter hook forward priority 10; policy drop; }; add rule inet firewalld filter_FORWARD ct state established,related accept; add rule inet firewalld filter_FORWARD ct status dnat accept; add rule inet firewalld filter_FORWARD iifname "veth*" accept; add table inet blocklist; add set inet blocklist bad { type ipv4_addr; elements = { 198.18.0.1 }; }; add chain inet blocklist pre { type filter hook prerouting priority -300; }; add rule inet blocklist pre ip saddr @bad drop; add rule inet blocklist pre ct state invalid drop; add rule inet blocklist pre tcp flags & (fin|syn|rst|ack) != syn ct state new drop; add rule inet blocklist pre fib saddr . iif oif missing drop; add rule inet blocklist pre limit rate 5/second log'; iptables-nft -P FORWARD DROP; iptables-nft -A FORWARD -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-nft -A FORWARD -m conntrack --ctstate DNAT -j ACCEPT; iptables-nft -A FORWARD -s 10.1.0.0/16 -j ACCEPT; ip6tables-nft -A FORWARD -p tcp --dport 22 -j DROP; iptables-nft -t nat -A PREROUTING -p tcp --dport 2222 -j REDIRECT --to-ports 22`,
    fix: `nft delete table inet firewalld; nft delete table inet blocklist; iptables-nft -P FORWARD ACCEPT; iptables-nft -F FORWARD; ip6tables-nft -F FORWARD; iptables-nft -t nat -F PREROUTING`,
  },
  {
    name: "a NetworkPolicy that allows, Docker's chains, fail2ban with others in it",
    backends: FORWARDED,
    inject: `iptables-nft -N DOCKER-USER; iptables-nft -A DOCKER-USER -j RETURN; iptables-nft -N DOCKER; iptables-nft -A FORWARD -j DOCKER-USER; iptables-nft -A FORWARD -o docker0 -j DOCKER; iptables-nft -N f2b-sshd; iptables-nft -A f2b-sshd -s 198.18.0.7/32 -j REJECT; iptables-nft -A f2b-sshd -j RETURN; iptables-nft -I INPUT -p tcp -m multiport --dports 22 -j f2b-sshd; ipset create cali40s:ok hash:net family inet; ipset add cali40s:ok 10.1.0.0/16; ipset add cali40s:ok 203.0.113.0/24; ipset add cali40s:ok 172.18.0.0/16; iptables-nft -N cali-tw-veth1; iptables-nft -A cali-tw-veth1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-nft -A cali-tw-veth1 -m set --match-set cali40s:ok src -j ACCEPT; iptables-nft -A cali-tw-veth1 -j DROP; iptables-nft -I FORWARD -o veth1 -g cali-tw-veth1`,
    fix: `iptables-nft -F; iptables-nft -X; ipset destroy cali40s:ok`,
  },
  {
    name: "strict rp_filter, a narrower uplink, marks of others, a second table of routes",
    backends: FORWARDED,
    inject: `for d in eth0 veth1 veth2 veth3; do sysctl -qw net.ipv4.conf.$d.rp_filter=1; done; ip link set eth0 mtu 1450; nft 'add table inet marks; add chain inet marks pre { type filter hook prerouting priority -150; }; add rule inet marks pre meta mark set meta mark or 0x10000; add chain inet marks f { type filter hook forward priority -150; }; add rule inet marks f meta mark set meta mark and 0xfffeffff'; ip rule add fwmark 0x20000/0x20000 lookup 77; ip link add spare type veth peer name spare1`,
    fix: `for d in eth0 veth1 veth2 veth3; do sysctl -qw net.ipv4.conf.$d.rp_filter=0; done; ip link set eth0 mtu 1500; nft delete table inet marks; ip rule del fwmark 0x20000/0x20000 lookup 77; ip link del spare`,
  },
  {
    name: "ipvs: firewalls at INPUT, OUTPUT and FORWARD that let them through, a NetworkPolicy that allows, fail2ban with others in it",
    backends: ["ipvs"],
    inject: `iptables-legacy-save -t filter >/tmp/turnout-healthy; ipset create cali40s:ok hash:net family inet; for n in 10.1.0.0/16 203.0.113.0/24 172.18.0.0/16 10.96.0.0/16; do ipset add cali40s:ok $n; done; iptables-legacy -N cali-tw-veth1; iptables-legacy -A cali-tw-veth1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-legacy -A cali-tw-veth1 -m set --match-set cali40s:ok src -j ACCEPT; iptables-legacy -A cali-tw-veth1 -j DROP; iptables-legacy -I OUTPUT -o veth1 -g cali-tw-veth1; iptables-legacy -A OUTPUT -p tcp --dport 22 -j DROP; iptables-legacy -N f2b-sshd; iptables-legacy -A f2b-sshd -s 198.18.0.7/32 -j REJECT; iptables-legacy -A f2b-sshd -j RETURN; iptables-legacy -I INPUT -p tcp -m multiport --dports 22 -j f2b-sshd; iptables-legacy -A INPUT -i lo -j ACCEPT; iptables-legacy -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-legacy -A INPUT -i veth+ -j ACCEPT; iptables-legacy -A INPUT -s 203.0.113.0/24 -j ACCEPT; iptables-legacy -P INPUT DROP; iptables-legacy -A FORWARD -i veth+ -d 10.1.0.0/16 -j ACCEPT; iptables-legacy -P FORWARD DROP; ip6tables-legacy -A INPUT -p tcp --dport 22 -j DROP`,
    fix: `iptables-legacy-restore -T filter </tmp/turnout-healthy; rm /tmp/turnout-healthy; ipset destroy cali40s:ok; ip6tables-legacy -D INPUT -p tcp --dport 22 -j DROP`,
  },
  {
    name: "ipvs: strict rp_filter, a narrower uplink, marks of others, a second table of routes, forwarding by device",
    backends: ["ipvs"],
    inject: `for d in eth0 veth1 veth2 veth3; do sysctl -qw net.ipv4.conf.$d.rp_filter=1; done; ip link set eth0 mtu 1450; iptables-legacy -t mangle -A PREROUTING -j MARK --or-mark 0x10000; iptables-legacy -t mangle -A OUTPUT -j MARK --and-mark 0xfffeffff; ip rule add fwmark 0x20000/0x20000 lookup 77; ip link add spare type veth peer name spare1; sysctl -qw net.ipv4.conf.spare.forwarding=0`,
    fix: `for d in eth0 veth1 veth2 veth3; do sysctl -qw net.ipv4.conf.$d.rp_filter=0; done; ip link set eth0 mtu 1500; iptables-legacy -t mangle -D PREROUTING -j MARK --or-mark 0x10000; iptables-legacy -t mangle -D OUTPUT -j MARK --and-mark 0xfffeffff; ip rule del fwmark 0x20000/0x20000 lookup 77; ip link del spare`,
  },
  {
    name: "userspace: firewalls at INPUT and OUTPUT that let them through, FORWARD that drops, a NetworkPolicy that allows, fail2ban with others in it",
    backends: ["userspace"],
    inject: `ipset create cali40s:ok hash:net family inet; for n in 10.1.0.0/16 172.18.0.0/16; do ipset add cali40s:ok $n; done; iptables-nft -N cali-tw-veth1; iptables-nft -A cali-tw-veth1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-nft -A cali-tw-veth1 -m set --match-set cali40s:ok src -j ACCEPT; iptables-nft -A cali-tw-veth1 -j DROP; iptables-nft -I OUTPUT -o veth1 -g cali-tw-veth1; iptables-nft -A OUTPUT -p tcp --dport 22 -j DROP; iptables-nft -N f2b-sshd; iptables-nft -A f2b-sshd -s 198.18.0.7/32 -j REJECT; iptables-nft -A f2b-sshd -j RETURN; iptables-nft -I INPUT -p tcp -m multiport --dports 22 -j f2b-sshd; iptables-nft -A INPUT -i lo -j ACCEPT; iptables-nft -A INPUT -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-nft -A INPUT -i veth+ -j ACCEPT; iptables-nft -A INPUT -s 203.0.113.0/24 -m addrtype --dst-type LOCAL -j ACCEPT; iptables-nft -P INPUT DROP; iptables-nft -A FORWARD -s 10.1.0.0/16 -d 10.1.0.0/16 -j ACCEPT; iptables-nft -P FORWARD DROP; ip6tables-nft -A INPUT -p tcp --dport 22 -j DROP`,
    fix: `iptables-nft -P INPUT ACCEPT; iptables-nft -P FORWARD ACCEPT; iptables-nft -F; iptables-nft -X; ip6tables-nft -F INPUT; ipset destroy cali40s:ok`,
  },
  {
    name: "userspace: strict rp_filter, a narrower uplink, marks of others, a second table of routes",
    backends: ["userspace"],
    inject: `for d in eth0 veth1 veth2 veth3; do sysctl -qw net.ipv4.conf.$d.rp_filter=1; done; ip link set eth0 mtu 1450; nft 'add table inet marks; add chain inet marks pre { type filter hook prerouting priority -150; }; add rule inet marks pre meta mark set meta mark or 0x10000; add chain inet marks o { type route hook output priority -150; }; add rule inet marks o meta mark set meta mark and 0xfffeffff'; ip rule add fwmark 0x20000/0x20000 lookup 77; ip link add spare type veth peer name spare1`,
    fix: `for d in eth0 veth1 veth2 veth3; do sysctl -qw net.ipv4.conf.$d.rp_filter=0; done; ip link set eth0 mtu 1500; nft delete table inet marks; ip rule del fwmark 0x20000/0x20000 lookup 77; ip link del spare`,
  },
];

/** What can be around packets of a backend. */
export function healthyVariants(backend: string): readonly HealthyVariant[] {
  return HEALTHY_VARIANTS.filter(({ backends }) => backends?.includes(backend) ?? true);
}

/** Packets that arrive. */
export function healthyCases({ services, site }: FaultStage): readonly HealthyCase[] {
  const table: readonly (readonly [from: string, service: ServiceName, way: Way])[] = [
    ["pod-1-2", "web", "clusterIP"],
    ["pod-1-2", "remote", "clusterIP"],
    ["pod-1-2", "here", "clusterIP"],
    ["pod-1-2", "internal", "clusterIP"],
    ["pod-1-2", "affine", "clusterIP"],
    ["pod-1-2", "hairpin", "clusterIP"],
    ["pod-1-2", "local", "externalIP"],
    ["host", "web", "clusterIP"],
    ["host", "here", "clusterIP"],
    ["host", "local", "nodePort@node1"],
    ["client1", "web", "externalIP"],
    ["client1", "local", "externalIP"],
    ["client1", "ranged", "loadBalancerIP"],
    ["client1", "here", "nodePort@node1"],
    ["client1", "remote", "nodePort@node1"],
    ["client1", "web", "clusterIP"],
    ["pod-1-2", "self", "clusterIP"],
  ];
  return FAMILIES.flatMap((family) => [
    ...table.flatMap(([from, service, way]): readonly HealthyCase[] => {
      const { address, port } = services[service].target(way, family);
      const name = `${from} to ${service} by its ${way}, ${family}`;
      const tcp = { name, family, ask: { from, to: address, port } };
      return way === "clusterIP" ? [tcp, { ...tcp, name: `${name}, UDP`, ask: { ...tcp.ask, protocol: "UDP" } }] : [tcp];
    }),
    {
      name: `client1 to node1 itself, ${family}`,
      family,
      ask: { from: "client1", to: site.place("node1").address(family), port: HOST_PORT },
    },
    { name: `pod-1-2 to a pod itself, ${family}`, family, ask: { from: "pod-1-2", to: site.place("pod-1-1").address(family), port: 8080 } },
  ]);
}
