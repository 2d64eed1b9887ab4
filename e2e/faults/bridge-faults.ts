import type { Place } from "@turnout/lab";
import type { Fault } from "./fault.ts";
import type { FaultStage } from "./stage.ts";

/** Backends that translate what pods send, where bridges can be in the way of it. */
const TRANSLATING = ["nft", "iptables"];

/** Client and endpoint are on ports of one bridge. */
export function bridgeFaults({ services, site }: FaultStage): readonly Fault[] {
  const bridge = bridgeOf([site.place("pod-1-1"), site.place("pod-1-2")].map((place, index) => ({ place, device: `veth${index + 1}` })));
  const asked = (family: "IPv4" | "IPv6"): Fault["ask"] => {
    const { address, port } = services.here.target("clusterIP", family);
    return { from: "pod-1-2", to: address, port };
  };
  const lost = { backends: TRANSLATING, culprits: ["bridge_not_called"], connections: "repaired" } as const;
  const harmless = { culprits: [], connections: "arrive" } as const;
  const nodePort = services.here.target("nodePort@node1", "IPv4");
  const outside = { from: "client1", to: nodePort.address, port: nodePort.port };
  const off = (tables: string): string => `sysctl -qw net.bridge.bridge-nf-call-${tables}=0`;
  return [
    {
      name: "a bridge passes answers on past the rules",
      ...lost,
      ask: asked("IPv4"),
      inject: bridge.inject,
      fix: `${bridge.fix}; ${off("iptables")}`,
    },
    {
      name: "a bridge passes answers on past the rules, IPv6",
      ...lost,
      ask: asked("IPv6"),
      inject: bridge.inject,
      fix: `${bridge.fix}; ${off("ip6tables")}`,
    },
    {
      name: "a bridge that passes answers to the rules, and nothing is wrong",
      ...harmless,
      backends: TRANSLATING,
      ask: asked("IPv4"),
      inject: `${bridge.inject}; sysctl -qw net.bridge.bridge-nf-call-iptables=1`,
      fix: `${bridge.fix}; ${off("iptables")}`,
    },
    ...portFaults(bridge, { pod: asked("IPv4"), client: outside }),
    ...hairpinFaults(bridge, services),
    ...tableFaults(bridge, { pod: asked("IPv4"), client: outside }, site.place("pod-1-2").address("IPv4")),
    {
      name: "sockets: a bridge passes answers on past the rules, and nothing is wrong",
      ...harmless,
      backends: ["ebpf"],
      ask: asked("IPv4"),
      ...bridge,
    },
  ];
}

/** A pod asks itself, behind a bridge's port by which nothing is sent back. */
function hairpinFaults(bridge: Required<Pick<Fault, "inject" | "fix">>, { hairpin }: FaultStage["services"]): readonly Fault[] {
  const { address, port } = hairpin.target("clusterIP", "IPv4");
  const called = "sysctl -qw net.bridge.bridge-nf-call-iptables";
  const rest = { ask: { from: "pod-1-2", to: address, port }, fix: `${called}=0; ${bridge.fix}` };
  return [
    {
      name: "a pod asks itself, and hairpin is off at its bridge's port",
      backends: TRANSLATING,
      culprits: ["hairpin_off"],
      names: "veth2",
      connections: "repaired",
      ...rest,
      inject: `${bridge.inject}; ${called}=1`,
    },
    {
      name: "a pod asks itself, hairpin is off, bridges call no rules, and nothing is wrong",
      backends: TRANSLATING,
      culprits: [],
      connections: "arrive",
      ...rest,
      inject: bridge.inject,
    },
  ];
}

/** Ports of a bridge that are down. */
function portFaults(
  bridge: Required<Pick<Fault, "inject" | "fix">>,
  ask: Readonly<Record<"pod" | "client", Fault["ask"]>>,
): readonly Fault[] {
  const down = { backends: ["nft", "iptables", "ebpf"], culprits: ["device_down"] } as const;
  return [
    {
      name: "the port of a bridge that leads to the endpoint is down",
      ...down,
      names: "veth1 is down, and is the port of cni9",
      connections: "repaired",
      ask: ask.client,
      inject: `${bridge.inject}; ip link set veth1 down`,
      fix: `ip link set veth1 up; ${bridge.fix}`,
    },
    {
      name: "the port of a bridge that leads to the client is down",
      ...down,
      names: "veth2 is down, and is the port of cni9",
      ask: ask.pod,
      inject: `${bridge.inject}; ip link set veth2 down`,
      fix: `ip link set veth2 up; ${bridge.fix}`,
    },
    {
      name: "the port of a bridge that leads to the endpoint is blocked",
      ...down,
      names: "veth1 is blocked by its bridge",
      connections: "repaired",
      ask: ask.client,
      inject: `${bridge.inject}; bridge link set dev veth1 state 0`,
      fix: `bridge link set dev veth1 state 3; ${bridge.fix}`,
    },
    {
      name: "no port of a bridge is up",
      ...down,
      names: "veth1 is down, and is the port of cni9",
      ask: ask.client,
      inject: `${bridge.inject}; ip link set veth1 down; ip link set veth2 down`,
      fix: `ip link set veth1 up; ip link set veth2 up; ${bridge.fix}`,
    },
  ];
}

/** Tables of nft for bridges, on the way of packets by one. */
function tableFaults(
  bridge: Required<Pick<Fault, "inject" | "fix">>,
  ask: Readonly<Record<"pod" | "client", Fault["ask"]>>,
  pod: string,
): readonly Fault[] {
  const rule = (hook: string, text: string): Pick<Fault, "inject" | "fix"> => ({
    inject: `${bridge.inject}; sysctl -qw net.bridge.bridge-nf-call-iptables=1; nft 'add table bridge guard; add chain bridge guard c { type filter hook ${hook} priority -200; }; add rule bridge guard c ${text}'`,
    fix: `nft delete table bridge guard; ${bridge.fix}; sysctl -qw net.bridge.bridge-nf-call-iptables=0`,
  });
  const lost = { culprits: ["external_drop"], connections: "repaired" } as const;
  const all = ["nft", "iptables", "ebpf"];
  return [
    { name: "bridge table: what goes to a pod", ...lost, backends: all, ask: ask.client, ...rule("output", "tcp dport 8080 drop") },
    { name: "bridge table: what a pod answers", ...lost, backends: all, ask: ask.client, ...rule("prerouting", "tcp sport 8080 drop") },
    {
      name: "bridge table: what a pod sends to the service range",
      ...lost,
      backends: TRANSLATING,
      ask: ask.pod,
      ...rule("prerouting", `ip saddr ${pod} ip daddr 10.96.0.0/16 drop`),
    },
    { name: "bridge table: from port to port", ...lost, backends: all, ask: ask.pod, ...rule("forward", "tcp dport 8080 drop") },
    {
      name: "bridge table: what comes in by a port, which nobody knows",
      backends: all,
      culprits: [],
      unjudged: 'iifname "veth2"',
      ask: ask.pod,
      ...rule("prerouting", 'iifname "veth2" drop'),
    },
    {
      name: "bridge table: what is for others, and nothing is wrong",
      backends: all,
      culprits: [],
      connections: "arrive",
      ask: ask.client,
      ...rule("forward", "ip protocol tcp drop"),
    },
  ];
}

/** A pod, and its device on the node. */
interface Port {
  readonly place: Place;
  readonly device: string;
}

/** Put the devices of pods on a bridge, with a network of their own as its pods have it, and off again. */
function bridgeOf(ports: readonly Port[]): Required<Pick<Fault, "inject" | "fix">> {
  const addresses = ({ place }: Port) => ({ four: place.address("IPv4"), six: place.address("IPv6") });
  // Namespaces of one laboratory are named alike.
  const inside = ({ place }: Port, words: string): string => `ip -n "$(ip netns identify $$ | sed s/node1$/${place.name}/)" ${words}`;
  const networks = (port: Port): readonly string[] => [
    addresses(port).four.replace(/\d+$/, "0/24"),
    addresses(port).six.replace(/[^:]+$/, "/64"),
  ];
  const routes = (port: Port, device: string): readonly string[] => [
    `ip route replace ${addresses(port).four}/32 dev ${device}`,
    `ip -6 route replace ${addresses(port).six}/128 dev ${device}`,
  ];
  const inject = ports.flatMap((port) => [
    `ip link set ${port.device} master cni9`,
    ...routes(port, "cni9"),
    ...networks(port).map((network) => inside(port, `route add ${network} dev eth0`)),
  ]);
  const fix = ports.flatMap((port) => [
    ...networks(port).map((network) => inside(port, `route del ${network} dev eth0`)),
    `ip link set ${port.device} nomaster`,
    ...routes(port, port.device),
  ]);
  return {
    inject: ["ip link add cni9 type bridge", "ip link set cni9 up", ...inject].join("; "),
    fix: [...fix, "ip link del cni9"].join("; "),
  };
}
