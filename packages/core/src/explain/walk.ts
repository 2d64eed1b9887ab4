import { familyOf, hostPort } from "../model/addresses.ts";
import { printableName } from "../model/names.ts";
import type { Destination, DestinationKind, Endpoint, Rule, ServicePort } from "../model/rows.ts";
import type { Cause, Fate, FateEndpoint, Step } from "./answer.ts";
import { emptyPoolCauses, hintCauses, sourceRangeCause } from "./empty-pools.ts";
import { decidingRule, detectorText, hitOf, isAtSocket, isEndpointHere, isFromHost, isFromPod, isWithin } from "./hit.ts";
import type { Hit } from "./hit.ts";
import { loopbackAnswer } from "./loopback.ts";
import { contestedCauses, missCauses } from "./near-misses.ts";
import { UNKNOWN_DEVICE } from "./question.ts";
import { nodeFindings } from "./node-causes.ts";
import { inSource, sourceNotes } from "./source-causes.ts";
import { isServiceAddress, senderNotes, serviceCauses, unownedNotes, unownedText, takenCauses } from "./unowned-addresses.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";

/** What the desired state says of a packet. */
export interface Walk {
  readonly steps: readonly Step[];
  readonly fate: Fate;
  readonly hit: Hit | undefined;
  readonly causes: readonly Cause[];
  readonly notes: readonly string[];
}

const KINDS: Readonly<Record<DestinationKind, string>> = {
  clusterIP: "the cluster IP",
  externalIP: "an external IP",
  loadBalancerIP: "a load-balancer IP",
  nodePort: "the node port",
};
const ENDPOINTS_SHOWN = 4;

/**
 * Walk one packet through the desired state: who sends it, whose address it is for, which rule decides, where it goes. Pure.
 *
 * Edges: what the backend can't do was taken out of the rows; what it does otherwise is in its variants.
 * @source rules R-22 to R-40, R-47, R-48, R-56
 */
export function walkPacket(state: ExplainedState, packet: AskedPacket): Walk {
  const mixed = familiesCause(packet);
  if (mixed !== undefined) return { steps: [], fate: { is: "pass" }, hit: undefined, causes: [mixed], notes: [] };
  const sender: Step = { says: senderText(state, packet) };
  if (packet.device === "" && state.capabilities.hostOrigin !== true) {
    const says = `the backend does not serve packets of the node itself: ${state.capabilities.hostOrigin}`;
    const cause: Cause = { id: "incapable", says, fix: "ask from a pod, or use another backend" };
    return {
      steps: [sender, { says: "it goes on as it is", rule: "R-56" }],
      fate: { is: "pass" },
      hit: undefined,
      causes: [cause],
      notes: [],
    };
  }
  const onLoopback = loopbackAnswer(state, packet);
  if (onLoopback !== undefined) {
    const { step, ...answer } = onLoopback;
    const says = `${targetText(packet)} is the node port of Service ${printableName(answer.hit.row.name)}, on loopback`;
    return { ...answer, steps: [sender, { says }, step], notes: [] };
  }
  const hit = hitOf(state, packet);
  if (hit === undefined) return walkMiss(state, packet, sender);
  const { row, destination } = hit;
  const rule = decidingRule(state, packet, hit);
  const owner: Step = { says: `${targetText(packet)} is ${KINDS[destination.kind]} of Service ${printableName(row.name)}` };
  const leftOut = isAtSocket(state, packet, hit) ? undefined : unservedCause(state, packet);
  if (leftOut !== undefined && leftOut.isSure !== false) {
    const says = `${leftOut.says}: it goes on as it is`;
    return { steps: [sender, owner, { says }], fate: { is: "pass" }, hit, causes: [leftOut], notes: [] };
  }
  const others = [...contestedCauses(state, packet, hit), ...hintCauses(state, row)];
  const decision = decisionOf(state, packet, hit, rule);
  const isWithoutLocal = decision.causes.some(({ id }) => id === "local_policy");
  const ofNode = nodeFindings(state, packet, { isWithoutLocal, isWithoutNodePorts: false });
  const ofEndpoints = [...takenCauses(state, decision.fate), ...serviceCauses(state, decision.fate)];
  return {
    ...decision,
    steps: [sender, owner, ...decision.steps],
    hit,
    causes: inSource(
      [...ofNode.causes, ...decision.causes, ...ofEndpoints, ...others, ...(leftOut === undefined ? [] : [leftOut])],
      state,
      row.name.name,
    ),
    notes: [...senderNotes(state, packet), ...sourceNotes(state), ...ofNode.notes],
  };
}

/** A device by which nothing is served. A guess where it is not known that the packet comes in there. */
function unservedCause(state: ExplainedState, { device, isDeviceAssumed }: AskedPacket): Cause | undefined {
  const says = device === "" ? undefined : state.unserved?.(device);
  if (says === undefined) return undefined;
  return {
    id: "device_unserved",
    says: isDeviceAssumed === true ? `${says}; the packet is taken to come in there` : says,
    show: ["turnout status", `ip route show dev ${device}`],
    fix: "have clients come by a device that is served, or name this one too (--backend-option devices=...), and restart the proxy",
    ...(isDeviceAssumed === true ? { isSure: false as const } : {}),
  };
}

/** A fate without endpoints. */
type Unserved = Exclude<Fate, { readonly is: "forward" }>;

type Decision = Pick<Walk, "steps" | "fate" | "causes">;

function walkMiss(state: ExplainedState, packet: AskedPacket, sender: Step): Walk {
  const { is: wanted, rule, causes: missing } = missCauses(state, packet);
  const isWithoutNodePorts = missing.some(({ id }) => id === "node_port_address");
  const ofNode = nodeFindings(state, packet, { isWithoutLocal: false, isWithoutNodePorts });
  const causes = inSource([...ofNode.causes, ...missing], state, packet.destination);
  const owner = unownedText(state, packet) ?? `${targetText(packet)} is no Service's that counts here`;
  const { is }: Unserved = wanted === "pass" ? { is: wanted } : unserved(state, wanted, packet, undefined);
  const words = is === "reject" ? "it is refused" : is === "drop" ? "it is dropped" : "it goes on as it is";
  const says = `${owner}: ${words}`;
  const notes = causes.length === 0 ? [...unownedNotes(state, packet), ...sourceNotes(state), ...ofNode.notes] : [];
  return {
    steps: [sender, rule === undefined ? { says } : { says, rule }],
    fate: { is },
    hit: undefined,
    causes,
    notes: [...senderNotes(state, packet), ...notes],
  };
}

function decisionOf(state: ExplainedState, packet: AskedPacket, { row, destination }: Hit, rule: Rule): Decision {
  const number = ruleNumber(state, packet, destination, rule, row);
  if (rule.from === "outsideSourceRanges") {
    const isRefused = state.variants.blockedWithoutEndpoints === "reject" && destination.rules[1]?.to === "reject";
    const says = `${packet.source} is in none of its source ranges: it is ${isRefused ? "refused" : "dropped"}`;
    return {
      steps: [{ says, rule: number }],
      fate: unserved(state, isRefused ? "reject" : "drop", packet, { row, destination }),
      causes: [sourceRangeCause(packet, row, destination)],
    };
  }
  if (rule.to === "reject" || rule.to === "drop") {
    const says =
      rule.to === "reject"
        ? "it has no endpoint that can be used anywhere: the packet is refused"
        : "its policy is Local, and no usable endpoint is on this node: the packet is dropped";
    return {
      steps: [{ says, rule: number }],
      fate: unserved(state, rule.to, packet, { row, destination }),
      causes: emptyPoolCauses(state, packet, row, destination),
    };
  }
  return forwardedTo(state, packet, { row, destination }, rule, number);
}

function forwardedTo(state: ExplainedState, packet: AskedPacket, hit: Hit, rule: Rule, number: string): Decision {
  const { source } = packet;
  const { row, destination } = hit;
  const pool = reachableOf(state, row, rule.to as "cluster" | "local");
  if (pool.length === 0) {
    const says = `all its endpoints are addresses of this node, which the backend can't use: ${String(state.capabilities.hostEndpoints)}`;
    const cause: Cause = { id: "incapable", says, fix: "use another backend, or pods without hostNetwork" };
    return { steps: [{ says, rule: "R-56" }], fate: unserved(state, "reject", packet, { row, destination }), causes: [cause] };
  }
  const isBySocket = isAtSocket(state, packet, hit);
  const endpoints = pool.map((endpoint) => fateOf(state, packet, { masquerade: rule.masquerade, isBySocket }, endpoint));
  const where =
    rule.to === "local"
      ? "endpoints on this node only (policy Local)"
      : row.topology === ""
        ? "any endpoint that can be used"
        : `endpoints that hints allow (${row.topology})`;
  const steps: Step[] = [
    ...(destination.sourceRanges === undefined ? [] : [{ says: `${packet.source} is in its source ranges`, rule: "R-39" }]),
    {
      says: `it goes to ${where}: ${endpointsText(pool)}`,
      rule: row.topology === "PreferSameNode" ? "R-19" : row.topology === "PreferSameZone" ? "R-20" : number,
    },
    isBySocket
      ? socketStep(state, packet, endpoints)
      : { says: sourceText(state, endpoints), ...masqueradeRule(state, destination, rule, endpoints) },
    ...(pool.every(({ ready }) => !ready)
      ? [
          {
            says: `no endpoint${rule.to === "local" ? " on this node" : ""} is ready, so those that terminate and still serve are used`,
            rule: "R-17",
          },
        ]
      : []),
    ...(row.affinitySeconds === undefined
      ? []
      : [{ says: `session affinity: a client keeps its endpoint for ${row.affinitySeconds} s`, rule: "R-46" }]),
  ];
  const isHostAddress = destination.address !== "" && state.hostAddresses.includes(destination.address);
  const fate: Fate = {
    is: "forward",
    endpoints,
    ...(isBySocket ? { at: "socket" as const } : {}),
    ...(isHostAddress ? { isHostAddress } : {}),
    ...(isHostAddress && destination.kind === "clusterIP" ? { isClusterIP: true as const } : {}),
    ...(isEndpointHere(state, source) ? { isSenderHere: true as const } : {}),
  };
  return { steps, fate, causes: [] };
}

/** Nobody can tell from here whose sockets are left alone: that depends on how the backend was told, and on the client's cgroup. */
function socketStep(state: ExplainedState, { source, device }: AskedPacket, [first]: readonly FateEndpoint[]): Step {
  const to = first === undefined ? "the endpoint" : hostPort(first.ip, first.port);
  const from = device === "" ? "this node's address" : source;
  const unconfirmed =
    state.unserved?.("") ?? "assumed: a client that is opted out, or outside of the cgroup that is served, is not served there";
  return { says: `translated at the socket: the packet leaves as ${from} -> ${to} (${unconfirmed})` };
}

/** The endpoints of a pool, without those that the backend can't reach (R-56). */
function reachableOf(
  { capabilities, hostAddresses, node }: ExplainedState,
  row: ServicePort,
  pool: "cluster" | "local",
): readonly Endpoint[] {
  const all = row[pool].map((index) => row.endpoints[index]).filter((endpoint) => endpoint !== undefined);
  if (capabilities.hostEndpoints === true) return all;
  return all.filter(({ ip }) => !hostAddresses.includes(ip) && !node.addresses.includes(ip));
}

function fateOf(
  state: ExplainedState,
  packet: AskedPacket,
  { masquerade, isBySocket }: { readonly masquerade: boolean; readonly isBySocket: boolean },
  { ip, port, nodeName, isLocal }: Endpoint,
): FateEndpoint {
  const { capabilities } = state;
  const endpoint = { ip, port, nodeName, isLocal, ...(isServiceAddress(state, ip) ? { isServiceAddress: true as const } : {}) };
  // The kernel chooses the source after the endpoint, so nothing is to be rewritten.
  if (isBySocket) return { ...endpoint, masquerade: false };
  const isHairpin = capabilities.hairpin === true && ip === packet.source;
  return { ...endpoint, masquerade: masquerade || capabilities.clientAddress !== true || isHairpin };
}

/**
 * What becomes of a refusal where the backend can't refuse, and of a drop where it can't drop (R-56); and of either where the backend leaves what the host
 * itself sends elsewhere alone.
 */
function unserved(
  { capabilities, variants, hostAddresses }: ExplainedState,
  is: "reject" | "drop",
  packet: AskedPacket,
  hit: Hit | undefined,
): Unserved {
  const reported = is === "drop" && capabilities.drop !== true && packet.protocol !== "UDP" ? "reject" : is;
  const { kind, sourceRanges } = hit?.destination ?? {};
  const isHooked = packet.device !== "" || hostAddresses.includes(packet.destination) || kind === undefined || kind === "clusterIP";
  const isRefused = reported === "reject" || sourceRanges === undefined || isWithin(packet.source, sourceRanges);
  if (reported === is && isRefused && !isHooked && !variants.rejectFromHost) return { is: "pass" };
  if (capabilities.refuse === true) return { is: reported };
  return { is: capabilities.drop === true ? "drop" : "pass" };
}

function senderText(state: ExplainedState, packet: AskedPacket): string {
  const by = packet.device === "" || packet.device === UNKNOWN_DEVICE ? "" : ` (by ${packet.device})`;
  if (packet.device === "" || isFromHost(state, packet)) return `${packet.source} is this node itself${by}`;
  if (state.node.detector === undefined) return `${packet.source}${by}: whether it is a pod can't be told here`;
  const isPod = isFromPod(state, packet);
  return `${packet.source}${by} counts as ${isPod ? "a pod" : "a client outside the cluster"} (${detectorText(state.node.detector)})${isPod || !isWithin(packet.source, state.node.podCIDRs) ? "" : ", though it is in the range of this node's pods"}`;
}

function endpointsText(pool: readonly Endpoint[]): string {
  const texts = pool.slice(0, ENDPOINTS_SHOWN).map(({ ip, port, isLocal, nodeName }) => {
    const place = isLocal ? " (this node)" : nodeName === undefined ? "" : ` (${nodeName})`;
    return `${hostPort(ip, port)}${place}`;
  });
  return `${texts.join(", ")}${pool.length > texts.length ? ` and ${pool.length - texts.length} more` : ""}`;
}

/** What the endpoint sees as the source; a backend that can't keep the client's address says why. */
function sourceText({ capabilities: { clientAddress } }: ExplainedState, endpoints: readonly FateEndpoint[]): string {
  if (typeof clientAddress === "string") return `the backend can't keep the client's own address: ${clientAddress}`;
  if (endpoints.every(({ masquerade }) => masquerade)) return "the endpoint is to see an address of this node as the source (masquerade)";
  if (endpoints.some(({ masquerade }) => masquerade))
    return "the endpoint sees the client's address; the client itself, as an endpoint, would see this node's";
  return "the endpoint sees the client's own address";
}

function masqueradeRule(
  { node, capabilities }: ExplainedState,
  { kind }: Destination,
  rule: Rule,
  endpoints: readonly FateEndpoint[],
): { readonly rule?: string } {
  if (capabilities.clientAddress !== true) return { rule: "R-56" };
  if (!rule.masquerade)
    return endpoints.some(({ masquerade }) => masquerade) ? { rule: "R-36" } : node.detector === undefined ? { rule: "R-26" } : {};
  if (kind === "clusterIP") return { rule: node.settings.masqueradeAll ? "R-25" : "R-24" };
  return { rule: rule.from === "thisHost" ? "R-32" : "R-28" };
}

/** The number of the rule that decides where the packet goes. */
function ruleNumber({ node }: ExplainedState, _packet: AskedPacket, { kind }: Destination, rule: Rule, row: ServicePort): string {
  if (rule.from === "outsideSourceRanges") return "R-39";
  if (kind === "clusterIP") return { reject: "R-23", drop: "R-27", cluster: "R-22", local: "R-22" }[rule.to];
  if (rule.to === "reject") return "R-29";
  if (!row.externalLocal) return "R-28";
  if (rule.from === "localPod") return "R-31";
  if (rule.from === "thisHost") return "R-32";
  if (node.detector === undefined) return "R-34";
  return rule.to === "drop" ? "R-33" : "R-30";
}

/** Say so where no packet can be what was asked for. Pure. */
export function familiesCause({ source, destination }: AskedPacket): Cause | undefined {
  const [a, b] = [familyOf(source), familyOf(destination)];
  if (a === b) return undefined;
  const fix = `ask with the client's ${b} address, or for the Service's ${a} address`;
  return { id: "families_differ", says: `${source} is ${a} and ${destination} is ${b}: no packet can have both`, fix };
}

/** Write what the packet is for: `10.96.0.1:80/TCP`. Pure. */
export function targetText({ destination, port, protocol }: Pick<AskedPacket, "destination" | "port" | "protocol">): string {
  return `${hostPort(destination, port)}/${protocol}`;
}
