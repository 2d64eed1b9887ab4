import { listedNames } from "../model/names.ts";
import type { Cause } from "./answer.ts";
import { detectorText, isFromHost, isFromPod, isWithin } from "./hit.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";

const NAMED_MAX = 4;

/** What is wrong with what this node is taken for: the causes where they decide about the packet, and what is worth knowing otherwise. */
export interface NodeFindings {
  readonly causes: readonly Cause[];
  readonly notes: readonly string[];
}

/** What decides whether that matters for the packet. */
export interface NodeRelevance {
  /** The policy is Local, and no endpoint is on this node, as it is called. */
  readonly isWithoutLocal: boolean;
  /** Node ports were asked for, and don't answer on the address. */
  readonly isWithoutNodePorts: boolean;
}

/** Say so where the node's name, its addresses or how its pods are told don't fit this host. Pure. */
export function nodeFindings(state: ExplainedState, packet: AskedPacket, relevance: NodeRelevance): NodeFindings {
  const { isWithoutLocal, isWithoutNodePorts } = relevance;
  const found: readonly (readonly [Cause | undefined, boolean])[] = [
    [nameCause(state), isWithoutLocal],
    [addressCause(state), isWithoutNodePorts],
    [detectorCause(state, packet), isWithoutLocal],
  ];
  return {
    causes: found.flatMap(([cause, isDecisive]) => (cause !== undefined && isDecisive ? [cause] : [])),
    notes: found.flatMap(([cause, isDecisive]) => (cause === undefined || isDecisive ? [] : [cause.says])),
  };
}

/** Files may have no Node objects at all: then nothing can be told. */
function nameCause({ node, objects, source, hostAddresses, rows }: ExplainedState): Cause | undefined {
  if (objects?.nodes === undefined) return undefined;
  const nodes = [...objects.nodes()];
  if (nodes.some(({ name }) => name === node.name) || (nodes.length === 0 && source?.name?.startsWith("kube") !== true)) return undefined;
  const own = nodes.find(({ addresses }) => addresses.some((address) => hostAddresses.includes(address)));
  const named = nodes.length > 0 ? nodes.map(({ name }) => name) : endpointNodes(rows);
  const others = own === undefined ? listedNames(named, NAMED_MAX) : own.name;
  const hint = own === undefined ? (others === "" ? "" : `; it knows of ${others}`) : `; Node ${own.name} has this host's address`;
  return {
    id: "node_unknown",
    says: `this proxy is told to be node ${node.name}, and the source has no Node of that name${hint}: so no endpoint counts as being on this node`,
    show: ["kubectl get nodes -o wide"],
    fix: `start the proxy with --node-name ${own === undefined ? "and the name of this host's Node object" : own.name}`,
  };
}

function endpointNodes(rows: ExplainedState["rows"]): readonly string[] {
  return [...new Set([...rows].flatMap(({ endpoints }) => endpoints.flatMap(({ nodeName }) => nodeName ?? [])))];
}

function addressCause({ node, hostAddresses }: ExplainedState): Cause | undefined {
  const { addresses, name } = node;
  if (addresses.length === 0 || hostAddresses.length === 0 || addresses.some((address) => hostAddresses.includes(address)))
    return undefined;
  return {
    id: "node_address",
    says: `Node ${name} has ${listedNames(addresses, NAMED_MAX)} as its address, which is on no device of this host: node ports that answer on the node's address answer nowhere`,
    show: [`kubectl get node ${name} -o wide`, "ip -br address"],
    fix: "have kubelet tell an address that this host has (--node-ip), or give this host the address; and see whether --node-name is this host's",
  };
}

function detectorCause(state: ExplainedState, packet: AskedPacket): Cause | undefined {
  const { detector, podCIDRs, name } = state.node;
  const { source } = packet;
  const range = podCIDRs.find((cidr) => isWithin(source, [cidr]));
  if (range === undefined || detector?.by !== "cidr" || isFromPod(state, packet) || isFromHost(state, packet)) return undefined;
  return {
    id: "pod_counts_as_outside",
    says: `${source} is in the range of the pods of ${name} (${range}), and counts as a client outside the cluster, since ${detectorText(detector)}`,
    show: [`kubectl get node ${name} -o jsonpath='{.spec.podCIDRs}'`],
    fix: "give the proxy the range that the pods have (--cluster-cidr), or --detect-local-mode NodeCIDR",
  };
}
