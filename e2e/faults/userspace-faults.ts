import type { Fault } from "./fault.ts";
import type { FaultStage } from "./stage.ts";

/** What faults of userspace are made of. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const target = (name: keyof FaultStage["services"], way: "clusterIP" | "nodePort@node1", family: "IPv4" | "IPv6" = "IPv4") => {
    const { address, port } = services[name].target(way, family);
    return { to: address, port };
  };
  return {
    target,
    here: target("here", "clusterIP"),
    nodePort: target("here", "nodePort@node1"),
    pod: site.place("pod-1-1").address("IPv4"),
  };
}

/** Rules and parameters where a process answers: clients' packets are for this host, which connects to endpoints itself. */
export function userspaceWayFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  return [...harmlessFaults(ground), ...dropFaults(ground), ...elsewhereFaults(ground)].map((fault) => ({
    ...fault,
    backends: ["userspace"],
  }));
}

/** What was taken from the process: it does not run, or the host has lost its addresses. */
export function userspaceKernelFaults(stage: FaultStage): readonly Fault[] {
  const { here, nodePort } = groundOf(stage);
  const ask = { from: "pod-1-2", ...here };
  return [
    {
      name: "userspace: the proxy was killed",
      culprits: ["unanswered"] as const,
      names: `nothing listens at ${here.to}:${here.port}`,
      ask,
    },
    {
      name: "userspace: the proxy was killed, a node port",
      culprits: ["unanswered"] as const,
      names: `nothing listens at ${nodePort.to}:${nodePort.port}`,
      ask: { from: "client1", ...nodePort },
    },
    { name: "userspace: the proxy is stopped (SIGSTOP)", culprits: ["not_running"] as const, isStopped: true as const, ask },
    {
      name: "userspace: an address is gone from turnout0",
      culprits: ["kernel_missing"] as const,
      names: `${here.to} is no address of this host`,
      ask,
      inject: `ip address del ${here.to}/32 dev turnout0`,
    },
  ].map((fault) => ({ ...fault, backends: ["userspace"] }));
}

/** A file to put iptables' filter table back from: what an answer had one type is gone as well. */
const KEPT = "/tmp/turnout-fault";

function filter(...rules: readonly string[]): Pick<Fault, "inject" | "fix"> {
  return {
    inject: [`iptables-nft-save -t filter >${KEPT}`, ...rules.map((rule) => `iptables-nft ${rule}`)].join("; "),
    fix: `iptables-nft -P INPUT ACCEPT; iptables-nft -P OUTPUT ACCEPT; iptables-nft -P FORWARD ACCEPT; iptables-nft-restore -T filter <${KEPT}; rm ${KEPT}`,
  };
}

const KNOWN = "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT";

function harmlessFaults({ here, nodePort, target, pod }: Ground): readonly Fault[] {
  const harmless = { culprits: [], connections: "arrive" } as const;
  const ask = { from: "client1", ...target("web", "nodePort@node1") };
  return [
    { name: "userspace: FORWARD drops, and nothing is wrong", ...harmless, ask, ...filter("-P FORWARD DROP") },
    {
      name: "userspace: ip_forward is off, and nothing is wrong",
      ...harmless,
      ask: { from: "pod-1-2", ...here },
      step: "the proxy's process answers it: the packet is for this host itself",
      inject: "sysctl -qw net.ipv4.ip_forward=0",
      fix: "sysctl -qw net.ipv4.ip_forward=1; for d in /proc/sys/net/ipv4/conf/*; do echo 1 >$d/forwarding; done",
    },
    {
      name: "userspace: the service range is untracked, and nothing is wrong",
      ...harmless,
      ask: { from: "pod-1-2", ...here },
      inject: "iptables-nft -t raw -I PREROUTING -d 10.96.0.0/16 -j CT --notrack",
      fix: "iptables-nft -t raw -F PREROUTING",
    },
    {
      name: "userspace: what a client sends to pods itself is dropped, and nothing is wrong",
      ...harmless,
      ask: { from: "client1", ...nodePort },
      ...filter(`-I INPUT -s 203.0.113.0/24 -d ${pod} -j DROP`, `-I FORWARD -d ${pod} -j DROP`),
    },
    {
      name: "userspace: INPUT drops all but node ports, the service range and answers, and nothing is wrong",
      ...harmless,
      ask,
      ...filter(
        "-A INPUT -i lo -j ACCEPT",
        `-A INPUT ${KNOWN}`,
        "-A INPUT -p tcp --dport 30000:32767 -j ACCEPT",
        "-A INPUT -d 10.96.0.0/16 -j ACCEPT",
        "-P INPUT DROP",
      ),
    },
  ];
}

function dropFaults({ here, nodePort, target, pod }: Ground): readonly Fault[] {
  const dropped = { culprits: ["external_drop"], connections: "repaired" } as const;
  const fromPod = { from: "pod-1-2", ...here };
  const fromClient = { from: "client1", ...nodePort };
  return [
    {
      name: "userspace: INPUT drops a node port",
      ...dropped,
      ask: fromClient,
      ...filter(`-I INPUT -p tcp -d ${nodePort.to} --dport ${nodePort.port} -j DROP`),
    },
    { name: "userspace: INPUT drops a cluster IP", ...dropped, ask: fromPod, ...filter(`-I INPUT -d ${here.to} -j DROP`) },
    {
      name: "userspace: OUTPUT drops what the process sends to the endpoint",
      ...dropped,
      command: `iptables -t filter -I OUTPUT -d ${pod} -p tcp --dport 8080 -j ACCEPT`,
      ask: fromClient,
      ...filter(`-I OUTPUT -d ${pod} -j DROP`),
    },
    {
      name: "userspace: INPUT drops what the endpoint answers the process",
      ...dropped,
      ask: fromPod,
      ...filter(`-I INPUT -s ${pod} -p tcp --sport 8080 -j DROP`),
    },
    {
      name: "userspace: OUTPUT drops what the process answers the client",
      ...dropped,
      ask: fromClient,
      ...filter(`-I OUTPUT -p tcp --sport ${nodePort.port} -j REJECT`),
    },
    {
      name: "userspace: INPUT's policy drops what is new",
      ...dropped,
      ask: fromClient,
      ...filter("-A INPUT -i lo -j ACCEPT", `-A INPUT ${KNOWN}`, "-P INPUT DROP"),
    },
    {
      name: "userspace: INPUT's policy drops what is new, and answers too",
      ...dropped,
      ask: fromPod,
      // The proxy follows its API server, which comes by eth0.
      ...filter("-A INPUT -i lo -j ACCEPT", "-A INPUT -i eth0 -j ACCEPT", "-P INPUT DROP"),
    },
    {
      name: "userspace: OUTPUT's policy drops what is new, from this node itself",
      ...dropped,
      ask: { from: "host", ...target("remote", "clusterIP") },
      ...filter("-A OUTPUT -o lo -j ACCEPT", `-A OUTPUT ${KNOWN}`, "-P OUTPUT DROP"),
    },
  ];
}

/** Packets that others take before the process gets them. */
function elsewhereFaults({ here }: Ground): readonly Fault[] {
  const ask = { from: "pod-1-2", ...here };
  return [
    {
      name: "userspace: a table of another of Turnout's backends was left",
      culprits: ["two_proxies"],
      names: "table ip turnout",
      command: "turnout cleanup --backend nft",
      connections: "lost",
      ask,
      inject: `nft 'add table ip turnout; add chain ip turnout nat-prerouting { type nat hook prerouting priority -100; }; add rule ip turnout nat-prerouting ip daddr ${here.to} tcp dport ${here.port} dnat to 10.1.1.99:8080'`,
      fix: "nft delete table ip turnout",
    },
    {
      name: "userspace: another program redirects the Service's address",
      culprits: ["external_translation"],
      names: "sends what is for the proxy's process elsewhere",
      connections: "repaired",
      ask,
      inject: `iptables-nft -t nat -A PREROUTING -d ${here.to}/32 -p tcp --dport ${here.port} -j REDIRECT --to-ports 3128`,
      fix: "iptables-nft -t nat -F PREROUTING",
    },
    {
      name: "userspace: a routing rule sends what goes to the endpoint nowhere",
      culprits: ["no_route"],
      connections: "repaired",
      ask,
      inject: "ip rule add to 10.1.1.0/24 prohibit pref 50",
      fix: "ip rule del pref 50 2>/dev/null || true",
    },
  ];
}
