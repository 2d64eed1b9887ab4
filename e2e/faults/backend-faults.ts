import { FORWARDING } from "./fault.ts";
import type { Fault } from "./fault.ts";
import type { FaultStage } from "./stage.ts";

const nft = (text: string): string => `nft '${text}'`;

/** What faults are made of that depend on how a backend translates. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const to = (name: keyof FaultStage["services"], way: "clusterIP" | "externalIP" | "nodePort@node1", family: "IPv4" | "IPv6" = "IPv4") => {
    const { address, port } = services[name].target(way, family);
    return { to: address, port };
  };
  const pod = (name: string): string => site.place(name).address("IPv4");
  return { to, pod, here: to("here", "clusterIP"), remote: to("remote", "clusterIP") };
}

/** Faults, and what looks like one, by where a backend translates: at the client's socket, or packets by conntrack. */
export function backendFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  return [
    ...socketFaults(ground),
    ...socketHealthy(ground),
    ...chainFaults(ground),
    ...localProgramFaults(ground),
    ...addressFaults(ground),
    ...routeFaults(ground),
  ];
}

/** conntrack sees no translation, so rules have to let the endpoint's address through. */
function socketFaults({ here, pod, to }: Ground): readonly Fault[] {
  return [
    {
      name: "sockets: FORWARD drops what a pod sends",
      backends: ["ebpf"],
      culprits: ["external_drop"],
      command: `iptables -t filter -I FORWARD -d ${pod("pod-1-1")} `,
      connections: "repaired",
      ask: { from: "pod-1-2", ...here },
      inject: "iptables-nft -P FORWARD DROP",
      fix: "iptables-nft -P FORWARD ACCEPT; iptables-nft -F FORWARD",
    },
    {
      name: "sockets: FORWARD rejects what a pod sends",
      backends: ["ebpf"],
      culprits: ["external_drop"],
      connections: "repaired",
      ask: { from: "pod-1-2", ...here },
      inject: "iptables-nft -A FORWARD -p tcp --dport 8080 -j REJECT",
      fix: "iptables-nft -F FORWARD",
    },
    {
      name: "sockets: what the host sends to endpoints is dropped",
      backends: ["ebpf"],
      culprits: ["external_drop"],
      command: `nft insert rule ip fw out ip daddr ${pod("pod-1-1")} `,
      connections: "repaired",
      ask: { from: "host", ...here },
      inject: nft(
        "add table ip fw; add chain ip fw out { type filter hook output priority 0; }; add rule ip fw out ip daddr 10.1.0.0/16 tcp dport 8080 drop",
      ),
      fix: "nft delete table ip fw",
    },
    {
      name: "packets: untracked on the way to a node port",
      backends: ["ebpf"],
      culprits: ["untracked"],
      ask: { from: "client1", ...to("web", "nodePort@node1") },
      inject: "iptables-nft -t raw -I PREROUTING -i eth0 -p tcp -j NOTRACK",
      fix: "iptables-nft -t raw -F PREROUTING",
    },
  ];
}

/** Rules about an address that no packet of these clients has. */
function socketHealthy({ here }: Ground): readonly Fault[] {
  const harmless = {
    backends: ["ebpf"],
    culprits: [],
    step: "translated at the socket: the packet leaves as ",
    connections: "arrive",
  } as const;
  const ask = { from: "pod-1-2", ...here };
  const pre = (rule: string, type = "filter", priority = -300): Pick<Fault, "inject" | "fix"> => ({
    inject: nft(`add table ip fw; add chain ip fw pre { type ${type} hook prerouting priority ${priority}; }; add rule ip fw pre ${rule}`),
    fix: "nft delete table ip fw",
  });
  return [
    { name: "sockets: the cluster IP is dropped, and nothing is wrong", ...harmless, ask, ...pre(`ip daddr ${here.to} drop`) },
    { name: "sockets: the service range is untracked, and nothing is wrong", ...harmless, ask, ...pre("ip daddr 10.96.0.0/16 notrack") },
    {
      name: "sockets: the cluster IP is translated elsewhere, and nothing is wrong",
      ...harmless,
      ask,
      ...pre(`ip daddr ${here.to} tcp dport 80 dnat to 10.9.9.9:22`, "nat", -110),
    },
    {
      name: "sockets: a host without a default route, and nothing is wrong",
      ...harmless,
      ask: { from: "host", ...here },
      inject: WITHOUT_DEFAULT,
      fix: WITH_DEFAULT,
    },
  ];
}

/** Our own chains are among those of others. */
function chainFaults({ to, pod }: Ground): readonly Fault[] {
  const backends = ["iptables", "ipvs"];
  const accept = (match: string): Pick<Fault, "inject" | "fix"> => ({
    inject: `iptables-nft -t nat -I POSTROUTING ${match} -j ACCEPT`,
    fix: `iptables-nft -t nat -D POSTROUTING ${match} -j ACCEPT 2>/dev/null || true`,
  });
  const hairpin = to("hairpin", "clusterIP");
  return [
    {
      name: "iptables: FORWARD drops, and KUBE-FORWARD accepts before that",
      backends,
      culprits: [],
      connections: "arrive",
      ask: { from: "client1", ...to("remote", "nodePort@node1") },
      inject: "iptables-nft -P FORWARD DROP",
      fix: "iptables-nft -P FORWARD ACCEPT",
    },
    {
      name: "iptables: a rule behind KUBE-FORWARD drops",
      backends,
      culprits: [],
      connections: "arrive",
      ask: { from: "client1", ...to("remote", "nodePort@node1") },
      inject: "iptables-nft -A FORWARD -p tcp --dport 8080 -j DROP",
      fix: "iptables-nft -D FORWARD -p tcp --dport 8080 -j DROP",
    },
    {
      name: "iptables: an ACCEPT before our masquerade, for a client elsewhere",
      backends,
      culprits: ["no_masquerade"],
      connections: "repaired",
      ask: { from: "client1", ...to("remote", "nodePort@node1") },
      ...accept("-d 10.1.0.0/16"),
    },
    {
      name: "iptables: an ACCEPT before our masquerade, for a pod that asks itself",
      backends,
      culprits: ["no_masquerade"],
      connections: "repaired",
      ask: { from: "pod-1-2", ...hairpin },
      ...accept(`-s ${pod("pod-1-2")}/32 -d 10.1.0.0/16`),
    },
    {
      name: "iptables: an ACCEPT before our masquerade, and the endpoint is here",
      backends,
      culprits: [],
      connections: "arrive",
      ask: { from: "client1", ...to("here", "nodePort@node1") },
      ...accept("-d 10.1.0.0/16"),
    },
  ];
}

/** A cluster IP that NodeLocal DNSCache takes over. */
function localProgramFaults({ here }: Ground): readonly Fault[] {
  const backends = ["nft", "iptables"];
  const ask = { from: "pod-1-2", ...here, protocol: "UDP" } as const;
  const rules = (verb: "-I" | "-D"): string =>
    `iptables-nft -t raw ${verb} PREROUTING -d ${here.to}/32 -p udp --dport 80 -j NOTRACK; iptables-nft -t raw ${verb} OUTPUT -s ${here.to}/32 -p udp --sport 80 -j NOTRACK; sleep 0.5`;
  const taken = `ip link add nldns type bridge; ip link set nldns up; ip address add ${here.to}/32 dev nldns; ${rules("-I")}`;
  const left = `ip link del nldns; ${rules("-D")}`;
  return [
    {
      name: "NodeLocal DNS: a cluster IP is on a device here, and untracked",
      backends,
      culprits: [],
      step: "is untracked on purpose: it is left to a program here (NodeLocal DNS)",
      ask,
      inject: `${taken}; ${process.execPath} -e 'require("dgram").createSocket("udp4").bind(80, "${here.to}")' >/dev/null 2>&1 & echo $! >/tmp/turnout-nldns; sleep 1`,
      fix: `kill $(cat /tmp/turnout-nldns); rm /tmp/turnout-nldns; ${left}`,
    },
    {
      name: "NodeLocal DNS: it does not run, and a cluster IP is left to it",
      backends,
      culprits: ["unanswered"],
      names: "it is left to a program here (NodeLocal DNS), and nothing listens there",
      ask,
      inject: taken,
      fix: left,
    },
  ];
}

const WITHOUT_DEFAULT = "ip route show default >/tmp/turnout-default-route; ip route del default";
const WITH_DEFAULT = "ip route add $(cat /tmp/turnout-default-route); rm /tmp/turnout-default-route";

function addressFaults({ here, to, remote, pod }: Ground): readonly Fault[] {
  const backends = ["nft", "iptables"];
  const six = to("here", "clusterIP", "IPv6");
  return [
    {
      name: "a host without a default route",
      backends,
      culprits: ["no_route"],
      names: `this node has no route to ${here.to}, so connect() fails before any rule`,
      ask: { from: "host", ...here },
      connections: "repaired",
      command: `ip route add ${here.to} dev `,
      inject: WITHOUT_DEFAULT,
      fix: `ip route del ${here.to} 2>/dev/null || true; ${WITH_DEFAULT}`,
    },
    {
      name: "a route that refuses the service range",
      backends,
      culprits: ["no_route"],
      command: "ip route del unreachable 10.96.0.0/16",
      connections: "repaired",
      ask: { from: "host", ...here },
      inject: "ip route add unreachable 10.96.0.0/16",
      fix: "ip route del unreachable 10.96.0.0/16 2>/dev/null || true",
    },
    {
      name: "a host without a default route, IPv6",
      backends,
      culprits: ["no_route"],
      names: `this node has no route to ${six.to}, so connect() fails before any rule`,
      ask: { from: "host", ...six },
      inject: WITHOUT_DEFAULT.replaceAll("ip route", "ip -6 route"),
      fix: WITH_DEFAULT.replaceAll("ip route", "ip -6 route"),
    },
    {
      name: "a local route takes an endpoint of another node",
      culprits: ["address_taken"],
      connections: "repaired",
      ask: { from: "pod-1-2", ...remote },
      inject: `ip route add local ${pod("pod-2-1")} dev lo`,
      fix: `ip route del local ${pod("pod-2-1")} dev lo 2>/dev/null || true`,
    },
  ];
}

function routeFaults({ to, remote, pod }: Ground): readonly Fault[] {
  return [
    {
      name: "a routing rule sends what has the masquerade mark nowhere",
      backends: ["nft", "iptables", "ipvs"],
      culprits: ["no_route"],
      names: "(ip rule: from all fwmark 0x4000/0x4000 lookup 100)",
      connections: "repaired",
      ask: { from: "client1", ...to("remote", "nodePort@node1") },
      inject: "ip rule add fwmark 0x4000/0x4000 table 100; ip route add blackhole default table 100",
      fix: "ip rule del fwmark 0x4000/0x4000 table 100 2>/dev/null || true; ip route flush table 100",
    },
    {
      name: "a routing rule prohibits what a pod sends",
      backends: FORWARDING,
      culprits: ["no_route"],
      names: `(ip rule: from ${pod("pod-1-2")} prohibit)`,
      connections: "repaired",
      ask: { from: "pod-1-2", ...remote },
      inject: `ip rule add from ${pod("pod-1-2")} prohibit pref 50`,
      fix: "ip rule del pref 50 2>/dev/null || true",
    },
    {
      name: "a narrower network on another device hides the route to another node's pods",
      culprits: ["route_hidden"],
      names: "hides the route 10.1.2.0/24 via 172.18.0.2",
      connections: "lost",
      ask: { from: "pod-1-2", ...remote },
      inject:
        "ip link add docker0 type veth peer name docker1; ip link set docker0 up; ip link set docker1 up; ip address add 10.1.2.126/25 dev docker0",
      fix: "ip link del docker0",
    },
    {
      name: "a second route of a pod leads to another pod's device, and hides its own",
      culprits: ["route_hidden"],
      command: `ip route del ${pod("pod-1-1")}/32 dev veth3`,
      connections: "repaired",
      ask: { from: "pod-1-2", ...to("here", "clusterIP") },
      inject: `ip route del ${pod("pod-1-1")} dev veth1; ip route add ${pod("pod-1-1")} dev veth1 metric 100; ip route add ${pod("pod-1-1")} dev veth3; ip neigh flush to ${pod("pod-1-1")} dev veth3; curl -s --max-time 4 http://${pod("pod-1-1")}/ >/dev/null || true`,
      fix: `ip route del ${pod("pod-1-1")} dev veth3 2>/dev/null || true; ip route del ${pod("pod-1-1")} dev veth1 metric 100; ip route add ${pod("pod-1-1")} dev veth1`,
    },
    {
      name: "packets: a device that carries no program",
      backends: ["ebpf"],
      culprits: ["device_unserved"],
      names: "other carries no program of Turnout",
      ask: { from: "client1", ...to("here", "nodePort@node1"), device: "other" },
      inject: "ip link add other type veth peer name other1; ip link set other up; ip link set other1 up; sleep 1.5",
      fix: "ip link del other; sleep 0.5",
    },
    {
      name: "nftables: packets are forwarded to another device at ingress",
      culprits: ["external_drop"],
      connections: "repaired",
      ask: { from: "client1", ...to("here", "nodePort@node1") },
      inject: `ip link add astray type dummy 2>/dev/null || ip link add astray type veth peer name astray1; ip link set astray up; ${nft(
        `add table netdev fw; add chain netdev fw in { type filter hook ingress device eth0 priority 0; }; add rule netdev fw in ip daddr ${to("here", "nodePort@node1").to} tcp dport ${to("here", "nodePort@node1").port} fwd to "astray"`,
      )}`,
      fix: "nft delete table netdev fw; ip link del astray",
    },
  ];
}
