import { hostPort } from "../model/addresses.ts";
import { printableName } from "../model/names.ts";
import type { Issue, Service } from "../model/api-objects.ts";
import type { Destination, ServicePort } from "../model/rows.ts";
import type { Cause, CauseId } from "./answer.ts";
import { isLoopback, isWithin, nodePortAddressesOf } from "./hit.ts";
import type { Hit } from "./hit.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";
import { emptySourceCauses, sourceCauses } from "./source-causes.ts";
import { isKnown, likenessCauses } from "./unowned-addresses.ts";

/** What becomes of a packet that is no Service's, and what may have been meant. */
export interface Miss {
  readonly is: "pass" | "reject" | "drop";
  readonly rule: string | undefined;
  readonly causes: readonly Cause[];
}

/** Say what becomes of a packet for an address and port that no row has, and which Service was probably meant. Pure. */
export function missCauses(state: ExplainedState, packet: AskedPacket): Miss {
  const causes = [
    ...hiddenCauses(state, packet),
    ...issueCauses(state, packet),
    ...leftOutCauses(state, packet),
    ...portCauses(state, packet),
    ...nodePortCauses(state, packet),
  ];
  const { is, rule } = fateOfMiss(state, packet);
  if (causes.length > 0) return { is, rule, causes };
  const empty = emptySourceCauses(state, packet, isKnown(state, packet.destination));
  if (empty.length > 0) return { is, rule, causes: empty };
  const unknown = unknownCauses(state, packet);
  return { is, rule, causes: [...unknown, ...(unknown.length === 0 ? [] : sourceCauses(state))] };
}

/** Nobody has the address, though it is one of a Service, or like one. */
function unknownCauses(state: ExplainedState, packet: AskedPacket): readonly Cause[] {
  if (!isWithin(packet.destination, state.node.serviceCIDRs)) return likenessCauses(state, packet);
  const says = `no Service has the address ${packet.destination}, which is in the cluster's service range`;
  const show = [`kubectl get services -A --field-selector spec.clusterIP=${packet.destination}`];
  const fix = "the Service was deleted, or never was: ask for its present address (a client may have kept an old DNS answer)";
  return [{ id: "unknown_address", says, show, fix }];
}

/** Rules. */
function fateOfMiss(
  { rows, node, hostAddresses, variants }: ExplainedState,
  { destination, port, protocol }: AskedPacket,
): Pick<Miss, "is" | "rule"> {
  if (hostAddresses.includes(destination)) {
    if (variants.nodePortRejectScope === "nodePortAddresses") return { is: "pass", rule: undefined };
    const last = destinationsOf(
      rows,
      (one, row) => one.kind === "nodePort" && one.port === port && row.name.protocol === protocol,
    )[0]?.rules.at(-1)?.to;
    return { is: last === "reject" || last === "drop" ? last : "pass", rule: undefined };
  }
  const kinds = new Set(destinationsOf(rows, ({ address }) => address === destination).map(({ kind }) => kind));
  if (kinds.has("clusterIP")) return { is: variants.undefinedClusterIPPort, rule: "R-47" };
  if (kinds.size > 0) return { is: variants.undefinedExternalPort, rule: "R-47" };
  if (isWithin(destination, node.serviceCIDRs)) return { is: variants.unallocatedClusterIP, rule: "R-48" };
  return { is: "pass", rule: undefined };
}

function destinationsOf(
  rows: Iterable<ServicePort>,
  fits: (destination: Destination, row: ServicePort) => boolean,
): readonly Destination[] {
  return [...rows].flatMap((row) => row.destinations.filter((destination) => fits(destination, row)));
}

/** Services that are another proxy's, by their label. */
function hiddenCauses({ hidden = [] }: ExplainedState, packet: AskedPacket): readonly Cause[] {
  return hidden.flatMap(({ service, label }): readonly Cause[] => {
    if (!has(service, packet)) return [];
    const { namespace, name } = service;
    const says = `Service ${namespace}/${name} has the address, and the label ${label}: it is left to another proxy (R-63)`;
    return [
      {
        id: "hidden_label",
        says,
        show: [`kubectl get service -n ${namespace} ${name} --show-labels`],
        fix: "if no other proxy serves it, remove the label",
        commands: [`kubectl label service -n ${namespace} ${name} ${label}-`],
      },
    ];
  });
}

/** A Service as it is written, whether it has rows or not: its addresses and node ports. */
function has({ addresses, ports }: Service, { family, destination, port, protocol }: AskedPacket): boolean {
  const own = addresses[family];
  const all =
    own === undefined ? [] : [own.clusterIP, ...own.externalIPs, ...own.loadBalancerIPs, ...(own.unserved ?? []).map(({ ip }) => ip)];
  return all.includes(destination) || ports.some((one) => one.nodePort === port && one.protocol === protocol);
}

/** What each report about an object means for a packet, by its words. */
const ISSUE_CAUSES: readonly (readonly [RegExp, CauseId])[] = [
  [/^an address it can't have is left out/, "lost_claim"],
  [/outside the ranges allowed/, "not_allowed"],
  [/^left out, no |they have different ports/, "incapable"],
  [/^too many ports times /, "too_large"],
];

function issueCause({ object, what, hint }: Issue, id: CauseId): Cause {
  return { id, says: `${object}: ${what}`, show: ["turnout status"], fix: hint };
}

function idOf({ what }: Issue): CauseId {
  return ISSUE_CAUSES.find(([pattern]) => pattern.test(what))?.[1] ?? "refused_object";
}

/** Reports that name the address, or the Service whose address it is. */
function issueCauses(state: ExplainedState, packet: AskedPacket): readonly Cause[] {
  const { issues, objects } = state;
  const owners = [...(objects?.services() ?? [])]
    .filter((service) => has(service, packet))
    .map(({ namespace, name }) => `${namespace}/${name}`);
  const near = [...state.rows]
    .filter((row) => row.destinations.some(({ address }) => address === packet.destination))
    .map(({ name }) => `${name.namespace}/${name.name}`);
  const keys = new Set([...owners, ...near]);
  return issues.filter((issue) => isAbout(issue, packet, keys)).map((issue) => issueCause(issue, idOf(issue)));
}

function isAbout({ object, what }: Issue, { destination, port, protocol }: AskedPacket, keys: ReadonlySet<string>): boolean {
  // What is open to more clients than meant keeps no packet from arriving.
  if (!object.startsWith("Service ") || what.includes("open to all clients")) return false;
  if (words(what).has(destination) || what.includes(`${hostPort(destination, port)}/${protocol}`)) return true;
  const [, key = ""] = /^Service (?:port )?([^/]+\/[^/:]+)/.exec(object) ?? [];
  return keys.has(key);
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(/[\s,"'()]+/).map((word) => word.replace(/[.:]$/, "")));
}

/** Addresses and Services that make no rows without anything being wrong. */
function leftOutCauses({ objects }: ExplainedState, packet: AskedPacket): readonly Cause[] {
  return [...(objects?.services() ?? [])].flatMap((service): readonly Cause[] => {
    const { namespace, name } = service;
    const unserved = service.addresses[packet.family]?.unserved ?? [];
    if (!unserved.some(({ ip, why }) => ip === packet.destination && why === "ipMode")) return [];
    const says = `${packet.destination} is a load-balancer IP of Service ${namespace}/${name} in ipMode Proxy: packets have to go through the load balancer itself, so no node takes them (R-06)`;
    return [
      {
        id: "ip_mode_proxy",
        says,
        show: [`kubectl get service -n ${namespace} ${name} -o jsonpath='{.status.loadBalancer.ingress}'`],
        fix: "see whether the load balancer is reached and healthy; the cloud's controller sets ipMode",
      },
    ];
  });
}

/** Services that have the address, with another port or protocol. */
function portCauses({ rows }: ExplainedState, packet: AskedPacket): readonly Cause[] {
  const near = [...rows].filter((row) => row.destinations.some(({ address }) => address === packet.destination));
  const [row] = near;
  if (row === undefined) return [];
  const { namespace, name } = row.name;
  const service = `Service ${namespace}/${name}`;
  const show = [`kubectl get service -n ${namespace} ${name}`];
  const other = near.find((one) => one.destinations.some(({ address, port }) => address === packet.destination && port === packet.port));
  if (other !== undefined) {
    const says = `${service} has ${hostPort(packet.destination, packet.port)} in ${other.name.protocol}, not in ${packet.protocol}`;
    return [
      {
        id: "wrong_protocol",
        says,
        show,
        fix: `ask with ${other.name.protocol}, or add a port with protocol: ${packet.protocol} to the Service`,
      },
    ];
  }
  const ports = near.flatMap((one) =>
    one.destinations.filter(({ address }) => address === packet.destination).map(({ port }) => `${port}/${one.name.protocol}`),
  );
  const says = `${service} has the address ${packet.destination}, and no port ${packet.port}/${packet.protocol}: it has ${[...new Set(ports)].join(", ")}`;
  return [{ id: "wrong_port", says, show, fix: "use one of its ports (the Service's port, not the pods' targetPort), or add this one" }];
}

/** Node ports, asked for where they don't answer. */
function nodePortCauses(state: ExplainedState, packet: AskedPacket): readonly Cause[] {
  const { rows, hostAddresses, node } = state;
  const { destination, port, protocol } = packet;
  const isHosts = hostAddresses.includes(destination) || isLoopback(destination);
  const of = (fits: (row: ServicePort) => boolean): ServicePort | undefined =>
    [...rows].find((row) => fits(row) && row.destinations.some((one) => one.kind === "nodePort" && one.port === port));
  const row = of(({ name }) => name.protocol === protocol);
  if (!isHosts && !node.addresses.includes(destination)) return [];
  if (row === undefined) {
    const other = of(() => true);
    if (other === undefined) return [];
    const says = `port ${port} is the node port of Service ${printableName(other.name)} in ${other.name.protocol}, not in ${protocol}`;
    return [
      {
        id: "wrong_protocol",
        says,
        show: [`kubectl get service -n ${other.name.namespace} ${other.name.name}`],
        fix: `ask with ${other.name.protocol}`,
      },
    ];
  }
  const is = `${port} is the node port of Service ${printableName(row.name)}`;
  if (isLoopback(destination)) {
    const says = `${is}, and node ports don't answer on ${destination} (R-37)`;
    const byProcess =
      state.variants.nodePortsOnLoopback !== "TCP"
        ? ""
        : state.node.settings.localhostNodePorts === false
          ? ", or leave out the feature gate KubeProxyNFTablesLocalhostNodePorts=false (TCP only)"
          : ", or add localhost to nodePortAddresses (TCP only)";
    return [{ id: "node_port_loopback", says, fix: `ask an address of the node: ${answering(state)}${byProcess}` }];
  }
  const says = isHosts
    ? `${is}, and node ports don't answer on ${destination}: those that do: ${answering(state)} (R-37)`
    : `${is}, and ${destination} is on no device of this host`;
  return [
    {
      id: "node_port_address",
      says,
      show: ["turnout run --help | grep -A3 nodeport-addresses"],
      fix: isHosts
        ? `ask one that does, or have nodePortAddresses (--nodeport-addresses) choose this address too`
        : `ask an address of the node on which node ports answer: ${answering(state)}`,
    },
  ];
}

function answering(state: ExplainedState): string {
  const chosen = nodePortAddressesOf(state);
  const able = (chosen === "all" ? state.hostAddresses : chosen).filter((address) => !isLoopback(address));
  return [...new Set(able)].slice(0, 4).join(", ") || "there is none (nodePortAddresses, --nodeport-addresses chooses them)";
}

/** Another Service that wants what this one has. Pure. */
export function contestedCauses({ issues }: ExplainedState, packet: AskedPacket, { row, destination }: Hit): readonly Cause[] {
  const name =
    destination.kind === "nodePort"
      ? `node port ${packet.port}/${packet.protocol} `
      : `${hostPort(packet.destination, packet.port)}/${packet.protocol} `;
  return issues
    .filter(({ what }) => what.startsWith("an address it can't have is left out") && what.includes(`${name}is ${row.key}'s`))
    .map((issue) => ({ ...issueCause(issue, "contested"), isSure: false as const }));
}
