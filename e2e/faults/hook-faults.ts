import { FORWARDED } from "./fault.ts";
import type { Fault } from "./fault.ts";
import type { FaultStage } from "./stage.ts";

const nft = (text: string): string => `nft '${text}'`;
/** Backends that translate packets of this node itself, where others can see it. */
const TRANSLATING = ["nft", "iptables"];

/** What faults at single hooks are made of. */
type Ground = ReturnType<typeof groundOf>;

function groundOf({ services, site }: FaultStage) {
  const to = (name: keyof FaultStage["services"], way: "clusterIP" | "nodePort@node1") => {
    const { address, port } = services[name].target(way, "IPv4");
    return { to: address, port };
  };
  const pod = (name: string): string => site.place(name).address("IPv4");
  return { to, pod };
}

/** Rules of others on the way of a packet through the kernel's hooks. */
export function hookFaults(stage: FaultStage): readonly Fault[] {
  const ground = groundOf(stage);
  return [
    ...loopbackFaults(ground),
    ...earlierFaults(ground),
    ...bypassFaults(ground),
    ...untrackedFaults(ground),
    ...matchFaults(ground),
    ...deviceFaults(ground),
    ...sourceFaults(ground),
  ];
}

/** Add rules, and take them away again. */
function rules(tool: string, ...added: readonly string[]): Required<Pick<Fault, "inject" | "fix">> {
  return {
    inject: added.map((rule) => `${tool} ${rule}`).join("; "),
    fix: added.map((rule) => `${tool} ${rule.replace(/-[AI] /, "-D ").replace(/^(-P \S+) DROP/, "$1 ACCEPT")}`).join("; "),
  };
}

const KNOWN = "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT";

/** What this node sends to an endpoint that is itself leaves and comes in by lo. */
function loopbackFaults({ to }: Ground): readonly Fault[] {
  const ask = { from: "host", ...to("self", "clusterIP") };
  const hardened = rules("iptables-nft", "-A INPUT -i lo -j ACCEPT", `-A INPUT ${KNOWN}`, "-P INPUT DROP");
  const closed = rules("iptables-nft", "-A INPUT -s 127.0.0.0/8 -j ACCEPT", `-A INPUT ${KNOWN}`, "-P INPUT DROP");
  return [
    {
      name: "lo: INPUT lets in what this node sends to itself, and drops the rest (iptables)",
      backends: FORWARDED,
      culprits: [],
      connections: "arrive",
      ask,
      ...hardened,
    },
    {
      name: "lo: INPUT lets in what this node sends to itself, and drops the rest (nftables)",
      backends: FORWARDED,
      culprits: [],
      connections: "arrive",
      ask: { ...ask, ...to("self", "nodePort@node1") },
      inject: nft(
        'add table inet fw; add chain inet fw i { type filter hook input priority 0; policy drop; }; add rule inet fw i iif "lo" accept; add rule inet fw i ct state established,related accept',
      ),
      fix: "nft delete table inet fw",
    },
    {
      name: "lo: INPUT drops what this node sends to itself",
      backends: FORWARDED,
      culprits: ["external_drop"],
      connections: "repaired",
      ask,
      inject: closed.inject,
      fix: `${closed.fix}; for m in '-m conntrack --ctstate DNAT' '-p tcp'; do iptables-nft -S INPUT | grep -e "-A INPUT .*$m.* -j ACCEPT" | sed 's/^-A/iptables-nft -D/' | sh; done`,
    },
    {
      name: "lo: OUTPUT lets out what leaves by lo, and the Service's address leads elsewhere",
      backends: TRANSLATING,
      culprits: ["external_drop"],
      connections: "repaired",
      ask,
      ...outputs("; iptables-nft -D OUTPUT -m conntrack --ctstate DNAT -j ACCEPT 2>/dev/null || true"),
    },
    {
      name: "lo: OUTPUT lets out what leaves by lo, and sockets are translated before",
      backends: ["ebpf"],
      culprits: [],
      connections: "arrive",
      ask,
      ...outputs(""),
    },
  ];
}

/** With eBPF conntrack knows the translation of what comes in before any nat chain is asked; what sockets send it asks about. */
function earlierFaults({ to, pod }: Ground): readonly Fault[] {
  const backends = ["ebpf"];
  const remote = to("remote", "nodePort@node1");
  const redirect = (chain: string, match: string): Pick<Fault, "inject" | "fix"> =>
    rules("iptables-nft", `-t nat -A ${chain} -p tcp ${match} -j REDIRECT --to-ports 3128`);
  const redirected = { backends, culprits: ["external_translation"], connections: "repaired" } as const;
  const quiet = ({ inject = "", fix = "" }: Pick<Fault, "inject" | "fix">) => ({ inject, fix: `${fix} 2>/dev/null || true` });
  return [
    {
      name: "eBPF: a node port is redirected in nat PREROUTING, and conntrack knows better",
      backends,
      culprits: [],
      connections: "arrive",
      ask: { from: "client1", ...remote },
      ...redirect("PREROUTING", `--dport ${remote.port}`),
    },
    {
      name: "eBPF: a source is rewritten in nat POSTROUTING, and conntrack knows better",
      backends,
      culprits: [],
      connections: "arrive",
      ask: { from: "client1", ...remote },
      ...rules("iptables-nft", `-t nat -A POSTROUTING -d ${pod("pod-2-1")} -p tcp -j SNAT --to-source 198.18.0.1`),
    },
    {
      name: "eBPF: what a pod's socket sends to the endpoint is redirected in nat PREROUTING",
      ...redirected,
      ask: { from: "pod-1-2", ...to("here", "clusterIP") },
      ...quiet(redirect("PREROUTING", `-d ${pod("pod-1-1")} --dport 8080`)),
    },
    {
      name: "eBPF: what this node's socket sends to the endpoint is redirected in nat OUTPUT",
      ...redirected,
      ask: { from: "host", ...to("here", "clusterIP") },
      ...quiet(redirect("OUTPUT", `-d ${pod("pod-1-1")} --dport 8080`)),
    },
  ];
}

/** With iptables our chain is one of many of a table; with nftables our table is another one. */
function bypassFaults({ to }: Ground): readonly Fault[] {
  const quiet = ({ inject = "", fix = "" }: Pick<Fault, "inject" | "fix">) => ({ inject, fix: `${fix} 2>/dev/null || true` });
  const nodePorts = quiet(rules("iptables-nft", "-t nat -I PREROUTING -i eth0 -p tcp -m multiport --dports 30000:32767 -j ACCEPT"));
  const serviceRange = quiet(rules("iptables-nft", "-t nat -I OUTPUT -d 10.96.0.0/16 -j RETURN"));
  const fromClient = { from: "client1", ...to("here", "nodePort@node1") };
  const fromHost = { from: "host", ...to("here", "clusterIP") };
  const bypassed = { backends: ["iptables"], culprits: ["bypassed"], connections: "repaired" } as const;
  const harmless = { backends: ["nft"], culprits: [], connections: "arrive" } as const;
  return [
    { name: "nat PREROUTING accepts node ports before KUBE-SERVICES", ...bypassed, ask: fromClient, ...nodePorts },
    { name: "nat OUTPUT returns the service range before KUBE-SERVICES", ...bypassed, ask: fromHost, ...serviceRange },
    { name: "nat PREROUTING accepts node ports, and our table is another one", ...harmless, ask: fromClient, ...nodePorts },
    { name: "nat OUTPUT returns the service range, and our table is another one", ...harmless, ask: fromHost, ...serviceRange },
  ];
}

/** conntrack puts the Service's address back into what it tracks alone. */
function untrackedFaults({ to }: Ground): readonly Fault[] {
  const lost = {
    backends: FORWARDED,
    culprits: ["untracked"],
    names: "keeps the answer from being tracked",
    connections: "repaired",
  } as const;
  const quiet = ({ inject = "", fix = "" }: Pick<Fault, "inject" | "fix">) => ({ inject, fix: `${fix} 2>/dev/null || true` });
  const answers = quiet(rules("iptables-nft", "-t raw -A PREROUTING -p tcp --sport 8080 -j CT --notrack"));
  const table = (priority: string): Pick<Fault, "inject" | "fix"> => ({
    inject: nft(
      `add table inet tune; add chain inet tune pre { type filter hook prerouting priority ${priority}; }; add rule inet tune pre tcp sport 8080 notrack`,
    ),
    fix: "nft delete table inet tune",
  });
  const fromClient = { from: "client1", ...to("here", "nodePort@node1") };
  return [
    { name: "answers are not tracked (iptables)", ...lost, ask: fromClient, ...answers },
    { name: "answers are not tracked (nftables)", ...lost, ask: fromClient, ...table("raw") },
    {
      name: "answers to this node are not tracked",
      ...lost,
      backends: TRANSLATING,
      ask: { from: "host", ...to("here", "clusterIP") },
      ...answers,
    },
    {
      name: "answers of this node itself are not tracked",
      ...lost,
      ask: { from: "client1", ...to("self", "nodePort@node1") },
      ...quiet(rules("iptables-nft", "-t raw -A OUTPUT -p tcp --sport 8082 -j CT --notrack")),
    },
    {
      name: "answers are not tracked by a rule that comes behind conntrack, and nothing is wrong",
      backends: FORWARDED,
      culprits: [],
      connections: "arrive",
      ask: fromClient,
      ...table("mangle"),
    },
    {
      name: "sockets: answers are not tracked, and nothing is wrong",
      backends: ["ebpf"],
      culprits: [],
      connections: "arrive",
      ask: { from: "pod-1-2", ...to("here", "clusterIP") },
      ...answers,
    },
  ];
}

/** Matches that one packet of a Service decides. */
function matchFaults({ to }: Ground): readonly Fault[] {
  const nodePort = to("here", "nodePort@node1");
  const ask = { from: "client1", ...nodePort };
  return [
    {
      name: "a published port is closed by its direction (--ctdir ORIGINAL)",
      backends: FORWARDED,
      culprits: ["external_drop"],
      connections: "repaired",
      ask,
      inject: `iptables-nft -I FORWARD -m conntrack --ctorigdstport ${nodePort.port} --ctdir ORIGINAL -p tcp -j DROP`,
      fix: "iptables-nft -D FORWARD -m conntrack --ctstate DNAT -j ACCEPT 2>/dev/null || true; iptables-nft -S FORWARD | grep ctorigdstport | sed 's/^-A/iptables-nft -D/' | sh",
    },
    {
      name: "broadcasts, multicasts and bridged packets are dropped, and nothing is wrong",
      backends: FORWARDED,
      culprits: [],
      connections: "arrive",
      ask,
      ...rules(
        "iptables-nft",
        "-I FORWARD -m pkttype --pkt-type broadcast -j DROP",
        "-I FORWARD -m pkttype --pkt-type multicast -j DROP",
        "-I FORWARD -m physdev --physdev-is-bridged -j DROP",
        "-I FORWARD -d 10.1.0.0/16 -m conntrack --ctdir REPLY -j DROP",
      ),
    },
    {
      name: "what answers nobody is dropped (ct direction), and nothing is wrong",
      backends: FORWARDED,
      culprits: [],
      connections: "arrive",
      ask,
      inject: nft(
        "add table inet fw; add chain inet fw f { type filter hook forward priority 0; }; add rule inet fw f ip daddr 10.1.0.0/16 ct direction reply drop; add rule inet fw f meta pkttype { broadcast, multicast } drop",
      ),
      fix: "nft delete table inet fw",
    },
  ];
}

/** Chains at the egress and ingress of devices. */
function deviceFaults({ to, pod }: Ground): readonly Fault[] {
  const ask = { from: "client1", ...to("remote", "nodePort@node1") };
  const at = (hook: string, rule: string): Pick<Fault, "inject" | "fix"> => ({
    inject: nft(`add table netdev fw; add chain netdev fw e { type filter hook ${hook} priority 0; }; add rule netdev fw e ${rule}`),
    fix: "nft delete table netdev fw",
  });
  const lost = { backends: FORWARDED, culprits: ["external_drop"], connections: "repaired", ask } as const;
  return [
    { name: "nftables: at egress of the uplink", ...lost, ...at('egress device "eth0"', `ip daddr ${pod("pod-2-1")} tcp dport 8080 drop`) },
    {
      name: "nftables: answers at egress of the uplink",
      ...lost,
      ...at('egress device "eth0"', `ip saddr ${ask.to} tcp sport ${ask.port} drop`),
    },
    {
      name: "nftables: at ingress and egress of another device, and nothing is wrong",
      backends: FORWARDED,
      culprits: [],
      connections: "arrive",
      ask,
      inject: nft(
        'add table netdev fw; add chain netdev fw e { type filter hook egress device "veth1" priority 0; }; add rule netdev fw e drop; add chain netdev fw i { type filter hook ingress device "veth1" priority 0; }; add rule netdev fw i drop',
      ),
      fix: "nft delete table netdev fw",
    },
  ];
}

/** Sources that others rewrite to an address of nobody. */
function sourceFaults({ to, pod }: Ground): readonly Fault[] {
  const snat = (endpoint: string): Pick<Fault, "inject" | "fix"> => {
    const { inject, fix } = rules("iptables-nft", `-t nat -A POSTROUTING -p tcp -d ${endpoint} -j SNAT --to-source 198.18.0.1`);
    return { inject, fix: `${fix} 2>/dev/null || true` };
  };
  const lost = { backends: FORWARDED, culprits: ["no_way_back"], connections: "repaired" } as const;
  const ask = { from: "pod-1-2", ...to("remote", "clusterIP") };
  const elsewhere = snat(pod("pod-2-1"));
  return [
    { name: "a source becomes an address that the default route leads to", ...lost, ask, ...elsewhere },
    {
      name: "a source becomes an address that a route leads elsewhere",
      ...lost,
      ask,
      inject: `${elsewhere.inject}; ip route add 198.18.0.1 dev veth1`,
      fix: `${elsewhere.fix}; ip route del 198.18.0.1 dev veth1`,
    },
    {
      name: "a source becomes an address of nobody, and answers of a pod here come by this node all the same",
      backends: FORWARDED,
      culprits: [],
      connections: "arrive",
      ask: { from: "pod-1-2", ...to("here", "clusterIP") },
      ...snat(pod("pod-1-1")),
    },
  ];
}

function outputs(also: string): Required<Pick<Fault, "inject" | "fix">> {
  const { inject, fix } = rules("iptables-nft", "-A OUTPUT -o lo -j ACCEPT", `-A OUTPUT ${KNOWN}`, "-P OUTPUT DROP");
  return { inject, fix: `${fix}${also}` };
}
