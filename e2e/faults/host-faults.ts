import type { FaultStage } from "./stage.ts";
import { FORWARDED, FORWARDING } from "./fault.ts";
import type { Fault } from "./fault.ts";

/** What faults of node1 are made of. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const cluster = (
    name: keyof FaultStage["services"],
    family: "IPv4" | "IPv6" = "IPv4",
  ): { readonly to: string; readonly port: number } => {
    const { address, port } = services[name].target("clusterIP", family);
    return { to: address, port };
  };
  const outside = (
    name: keyof FaultStage["services"],
    family: "IPv4" | "IPv6" = "IPv4",
  ): { readonly to: string; readonly port: number } => {
    const { address, port } = services[name].target("externalIP", family);
    return { to: address, port };
  };
  const fromPod = { from: "pod-1-2" };
  const fromClient = { from: "client1" };
  const [pod2, pod1] = ["pod-2-1", "pod-1-1"].map((name) => site.place(name).address("IPv4"));
  const [pod2v6, pod1v6] = ["pod-2-1", "pod-1-1"].map((name) => site.place(name).address("IPv6"));
  const client = site.place("client1").address("IPv4");
  const pod12 = site.place("pod-1-2").address("IPv4");
  const web = cluster("web");
  return { cluster, outside, fromPod, fromClient, pod2, pod1, pod2v6, pod1v6, client, pod12, web, site, services };
}

/** Faults of node1 itself: routes, kernel parameters, devices, remembered flows. */
export function hostFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  return [
    ...routeFaults(ground),
    ...deviceFaults(ground),
    ...passageFaults(ground),
    ...downFaults(ground),
    ...faultsNextTo(ground),
    ...flagFaults(ground),
  ];
}

function routeFaults({ cluster, fromPod, pod2, pod1, pod2v6 }: Ground): readonly Fault[] {
  return [
    {
      name: "ip_forward is off",
      backends: FORWARDING,
      // ipvs sets it itself.
      culprits: ["forwarding_off", "kernel_changed"],
      names: "ip_forward",
      ask: { ...fromPod, ...cluster("remote") },
      inject: "sysctl -qw net.ipv4.ip_forward=0",
      fix: "sysctl -qw net.ipv4.ip_forward=1",
    },
    {
      name: "forwarding is off on one device",
      backends: FORWARDED,
      culprits: ["forwarding_off"],
      ask: { ...fromPod, ...cluster("remote") },
      inject: "sysctl -qw net.ipv4.conf.veth2.forwarding=0",
      fix: "sysctl -qw net.ipv4.conf.veth2.forwarding=1",
    },
    {
      name: "forwarding of IPv6 is off",
      backends: FORWARDING,
      culprits: ["forwarding_off"],
      ask: { ...fromPod, ...cluster("remote", "IPv6") },
      inject: "sysctl -qw net.ipv6.conf.all.forwarding=0",
      fix: "sysctl -qw net.ipv6.conf.all.forwarding=1; for d in /proc/sys/net/ipv6/conf/*; do echo 1 >$d/forwarding; done",
    },
    {
      name: "no route to the pods of another node",
      culprits: ["no_route"],
      ask: { ...fromPod, ...cluster("remote") },
      names: "10.1.2.",
      inject: "ip route del 10.1.2.0/24; ip route add unreachable 10.1.0.0/16",
      fix: "ip route del unreachable 10.1.0.0/16; ip route add 10.1.2.0/24 via 172.18.0.2",
    },
    {
      name: "a blackhole route to an endpoint",
      culprits: ["no_route"],
      ask: { ...fromPod, ...cluster("remote") },
      inject: `ip route add blackhole ${pod2}/32`,
      fix: `ip route del blackhole ${pod2}/32`,
    },
    {
      name: "a prohibit route to an endpoint, IPv6",
      culprits: ["no_route"],
      ask: { ...fromPod, ...cluster("remote", "IPv6") },
      inject: `ip -6 route add prohibit ${pod2v6}/128`,
      fix: `ip -6 route del prohibit ${pod2v6}/128`,
    },
    {
      name: "a routing rule that sends pods nowhere",
      culprits: ["no_route"],
      ask: { ...fromPod, ...cluster("remote") },
      inject: "ip rule add to 10.1.2.0/24 prohibit",
      fix: "ip rule del to 10.1.2.0/24 prohibit",
    },
    {
      name: "the route of a local pod is gone",
      culprits: ["no_route"],
      ask: { ...fromPod, ...cluster("here") },
      inject: `ip route del ${pod1}/32; ip route add unreachable 10.1.1.0/24`,
      fix: `ip route del unreachable 10.1.1.0/24; ip route add ${pod1}/32 dev veth1`,
    },
  ];
}

function deviceFaults({ cluster, outside, fromPod, fromClient, pod1, pod1v6, client, site }: Ground): readonly Fault[] {
  return [
    {
      name: "the device of a local pod is down",
      culprits: ["device_down"],
      ask: { ...fromPod, ...cluster("here") },
      inject: `ip route add unreachable 10.1.1.0/24; ip link set veth1 down`,
      fix: `ip link set veth1 up; ip route del unreachable 10.1.1.0/24; ip route replace ${pod1}/32 dev veth1; ip -6 route replace ${pod1v6}/128 dev veth1; ${podNeighbours(site)}`,
    },
    {
      name: "the pod's end of its link is down",
      culprits: ["device_down"],
      ask: { ...fromPod, ...cluster("here") },
      at: "pod-1-1",
      inject: "ip link set eth0 down",
      fix: `ip link set eth0 up; ip -6 address replace ${pod1v6}/128 dev eth0 nodad; ip route replace 169.254.1.1 dev eth0; ip route replace default via 169.254.1.1 dev eth0; ip -6 route replace default via fe80::1 dev eth0; ${neighbours("eth0", ["169.254.1.1", "fe80::1"], "s/4c:02/4c:01/")}`,
    },
    {
      name: "no route back to the client",
      culprits: ["no_way_back", "rp_filter"],
      ask: { ...fromClient, ...outside("local") },
      inject: `ip route add unreachable ${client}/32`,
      fix: `ip route del unreachable ${client}/32`,
    },
    {
      name: "the way back is by another device, and nothing checks that",
      culprits: [],
      step: `answers to ${client} leave by other, not by eth0 where it came in`,
      ask: { ...fromClient, ...outside("web"), device: "eth0" },
      inject: `ip link add other type veth peer name other1; ip link set other up; ip link set other1 up; ip route add ${client}/32 dev other`,
      fix: "ip link del other",
    },
    {
      name: "strict rp_filter, and the way back is another",
      culprits: ["rp_filter"],
      names: "by other",
      step: `answers to ${client} leave by other, not by eth0 where it came in`,
      ask: { ...fromClient, ...outside("web"), device: "eth0" },
      inject: `sysctl -qw net.ipv4.conf.eth0.rp_filter=1; ip link add other type veth peer name other1; ip link set other up; ip link set other1 up; ip route add ${client}/32 dev other`,
      fix: `ip link del other; sysctl -qw net.ipv4.conf.eth0.rp_filter=0`,
    },
    {
      name: "strict rp_filter for what a local pod answers",
      culprits: ["rp_filter"],
      ask: { ...fromPod, ...cluster("web"), device: "veth3" },
      inject: `sysctl -qw net.ipv4.conf.veth3.rp_filter=1`,
      fix: "sysctl -qw net.ipv4.conf.veth3.rp_filter=0",
    },
    {
      name: "IPv6 is off on a pod's device",
      culprits: ["ipv6_off"],
      ask: { ...fromPod, ...cluster("here", "IPv6") },
      inject: `ip -6 route add unreachable fd00:1:1::/64; sysctl -qw net.ipv6.conf.veth1.disable_ipv6=1`,
      fix: `sysctl -qw net.ipv6.conf.veth1.disable_ipv6=0; ip -6 route del unreachable fd00:1:1::/64; ip -6 address add fe80::1/64 dev veth1 nodad 2>/dev/null || true; ip -6 route replace ${pod1v6}/128 dev veth1; ${podNeighbours(site)}`,
    },
    {
      name: "the MTU of a pod's device is below IPv6's",
      culprits: ["mtu"],
      ask: { ...fromPod, ...cluster("here", "IPv6") },
      inject: `ip -6 route add unreachable fd00:1:1::/64; ip link set veth1 mtu 1200`,
      fix: `ip link set veth1 mtu 1500; ip -6 route del unreachable fd00:1:1::/64; ip -6 address add fe80::1/64 dev veth1 nodad 2>/dev/null || true; ip -6 route replace ${pod1v6}/128 dev veth1; ${podNeighbours(site)}`,
    },
  ];
}

function passageFaults({ cluster, outside, fromPod, fromClient, pod2, pod12, client, web, services }: Ground): readonly Fault[] {
  return [
    {
      name: "a narrower device, and ICMP that would tell is dropped",
      backends: FORWARDING,
      culprits: ["mtu"],
      command: "nft delete rule inet quiet out handle ",
      ask: { ...fromPod, ...cluster("remote") },
      inject:
        "ip link set eth0 mtu 1400; nft 'add table inet quiet; add chain inet quiet out { type filter hook output priority 0; }; add rule inet quiet out icmp type destination-unreachable drop'",
      fix: "nft delete table inet quiet; ip link set eth0 mtu 1500",
    },
    {
      name: "a narrower device, and packet too big is dropped, IPv6",
      backends: FORWARDING,
      culprits: ["mtu"],
      ask: { ...fromPod, ...cluster("remote", "IPv6") },
      inject:
        "ip link set eth0 mtu 1400; nft 'add table inet quiet; add chain inet quiet out { type filter hook output priority 0; }; add rule inet quiet out icmpv6 type packet-too-big drop'",
      fix: "nft delete table inet quiet; ip link set eth0 mtu 1500",
    },
    {
      name: "the next hop does not answer on the link",
      culprits: ["neighbour"],
      ask: { ...fromPod, ...cluster("remote") },
      inject: `ip route add ${pod2}/32 via 172.18.0.99; curl -s --max-time 2 http://${pod2}/ >/dev/null || true`,
      fix: `ip route del ${pod2}/32 via 172.18.0.99`,
    },
    {
      name: "a remembered UDP flow to an endpoint that is gone",
      backends: FORWARDED,
      culprits: ["stale_flow"],
      ask: { ...fromClient, ...outside("web"), protocol: "UDP" },
      inject: flow(client, outside("web"), "10.1.1.99"),
      fix: "conntrack -D -p udp --sport 4321 >/dev/null 2>&1",
    },
    {
      name: "a remembered UDP flow from before there were endpoints",
      backends: TRACKING_PODS,
      culprits: ["stale_flow"],
      ask: { ...fromPod, ...web, protocol: "UDP" },
      inject: flow(pod12, web, web.to, web.port),
      fix: "conntrack -D -p udp --sport 4321 >/dev/null 2>&1",
    },
    { name: "nothing listens at an endpoint", culprits: ["unanswered"], ask: { ...fromPod, to: "10.96.0.201", port: 80, isProbed: true } },
    {
      name: "an endpoint that drops whatever comes",
      culprits: ["unanswered"],
      ask: { ...fromPod, ...cluster("here"), isProbed: true },
      at: "pod-1-1",
      inject: "nft 'add table inet shut; add chain inet shut in { type filter hook input priority 0; policy drop; }'",
      fix: "nft delete table inet shut",
    },
    {
      name: "a node port on an address that was not chosen",
      backends: ["nft", "ebpf"],
      culprits: ["node_port_address"],
      ask: { ...fromClient, to: "172.18.0.77", port: services.web.target("nodePort@node1", "IPv4").port },
      inject: "ip address add 172.18.0.77/32 dev eth0; sleep 0.5",
      fix: "ip address del 172.18.0.77/32 dev eth0; sleep 0.5",
    },
  ];
}

/** Devices that are down, and did not lead where packets go. */
function downFaults({ cluster, fromPod, pod1 }: Ground): readonly Fault[] {
  return [
    {
      name: "a device that is down, and an address that nobody has",
      culprits: ["unknown_address"],
      ask: { ...fromPod, to: "10.96.77.79", port: 80 },
      inject: "ip route add unreachable 10.96.0.0/16; ip link add spare type bridge; ip address add 192.0.2.200/32 dev spare",
      fix: "ip link del spare; ip route del unreachable 10.96.0.0/16",
    },
    {
      name: "a device that is down and has an address, and no route to the pods of another node, nor any other",
      culprits: ["no_route"],
      names: "10.1.2.",
      ask: { ...fromPod, ...cluster("remote") },
      inject:
        "ip route save table main >/tmp/turnout-routes; ip route del 10.1.2.0/24; ip route del default; ip link add spare type bridge; ip address add 192.0.2.200/24 dev spare",
      fix: "ip link del spare; ip route flush table main; ip route restore </tmp/turnout-routes; rm /tmp/turnout-routes",
    },
    {
      name: "a device that is down, and a route to a pod that is missing",
      culprits: ["no_route"],
      ask: { ...fromPod, ...cluster("here") },
      inject: `ip route del ${pod1}/32; ip route add unreachable 10.1.1.0/24; ip link add spare type bridge`,
      fix: `ip link del spare; ip route del unreachable 10.1.1.0/24; ip route add ${pod1}/32 dev veth1`,
    },
  ];
}

/** What is beside the packet's way, and where the packet ends on this host. */
function faultsNextTo({ cluster, outside, fromPod, fromClient, pod1, pod1v6, client }: Ground): readonly Fault[] {
  return [
    {
      name: "the route back to a pod that asks is gone, and the default route takes its answers",
      culprits: ["no_way_back"],
      ask: { from: "pod-1-1", ...cluster("remote"), device: "veth1" },
      connections: "lost",
      inject: `ip route del ${pod1}/32`,
      fix: `ip route add ${pod1}/32 dev veth1`,
    },
    {
      name: "no route to a pod, and IPv6 is off on a bridge of others",
      culprits: ["no_route"],
      ask: { ...fromPod, ...cluster("here", "IPv6") },
      inject: `ip -6 route del ${pod1v6}/128; ip -6 route add unreachable fd00:1:1::/64; ip link add spare type bridge; ip address add 192.0.2.200/24 dev spare; ip link set spare up; sysctl -qw net.ipv6.conf.spare.disable_ipv6=1`,
      fix: `ip link del spare; ip -6 route del unreachable fd00:1:1::/64; ip -6 route add ${pod1v6}/128 dev veth1`,
    },
    {
      name: "packets of others were dropped by rp_filter, which is strict on a bridge's port, and nothing is wrong",
      culprits: [],
      ask: { ...fromClient, ...outside("web") },
      connections: "arrive",
      inject: `ip link add spare type bridge; ip link add other type veth peer name other1; ip link set other master spare; ip link set other up; ip link set other1 up; ip link set spare up; sysctl -qw net.ipv4.conf.eth0.rp_filter=1; ip route add ${client}/32 dev spare; ip netns exec "$(ip netns identify $$ | sed s/node1$/client1/)" curl -s -m 1 http://172.18.0.1:8082/ >/dev/null || true; ip route del ${client}/32 dev spare; sysctl -qw net.ipv4.conf.eth0.rp_filter=0; sysctl -qw net.ipv4.conf.other.rp_filter=1; [ "$(grep -A1 IPReversePathFilter /proc/net/netstat | awk 'NR==1 { for (i = 1; i <= NF; i++) if ($i == "IPReversePathFilter") at = i } NR==2 { print $at }')" -gt 0 ]`,
      fix: "ip link del other; ip link del spare",
    },
    {
      name: "another program masquerades what goes to pods, and nothing is wrong",
      backends: FORWARDED,
      culprits: [],
      ask: { ...fromPod, ...cluster("remote") },
      connections: "arrive",
      note: "rewrites the source",
      inject: "iptables-nft -t nat -I POSTROUTING -d 10.1.0.0/16 -j MASQUERADE",
      fix: "iptables-nft -t nat -D POSTROUTING -d 10.1.0.0/16 -j MASQUERADE",
    },
    {
      name: "a node port that nobody has",
      culprits: ["unanswered"],
      names: "no Service has 172.18.0.1:30999/TCP",
      ask: { ...fromClient, to: "172.18.0.1", port: 30_999 },
      connections: "lost",
    },
    {
      name: "a host port where a rule of another program leads to a pod, and nothing is wrong",
      culprits: [],
      ask: { ...fromClient, to: "172.18.0.1", port: 2222 },
      connections: "arrive",
      inject: `iptables-nft -t nat -I PREROUTING -d 172.18.0.1/32 -p tcp --dport 2222 -j DNAT --to-destination ${pod1}:8080`,
      fix: `iptables-nft -t nat -D PREROUTING -d 172.18.0.1/32 -p tcp --dport 2222 -j DNAT --to-destination ${pod1}:8080`,
    },
  ];
}

/** The command is told other flags than the proxy that runs; the kernel's rules are that proxy's. */
function flagFaults({ fromPod, web }: Ground): readonly Fault[] {
  return [
    {
      name: "asked without the flags of the proxy that runs, and nothing is wrong",
      culprits: [],
      step: "counts as a pod",
      ask: { ...fromPod, ...web, standaloneWith: [] },
    },
    {
      name: "asked without --service-metrics, with which the proxy runs, and nothing is wrong",
      culprits: [],
      ask: { ...fromPod, ...web, standaloneWith: [] },
      extraFlags: ["--service-metrics", "20"],
    },
    {
      name: "asked with another option of the backend than the proxy that runs",
      backends: ["nft"],
      culprits: ["other_flags"],
      names: "option counters of the backend: the default, not true",
      ask: { ...fromPod, ...web, standaloneWith: ["--backend-option", "counters=true"] },
    },
    {
      name: "asked with another cluster CIDR than that of the proxy that runs",
      culprits: ["other_flags"],
      names: "--cluster-cidr",
      ask: { ...fromPod, ...web, standaloneWith: ["--cluster-cidr", "10.2.0.0/16"] },
    },
  ];
}

function flow(source: string, target: { readonly to: string; readonly port: number }, answerer: string, port = 8080): string {
  return `conntrack -I -p udp -s ${source} -d ${target.to} --sport 4321 --dport ${target.port} -r ${answerer} -q ${source} --reply-port-src ${port} --reply-port-dst 4321 -t 100 -u ASSURED,SEEN_REPLY >/dev/null`;
}

/** Neighbours in the laboratory are static; a device that was down has lost them, at both ends of its link. */
function podNeighbours(site: FaultStage["site"]): string {
  const pod = site.place("pod-1-1");
  return neighbours("veth1", [pod.address("IPv4"), pod.address("IPv6")], "s/4c:01/4c:02/");
}

/** @param other sed's words for what the other end's link address has otherwise, as the laboratory numbers them. */
function neighbours(device: string, addresses: readonly string[], other: string): string {
  const link = `ip -br link show dev ${device} | grep -oE '([0-9a-f]{2}:){5}[0-9a-f]{2}' | sed '${other}'`;
  return addresses.map((address) => `ip neigh replace ${address} dev ${device} lladdr $(${link}) nud permanent`).join("; ");
}

/** Where conntrack decides about a pod's packets to a Service: elsewhere its socket is translated, or IPVS remembers. */
const TRACKING_PODS: readonly string[] = ["nft", "iptables"];
