import { spawn } from "node:child_process";
import type { ChildProcess, StdioOptions } from "node:child_process";
import type { Exec, ExecOptions, ExecResult, IPFamily } from "@turnout/core";
import { ProxyError } from "@turnout/core";
import { createExec } from "@turnout/host";
import { FABRIC, planCluster } from "./address-plan.ts";
import type { ClusterPlan, ClusterShape, PlaceKind, PlannedPlace } from "./address-plan.ts";
import { callProgram } from "./agent/agent.ts";
import type { Agent } from "./agent/agent.ts";
import { AGENT_CALLS } from "./agent/protocol.ts";
import type { AgentCalls } from "./agent/protocol.ts";
import { guardUntilExit } from "./exit-guard.ts";
import { namespaceName, removeNamespaces, thisOwner } from "./namespaces.ts";
import { createNodeCgroup, removeCgroups } from "./node-cgroup.ts";
import { sweepLeftovers } from "./sweep.ts";

/** What cluster to build, and with what. */
export interface ClusterOptions extends ClusterShape {
  /** Aborting tears down what was built so far. */
  readonly signal?: AbortSignal;
  /** Nodes that have a cgroup (version 2) and a bpffs of their own, which they share with their pods, as machines do. Default none: all see those of this host. */
  readonly cgroups?: readonly string[];
}

/** How a program is started in a place. */
export interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Default: stdin ignored, stdout and stderr piped. */
  readonly stdio?: StdioOptions;
}

/** One network namespace of a cluster. */
export interface Place {
  readonly kind: PlaceKind;
  readonly name: string;
  /** Name for `ip netns`. */
  readonly namespace: string;
  /** The node it is on (a node's own name for a node); undefined outside. */
  readonly node?: string;
  /** Its address. @throws {ProxyError} `not_found` when the cluster lacks the family. */
  address(family: IPFamily): string;
  /** The process that serves and asks here; started on first use, one per place. */
  agent(): Agent;
  /** Run a program here to its end. @throws {ProxyError} `tool_failed` when it exits non-zero. */
  run(file: string, args: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  /** Start a program here; the caller ends it, or else {@link Cluster.destroy} does. */
  spawn(file: string, args: readonly string[], options?: SpawnOptions): ChildProcess;
}

/** A node: host-network pods are its own agent. */
export interface NodePlace extends Place {
  readonly zone: string;
  readonly podCIDRs: readonly string[];
  readonly pods: readonly Place[];
}

/** A cluster of network namespaces. */
export interface Cluster {
  readonly families: readonly IPFamily[];
  readonly nodes: readonly NodePlace[];
  readonly clients: readonly Place[];
  /** Joins nodes and clients; stands for everything outside, such as a load balancer or the API server. */
  readonly fabric: Place;
  /** A place by name. @throws {ProxyError} `not_found`. */
  place(name: string): Place;
  node(name: string): NodePlace;
  /** Send what the fabric gets for `destination` (address or CIDR) to a node. */
  routeTo(destination: string, node: string): Promise<void>;
  /** Remove every namespace, with whatever runs in them; safe to call twice. */
  destroy(): void;
}

let serial = 0;

/**
 * Build a cluster of network namespaces; nothing of it is visible in the namespace this process is in. Needs root.
 *
 * Shape: see {@link planCluster} for names and addresses.
 * Edges: leftovers of dead processes are swept first; a failure or an abort removes what was built; so do exit and SIGINT, SIGTERM, SIGHUP of this process.
 * @throws {ProxyError} `invalid_object`, `tool_missing`, `permission_denied`, `tool_failed`, `canceled`.
 */
export async function createCluster(options: ClusterOptions): Promise<Cluster> {
  const plan = planCluster(options);
  const exec = createExec();
  sweepLeftovers();
  serial += 1;
  const owner = thisOwner();
  const mine = serial;
  const nameOf = (place: string): string => namespaceName(owner, mine, place);
  const { cgroups: housed = [] } = options;
  const guard = guardUntilExit(() => {
    removeNamespaces(plan.places.map((place) => nameOf(place.name)));
    removeCgroups(housed.map(nameOf));
  });
  try {
    await build(plan, nameOf, exec, options.signal);
    const enter = new Map(await Promise.all(housed.map(async (node) => [node, await createNodeCgroup(nameOf(node))] as const)));
    return clusterFor({ plan, nameOf, exec, enter, remove: guard.remove });
  } catch (error) {
    guard.remove();
    throw error;
  }
}

/** What a cluster is made of. */
interface Built {
  readonly plan: ClusterPlan;
  readonly nameOf: (place: string) => string;
  readonly exec: Exec;
  /** Of nodes that have a cgroup of their own: see {@link createNodeCgroup}. */
  readonly enter: ReadonlyMap<string, readonly string[]>;
  readonly remove: () => void;
}

async function build(plan: ClusterPlan, nameOf: (place: string) => string, exec: Exec, signal: AbortSignal | undefined): Promise<void> {
  const limits = signal === undefined ? {} : { signal };
  const batch = async (args: readonly string[], lines: readonly string[]): Promise<void> => {
    const result = await exec.run("ip", [...args, "-batch", "-"], { ...limits, input: `${lines.join("\n")}\n` });
    if (result.code !== 0) throw buildError("ip -batch", args.join(" "), result);
  };
  await batch(
    [],
    plan.places.map((place) => `netns add ${nameOf(place.name)}`),
  );
  await Promise.all(
    plan.places.map(async ({ name, kind }) => {
      const result = await exec.run("ip", ["netns", "exec", nameOf(name), "sh", "-s"], { ...limits, input: sysctlScript(kind) });
      if (result.code !== 0) throw buildError("setting sysctls", name, result);
    }),
  );
  await batch(
    [],
    plan.links.map(
      (link) =>
        `link add ${link.routerLink} address ${link.routerMac} netns ${nameOf(link.router)} type veth peer name eth0 address ${link.leafMac} netns ${nameOf(link.leaf)}`,
    ),
  );
  await Promise.all([...plan.commands].map(([place, lines]) => batch(["-n", nameOf(place)], lines)));
}

function buildError(what: string, object: string, result: ExecResult): ProxyError {
  const denied = /not permitted|permission denied/i.test(result.stderr);
  return new ProxyError(denied ? "permission_denied" : "tool_failed", `building the cluster: ${what}`, {
    object,
    hint: denied ? "run as root" : result.stderr.trim(),
  });
}

// Set before the links exist: a new link takes the values of `default`.
const SYSCTLS: readonly (readonly [name: string, value: number])[] = [
  ["ipv4/conf/all/rp_filter", 0],
  ["ipv4/conf/default/rp_filter", 0],
  ["ipv6/conf/all/accept_dad", 0],
  ["ipv6/conf/default/accept_dad", 0],
  ["ipv6/conf/default/accept_ra", 0],
  // Otherwise the kernel holds back ICMP errors after the first few, and a reject looks like a drop.
  ["ipv4/icmp_ratelimit", 0],
  ["ipv6/icmp/ratelimit", 0],
];

const ROUTER_SYSCTLS: readonly (readonly [name: string, value: number])[] = [
  ["ipv4/ip_forward", 1],
  ["ipv6/conf/all/forwarding", 1],
  // A node that forwards out of the link a packet came by would tell the client to go round it.
  ["ipv4/conf/all/send_redirects", 0],
  ["ipv4/conf/default/send_redirects", 0],
];

/** Sysctls of later kernels, set where present. */
const OPTIONAL_SYSCTLS: readonly (readonly [name: string, value: number])[] = [
  // Bridged frames must not be tracked by the fabric: it is a wire.
  ["bridge/bridge-nf-call-iptables", 0],
  ["bridge/bridge-nf-call-ip6tables", 0],
  ["ipv4/icmp_msgs_per_sec", 1_000_000],
  ["ipv4/icmp_msgs_burst", 1_000_000],
];

function sysctlScript(kind: PlaceKind): string {
  const isRouter = kind === "fabric" || kind === "node";
  const needed = [...SYSCTLS, ...(isRouter ? ROUTER_SYSCTLS : [])].map(([name, value]) => `echo ${value} >/proc/sys/net/${name}`);
  const optional = OPTIONAL_SYSCTLS.map(([name, value]) => `[ ! -w /proc/sys/net/${name} ] || echo ${value} >/proc/sys/net/${name}`);
  return ["set -e", ...needed, ...optional].join("\n");
}

function clusterFor({ plan, nameOf, exec, enter, remove }: Built): Cluster {
  const agents = new Map<string, Agent>();
  const commandIn = ({ name, kind, node }: PlannedPlace): readonly string[] => {
    const into = enter.get((kind === "node" ? name : node) ?? "");
    return into === undefined ? ["ip", "netns", "exec", nameOf(name)] : [...into, `--net=/run/netns/${nameOf(name)}`];
  };
  const places = new Map(
    plan.places.map((place) => [place.name, placeFor(place, { namespace: nameOf(place.name), before: commandIn(place), exec, agents })]),
  );
  const find = (name: string): Place => {
    const place = places.get(name);
    if (place === undefined)
      throw new ProxyError("not_found", "no such place in the cluster", { object: name, hint: [...places.keys()].join(", ") });
    return place;
  };
  const nodes = plan.places
    .filter((place) => place.kind === "node")
    .map((node): NodePlace => {
      const pods = plan.places.filter((place) => place.node === node.name).map((place) => find(place.name));
      return { ...find(node.name), zone: node.zone ?? "", podCIDRs: node.podCIDRs ?? [], pods };
    });
  const findNode = (name: string): NodePlace => {
    const node = nodes.find((candidate) => candidate.name === name);
    if (node === undefined) throw new ProxyError("not_found", "no such node in the cluster", { object: name });
    return node;
  };
  const fabric = find(FABRIC);
  return {
    families:
      plan.places[0]?.addresses.IPv6 === undefined ? ["IPv4"] : plan.places[0].addresses.IPv4 === undefined ? ["IPv6"] : ["IPv4", "IPv6"],
    nodes,
    clients: [...places.values()].filter((place) => place.kind === "client"),
    fabric,
    place: find,
    node: findNode,
    routeTo: async (destination, node) => {
      const gateway = findNode(node).address(destination.includes(":") ? "IPv6" : "IPv4");
      await fabric.run("ip", ["route", "replace", destination, "via", gateway]);
    },
    destroy: () => {
      for (const agent of agents.values()) agent.close();
      agents.clear();
      remove();
    },
  };
}

/** What a place is made with. */
interface PlaceTools {
  readonly namespace: string;
  /** What comes before a command that is run there. */
  readonly before: readonly string[];
  readonly exec: Exec;
  readonly agents: Map<string, Agent>;
}

function placeFor(planned: PlannedPlace, { namespace, before, exec, agents }: PlaceTools): Place {
  const { kind, name } = planned;
  const [enter = "", ...entering] = before;
  const start = (file: string, args: readonly string[], options: SpawnOptions = {}): ChildProcess =>
    spawn(enter, [...entering, file, ...args], {
      stdio: options.stdio ?? ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...options.env },
    });
  return {
    kind,
    name,
    namespace,
    ...(kind === "node" ? { node: name } : planned.node === undefined ? {} : { node: planned.node }),
    address: (family) => {
      const address = planned.addresses[family];
      if (address === undefined) throw new ProxyError("not_found", `the cluster has no ${family}`, { object: name });
      return address;
    },
    agent: () => {
      const running = agents.get(name);
      if (running !== undefined) return running;
      const agent = callProgram<AgentCalls>(start, "agent/main", AGENT_CALLS, `agent of ${name}`);
      agents.set(name, agent);
      return agent;
    },
    run: async (file, args, options) => {
      const result = await exec.run(enter, [...entering, file, ...args], options);
      if (result.code !== 0) throw new ProxyError("tool_failed", `${file} ${args.join(" ")} in ${name}`, { hint: result.stderr.trim() });
      return result;
    },
    spawn: start,
  };
}
