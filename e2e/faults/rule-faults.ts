import type { FaultStage } from "./stage.ts";
import { FORWARDED } from "./fault.ts";
import type { Fault } from "./fault.ts";

const nft = (text: string): string => `nft '${text}'`;

/** What faults by rules are made of. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site, backend }: FaultStage) {
  const cluster = (name: keyof FaultStage["services"]): { readonly to: string; readonly port: number } => {
    const { address, port } = services[name].target("clusterIP", "IPv4");
    return { to: address, port };
  };
  const external = services.web.target("externalIP", "IPv4");
  const node = services.web.target("nodePort@node1", "IPv4");
  const fromClient = { from: "client1", to: external.address, port: external.port };
  const fromPod = { from: "pod-1-2", ...cluster("here") };
  const fromHost = { from: "host", ...cluster("here") };
  const pod = site.place("pod-1-1").address("IPv4");
  const client = site.place("client1").address("IPv4");
  const table = (name: string, hook: string, rules: string, rest = ""): string =>
    nft(`add table inet ${name}; add chain inet ${name} ${hook} { type filter hook ${hook} priority 0; ${rest} }; ${rules}`);
  const gone = (name: string): string => `nft delete table inet ${name}`;
  const iptables = (rule: string, tool = "iptables-nft"): Pick<Fault, "inject" | "fix"> => ({
    inject: `${tool} ${rule}`,
    // The answer's commands may have deleted it.
    fix: `${tool} ${rule.replace(/ -[IA] /, " -D ").replace(/^-[IA] /, "-D ")} 2>/dev/null || true`,
  });
  // What IPVS serves this host sends on itself, and so does a process that answers.
  const isForwarded = FORWARDED.includes(backend);
  const toPods = isForwarded ? "FORWARD" : "OUTPUT";
  const [sent, met] = isForwarded ? ["forward", "forward"] : ["output", "input"];
  return { external, node, fromClient, fromPod, fromHost, pod, client, table, gone, iptables, toPods, sent, met };
}

/** Faults by rules of other programs on node1. */
export function ruleFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  return [
    ...nftablesFaults(ground),
    ...hookFaults(ground),
    ...chanceFaults(ground),
    ...firewallFaults(ground),
    ...policyFaults(ground),
    ...translationFaults(ground),
    ...proxyFaults(ground),
  ];
}

function nftablesFaults({ fromClient, fromPod, table, gone, sent }: Ground): readonly Fault[] {
  return [
    {
      name: "nftables: a forward chain whose policy is drop",
      backends: FORWARDED,
      culprits: ["external_drop"],
      ask: fromClient,
      connections: "repaired",
      inject: table("fw", "forward", "", "policy drop;"),
      fix: gone("fw"),
    },
    {
      name: "nftables: a rule that drops the pods' port",
      culprits: ["external_drop"],
      ask: fromPod,
      inject: table("fw", sent, `add rule inet fw ${sent} tcp dport 8080 drop`),
      connections: "repaired instead",
      fix: gone("fw"),
    },
    {
      name: "nftables: a set of blocked clients",
      culprits: ["external_drop"],
      ask: fromClient,
      inject: nft(
        `add table inet fw; add set inet fw blocked { type ipv4_addr; flags interval; elements = { 203.0.113.0/24 }; }; add chain inet fw pre { type filter hook prerouting priority -300; }; add rule inet fw pre ip saddr @blocked drop`,
      ),
      fix: gone("fw"),
    },
    {
      name: "nftables: a verdict map by device",
      backends: FORWARDED,
      culprits: ["external_drop"],
      ask: fromClient,
      inject: nft(
        "add table inet fw; add chain inet fw deny; add rule inet fw deny reject; add chain inet fw forward { type filter hook forward priority 0; }; add rule inet fw forward iifname vmap { eth0 : jump deny }",
      ),
      fix: gone("fw"),
    },
    {
      name: "nftables: in a table that is named as one of iptables'",
      culprits: ["external_drop"],
      ask: fromPod,
      inject: nft(
        `add table ip security; add chain ip security fw { type filter hook ${sent} priority 0; }; add rule ip security fw tcp dport 8080 drop`,
      ),
      fix: "nft delete table ip security",
    },
  ];
}

/** Rules of which nobody can tell whether they fit one packet. */
function chanceFaults({ fromClient, fromPod, table, gone, iptables, sent }: Ground): readonly Fault[] {
  return [
    {
      name: "nftables: what comes too fast is dropped",
      culprits: [],
      unjudged: "tcp flags syn limit rate over 5/second",
      ask: fromClient,
      inject: table("fw", sent, `add rule inet fw ${sent} oifname veth* tcp flags syn limit rate over 5/second drop`),
      fix: gone("fw"),
    },
    {
      name: "nftables: nine of ten packets are dropped, by a map of random numbers",
      culprits: [],
      unjudged: "numgen random mod 10 vmap",
      ask: fromPod,
      inject: table("fw", sent, `add rule inet fw ${sent} oifname veth* numgen random mod 10 vmap { 0-8 : drop, 9 : accept }`),
      fix: gone("fw"),
    },
    {
      name: "iptables: nine of ten new connections are dropped, at random",
      backends: FORWARDED,
      culprits: [],
      unjudged: "-A FORWARD -p tcp",
      ask: fromClient,
      ...iptables("-I FORWARD -p tcp --syn -m statistic --mode random --probability 0.9 -j DROP"),
    },
    {
      name: "iptables: only so many connections a second are let through",
      backends: FORWARDED,
      culprits: ["external_drop"],
      names: "which can't be judged: -A FORWARD",
      ask: fromPod,
      inject: "iptables-nft -P FORWARD DROP; iptables-nft -A FORWARD -m limit --limit 5/second -j ACCEPT",
      fix: "iptables-nft -P FORWARD ACCEPT; iptables-nft -F FORWARD",
    },
  ];
}

function hookFaults({ node, fromClient, fromPod, fromHost, pod, table, gone, met }: Ground): readonly Fault[] {
  return [
    {
      name: "nftables: at ingress of the device",
      culprits: ["external_drop"],
      ask: fromClient,
      inject: nft(
        "add table netdev fw; add chain netdev fw in { type filter hook ingress device eth0 priority 0; }; add rule netdev fw in ip saddr 203.0.113.0/24 drop",
      ),
      fix: "nft delete table netdev fw",
    },
    {
      name: "nftables: what the host sends is dropped",
      culprits: ["external_drop"],
      ask: fromHost,
      inject: table("fw", "output", "add rule inet fw output ip daddr 10.1.0.0/16 drop"),
      fix: gone("fw"),
    },
    {
      name: "nftables: answers are dropped",
      culprits: ["external_drop"],
      ask: fromPod,
      inject: table("fw", met, `add rule inet fw ${met} ip saddr ${pod} tcp sport 8080 drop`),
      fix: gone("fw"),
    },
    {
      name: "nftables: only new connections from outside are dropped",
      culprits: ["external_drop"],
      ask: fromClient,
      inject: table(
        "fw",
        met,
        `add rule inet fw ${met} ct state established,related accept; add rule inet fw ${met} iifname eth0 ct state new drop`,
      ),
      fix: gone("fw"),
    },
    {
      name: "nftables: a node port is closed before it is translated",
      culprits: ["external_drop"],
      ask: { from: "client1", to: node.address, port: node.port },
      inject: nft(
        `add table ip fw; add chain ip fw pre { type filter hook prerouting priority -150; }; add rule ip fw pre tcp dport 30000-32767 drop`,
      ),
      fix: "nft delete table ip fw",
    },
  ];
}

function firewallFaults({ fromClient, fromPod, client, gone, iptables, toPods }: Ground): readonly Fault[] {
  return [
    {
      name: "firewalld rejects what is forwarded",
      backends: FORWARDED,
      culprits: ["external_drop"],
      ask: fromClient,
      names: "firewalld",
      inject: nft(
        "add table inet firewalld; add chain inet firewalld filter_FORWARD { type filter hook forward priority 10; }; add rule inet firewalld filter_FORWARD ct state established,related accept; add rule inet firewalld filter_FORWARD iifname lo accept; add rule inet firewalld filter_FORWARD reject with icmpx admin-prohibited",
      ),
      fix: gone("firewalld"),
    },
    {
      name: "Docker's policy: FORWARD drops",
      backends: FORWARDED,
      culprits: ["external_drop"],
      ask: fromPod,
      inject: "iptables-nft -P FORWARD DROP",
      fix: "iptables-nft -P FORWARD ACCEPT",
    },
    {
      name: "iptables: a REJECT for the pods",
      culprits: ["external_drop"],
      names: `(-A ${toPods} -d 10.1.0.0/16`,
      ask: fromPod,
      connections: "repaired instead",
      ...iptables(`-I ${toPods} -d 10.1.0.0/16 -j REJECT`),
    },
    {
      name: "iptables (legacy): a rule that drops",
      culprits: ["external_drop"],
      ask: fromPod,
      ...iptables(`-I ${toPods} -p tcp --dport 8080 -j DROP`, "iptables-legacy"),
    },
    {
      name: "iptables (legacy): FORWARD's policy",
      backends: FORWARDED,
      culprits: ["external_drop"],
      ask: fromClient,
      inject: "iptables-legacy -P FORWARD DROP",
      fix: "iptables-legacy -P FORWARD ACCEPT",
    },
    {
      name: "iptables: the raw table drops",
      culprits: ["external_drop"],
      ask: fromClient,
      ...iptables("-t raw -I PREROUTING -s 203.0.113.0/24 -j DROP"),
    },
    {
      name: "ufw: routed packets are dropped",
      backends: FORWARDED,
      culprits: ["external_drop"],
      ask: fromPod,
      names: "ufw",
      inject:
        "iptables-nft -N ufw-reject-forward; iptables-nft -A ufw-reject-forward -j REJECT; iptables-nft -A FORWARD -j ufw-reject-forward",
      fix: "iptables-nft -D FORWARD -j ufw-reject-forward; iptables-nft -F ufw-reject-forward; iptables-nft -X ufw-reject-forward",
    },
    {
      name: "fail2ban has banned the client",
      backends: FORWARDED,
      culprits: ["external_drop"],
      ask: fromClient,
      names: "fail2ban",
      inject: `iptables-nft -N f2b-web; iptables-nft -A f2b-web -s ${client}/32 -j REJECT; iptables-nft -A f2b-web -j RETURN; iptables-nft -I FORWARD -p tcp -m multiport --dports 80,443,8080 -j f2b-web`,
      fix: "iptables-nft -D FORWARD -p tcp -m multiport --dports 80,443,8080 -j f2b-web; iptables-nft -F f2b-web; iptables-nft -X f2b-web",
    },
  ];
}

function policyFaults({ fromPod, pod, table, gone, toPods, sent }: Ground): readonly Fault[] {
  return [
    {
      name: "a NetworkPolicy, by Calico's chains and an ipset",
      culprits: ["network_policy"],
      ask: fromPod,
      inject: `ipset create cali40s:allowed hash:net; ipset add cali40s:allowed 10.1.9.0/24; iptables-nft -N cali-tw-veth1; iptables-nft -A cali-tw-veth1 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT; iptables-nft -A cali-tw-veth1 -m set --match-set cali40s:allowed src -j ACCEPT; iptables-nft -A cali-tw-veth1 -m comment --comment "Drop if no policies passed packet" -j DROP; iptables-nft -N cali-FORWARD; iptables-nft -A cali-FORWARD -o veth1 -g cali-tw-veth1; iptables-nft -I ${toPods} -j cali-FORWARD`,
      fix: `iptables-nft -D ${toPods} -j cali-FORWARD; iptables-nft -F cali-FORWARD; iptables-nft -X cali-FORWARD; iptables-nft -F cali-tw-veth1; iptables-nft -X cali-tw-veth1; ipset destroy cali40s:allowed`,
    },
    {
      name: "a NetworkPolicy, by kube-router's chains",
      culprits: ["network_policy"],
      ask: fromPod,
      inject: `iptables-nft -N KUBE-POD-FW-X; iptables-nft -A KUBE-POD-FW-X -m mark ! --mark 0x10000/0x10000 -j REJECT; iptables-nft -N KUBE-ROUTER-FORWARD; iptables-nft -A KUBE-ROUTER-FORWARD -d ${pod}/32 -m comment --comment "rule to jump traffic destined to POD" -j KUBE-POD-FW-X; iptables-nft -I ${toPods} -j KUBE-ROUTER-FORWARD`,
      fix: `iptables-nft -D ${toPods} -j KUBE-ROUTER-FORWARD; iptables-nft -F KUBE-ROUTER-FORWARD; iptables-nft -X KUBE-ROUTER-FORWARD; iptables-nft -F KUBE-POD-FW-X; iptables-nft -X KUBE-POD-FW-X`,
    },
    {
      name: "a NetworkPolicy, by an nftables table of its controller",
      culprits: ["network_policy"],
      ask: fromPod,
      inject: table(
        "kube-network-policies",
        sent,
        `add rule inet kube-network-policies ${sent} ct state established,related accept; add rule inet kube-network-policies ${sent} ip daddr ${pod} drop`,
      ),
      fix: gone("kube-network-policies"),
    },
  ];
}

function translationFaults({ external, fromClient, fromPod, gone, iptables }: Ground): readonly Fault[] {
  return [
    {
      name: "another program translates first (nftables)",
      backends: ["nft", "iptables"],
      culprits: ["external_translation"],
      ask: fromClient,
      inject: nft(
        `add table ip other; add chain ip other pre { type nat hook prerouting priority -110; }; add rule ip other pre ip daddr ${external.address} tcp dport 80 dnat to 172.18.0.1:22`,
      ),
      fix: "nft delete table ip other",
    },
    {
      name: "another program redirects first (iptables)",
      backends: ["iptables", "ipvs", "userspace"],
      culprits: ["external_translation"],
      ask: fromClient,
      ...iptables(`-t nat -I PREROUTING -d ${external.address}/32 -p tcp --dport 80 -j REDIRECT --to-ports 3128`),
    },
    {
      name: "another program redirects behind ours (iptables), and nothing is wrong",
      backends: ["nft"],
      culprits: [],
      ask: fromClient,
      connections: "arrive",
      ...iptables(`-t nat -I PREROUTING -d ${external.address}/32 -p tcp --dport 80 -j REDIRECT --to-ports 3128`),
    },
    {
      name: "the packet is not tracked (nftables)",
      backends: ["nft", "iptables"],
      culprits: ["untracked"],
      ask: fromPod,
      inject: nft(
        "add table ip other; add chain ip other pre { type filter hook prerouting priority -300; }; add rule ip other pre ip daddr 10.96.0.0/16 notrack",
      ),
      fix: "nft delete table ip other",
    },
    {
      name: "the packet is not tracked (iptables)",
      backends: ["nft", "iptables"],
      culprits: ["untracked"],
      ask: fromPod,
      ...iptables("-t raw -I PREROUTING -d 10.96.0.0/16 -j CT --notrack"),
    },
    {
      name: "the mark that asks for masquerade is cleared",
      backends: ["nft", "iptables"],
      culprits: ["mark_bit"],
      ask: fromClient,
      inject: nft(
        "add table inet other; add chain inet other f { type filter hook forward priority -150; }; add rule inet other f meta mark set 0",
      ),
      fix: gone("other"),
    },
    {
      name: "another program uses the same mark bit (iptables)",
      backends: ["nft", "iptables", "ipvs"],
      culprits: ["mark_bit"],
      ask: fromPod,
      ...iptables("-t mangle -I PREROUTING -i veth+ -j MARK --set-xmark 0x4000/0x4000"),
    },
  ];
}

function proxyFaults({ fromPod }: Ground): readonly Fault[] {
  return [
    {
      name: "kube-proxy's nftables table beside ours",
      backends: ["nft", "iptables", "userspace"],
      culprits: ["two_proxies"],
      ask: fromPod,
      inject: nft(
        "add table ip kube-proxy; add chain ip kube-proxy services; add chain ip kube-proxy nat-prerouting { type nat hook prerouting priority -100; }",
      ),
      fix: "nft delete table ip kube-proxy",
    },
    {
      name: "kube-proxy's iptables chains beside ours",
      backends: ["nft", "ebpf", "userspace"],
      culprits: ["two_proxies"],
      ask: fromPod,
      inject: `iptables-nft -t nat -N KUBE-SERVICES; iptables-nft -t nat -A KUBE-SERVICES -d ${fromPod.to}/32 -p tcp --dport 80 -j ACCEPT; iptables-nft -t nat -A PREROUTING -j KUBE-SERVICES`,
      fix: "iptables-nft -t nat -D PREROUTING -j KUBE-SERVICES; iptables-nft -t nat -F KUBE-SERVICES; iptables-nft -t nat -X KUBE-SERVICES",
    },
  ];
}
