import type { AskedPacket } from "./question.ts";

/** Something that happens to the packet, in one plain sentence. */
export interface Step {
  readonly says: string;
  /** The rule of docs/rules.md that decides, e.g. `R-22`. */
  readonly rule?: string;
  /** Where it goes by routes and devices, if nothing keeps it from getting so far. */
  readonly isOfWay?: true;
}

/** An endpoint that the packet may be sent to. */
export interface FateEndpoint {
  readonly ip: string;
  readonly port: number;
  /** The node it runs on; undefined: nobody said. */
  readonly nodeName: string | undefined;
  readonly isLocal: boolean;
  /** The endpoint sees an address of this node instead of the packet's source. */
  readonly masquerade: boolean;
  /** The address is a Service's cluster IP, or in the service range: no pod has it. */
  readonly isServiceAddress?: true;
}

/** What the desired state makes of the packet; `pass`: it is no Service's, and goes on as it is. */
export type Fate = ForwardFate | { readonly is: "reject" | "drop" | "pass" };

/** The packet gets to one of these endpoints. */
export interface ForwardFate {
  readonly is: "forward";
  readonly endpoints: readonly FateEndpoint[];
  /**
   * `socket`: a program at the client's socket puts the endpoint in the address's place before there is a packet. `process`: the proxy's process takes
   * the client's connection, and opens one of its own to the endpoint. Absent: as the backend does, which is to translate packets, unless it is a process.
   */
  readonly at?: "socket" | "process";
  /** The address is a Service's own, and on a device of this host too. */
  readonly isHostAddress?: true;
  /** Such an address is a cluster IP: with some backends a program of this host that listens there comes first. */
  readonly isClusterIP?: true;
  /** An EndpointSlice names the sender as a pod of this node. */
  readonly isSenderHere?: true;
}

/**
 * Everything that can be to blame, in the order in which a packet meets it: the first is the culprit.
 *
 * Each with what it means, for docs/why.md.
 */
export const CAUSES = {
  families_differ: "source and destination are of different families",
  other_flags: "this command was told other flags than the proxy that wrote the rules",
  elsewhere: "another node decides about this packet",
  kernel_stale: "the kernel serves what no Service has any more: it was added, or left there",
  no_services: "no Service at all is known here",
  hidden_label: "the Service is left to another proxy by its label",
  refused_object: "the Service, or a part of it, was refused: it can't be used as it is written",
  not_allowed: "the address is outside the ranges that Services may have here",
  too_large: "the Service has more ports, addresses or source ranges than one object may have",
  lost_claim: "two Services want one address, and the other one has it",
  ip_mode_proxy: "the load-balancer IP is in ipMode Proxy: only the load balancer answers there",
  device_unserved: "the backend does not serve packets that come in by that device",
  incapable: "the backend can't do what the Service asks for",
  wrong_protocol: "the Service has the port in another protocol only",
  wrong_port: "the Service has the address, but not the port",
  device_down: "a device that the packet needs is down",
  node_address: "the Node object's addresses are none of this host's, so node ports don't answer",
  node_port_address: "node ports don't answer on this address of the node",
  node_port_loopback: "node ports don't answer on loopback",
  source_problem: "the source of Services is not followed, or has what can't be used",
  unknown_address: "no Service has the address, and it is in a service range, or like a cluster IP",
  family_missing: "the Service has no address or no endpoints of this family",
  source_range: "the client is outside the Service's source ranges",
  no_endpoints: "the Service has no endpoints",
  named_port: "the Service's slices lack the port: names or protocols don't match",
  none_ready: "the Service has endpoints, and none is ready",
  node_unknown: "the source has no Node of this node's name, so no endpoint counts as being here",
  pod_counts_as_outside: "a pod of this node counts as a client outside, by the flags that tell pods",
  local_policy: "the policy is Local, and no endpoint is on this node",
  address_taken: "this node itself has an endpoint's address, so the pod gets nothing",
  service_endpoint: "an endpoint is a Service's own address, and packets are translated once only",
  ipv6_off: "IPv6 is off on a device that the packet needs",
  rp_filter: "the kernel's reverse path filter drops the packet or its answer",
  conntrack_full: "the table of connections is full",
  stale_flow: "the kernel remembers this flow, and sends it where it went before",
  external_translation: "rules of another program translate the packet before ours",
  bypassed: "rules of another program end the table before ours are asked",
  network_policy: "a NetworkPolicy, as the CNI enforces it, drops the packet",
  external_drop: "rules of another program drop the packet or its answer",
  untracked: "rules of another program keep the packet from being tracked, so it is not translated",
  mark_bit: "rules of another program change the mark bit that asks for masquerade",
  no_masquerade: "rules of another program let the packet leave with its own source, so the answer does not come back",
  hairpin_off: "a bridge does not send a pod's packet back by the port that it came in by",
  bridge_not_called: "a bridge passes answers on from port to port, past all rules, so they are not translated back",
  two_proxies: "another service proxy has rules in force for this address, or a second Turnout writes here",
  refused_row: "the host refused the Service's rules",
  kernel_missing: "something that the proxy should have put into the kernel was removed, or never written",
  kernel_changed: "something that the proxy put into the kernel was changed there",
  not_running: "no proxy keeps the rules in step: it ended, hangs or is stopped",
  forwarding_off: "the kernel does not forward packets",
  localnet_off: "the kernel does not route packets from loopback to other hosts",
  route_hidden: "a route takes packets for the endpoint elsewhere, before the one that leads to it",
  no_route: "there is no route to the endpoint",
  no_way_back: "there is no route back to the client",
  martian: "the kernel takes the address for one that can't come in there",
  neighbour: "the next hop does not answer on the link",
  mtu: "packets are too large for a device, and nobody gets to hear it",
  unanswered: "an endpoint does not answer, or nothing listens where the packet ends",
  hints_ignored: "topology hints don't apply, so all endpoints are used",
  contested: "another Service wants the address, too, and does not get it",
} as const;

/** One of the {@link CAUSES}. */
export type CauseId = keyof typeof CAUSES;

/** Something that keeps the packet from arriving as it is meant to, or may. */
export interface Cause {
  readonly id: CauseId;
  /** What is wrong, with the names it has here: one or two plain sentences. */
  readonly says: string;
  /** Of what the kernel holds otherwise: all that differs, as the packet meets it, where there is more than one difference. */
  readonly differences?: readonly string[];
  /** Commands that show it, each as it can be pasted; absent: nothing but the answer itself does. */
  readonly show?: readonly string[];
  /** What to do, in words. */
  readonly fix: string;
  /** The commands that do it, all of them, in order; absent: there are none that could be pasted. */
  readonly commands?: readonly string[];
  /** What may be done in place of that, with its commands; absent: there is nothing else, or no command for it. */
  readonly instead?: { readonly fix: string; readonly commands: readonly string[] };
  /** False: it is a guess, or explains something else than a packet that does not arrive. Default true. */
  readonly isSure?: false;
}

/** A rule of another program on the packet's way of which nobody can tell whether it fits the packet. */
export interface UnjudgedRule {
  /** Where it is, and what it may do. */
  readonly says: string;
  /** As its tool writes it. */
  readonly rule: string;
  readonly show: string;
}

/** What there is to say about one packet. */
export interface Answer {
  readonly packet: AskedPacket;
  /** The node that was asked. */
  readonly node: string;
  readonly backend: string;
  readonly steps: readonly Step[];
  readonly fate: Fate;
  /** Found wrong, the culprit first; empty: nothing was. */
  readonly causes: readonly Cause[];
  /** Worth knowing, and nothing that is wrong here; absent: nothing. */
  readonly notes?: readonly string[];
  /** What could not be looked at, and why. */
  readonly unseen: readonly string[];
  /** Rules that may drop the packet, for all that can be told. */
  readonly unjudged: readonly UnjudgedRule[];
  /** The rest of the packet's way over this host was looked at too. */
  readonly isSurveyed: boolean;
  /** By a running proxy, which has given up rights that the command has; absent: not so. */
  readonly isSurveyedByProxy?: true;
  /** The endpoints were connected to. */
  readonly isProbed: boolean;
}

const ORDER = Object.keys(CAUSES) as readonly CauseId[];

/** What keeps a packet from going where routes and devices lead it as the Services want it to go. */
const OFF_THE_WAY: ReadonlySet<CauseId> = new Set([
  "kernel_stale",
  "device_down",
  "ipv6_off",
  "rp_filter",
  "conntrack_full",
  "stale_flow",
  "external_translation",
  "bypassed",
  "network_policy",
  "external_drop",
  "untracked",
  "two_proxies",
  "refused_row",
  "kernel_missing",
  "kernel_changed",
]);

/** Tell whether something that was found keeps the packet from the way that routes and devices give it. Pure. */
export function areOffTheWay(causes: readonly Cause[]): boolean {
  return causes.some(({ id, isSure }) => isSure !== false && OFF_THE_WAY.has(id));
}

/** What says that a packet should not go where it goes, or that its answer doesn't. */
const ASTRAY: ReadonlySet<CauseId> = new Set(["unknown_address", "no_route", "no_way_back", "route_hidden"]);

/**
 * Put causes in order: what is sure before guesses, then as the packet meets them; each is told once. Pure.
 *
 * Edges: with other flags than the proxy's nothing else in the answer can be relied on, so that comes first. A next hop that does not answer, and a
 * device that is down, come after what says that the packet should not go there at all.
 */
export function rankedCauses(causes: readonly Cause[]): readonly Cause[] {
  const isAstray = causes.some(({ id }) => ASTRAY.has(id));
  const isLate = ({ id, isSure }: Cause): boolean => isSure === false || (isAstray && (id === "neighbour" || id === "device_down"));
  const rank = (cause: Cause): number => (cause.id === "other_flags" ? -1 : ORDER.indexOf(cause.id) + (isLate(cause) ? ORDER.length : 0));
  const reported = new Map(causes.toReversed().map((cause) => [`${cause.id} ${cause.says}`, cause]));
  return [...reported.values()].toSorted((a, b) => rank(a) - rank(b));
}
