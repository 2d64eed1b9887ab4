import { printableName } from "../model/names.ts";
import type { EndpointSlice } from "../model/api-objects.ts";
import type { Destination, ServicePort } from "../model/rows.ts";
import type { Cause } from "./answer.ts";
import type { AskedPacket, ExplainedState } from "./question.ts";

/** `-n namespace`, and the name, as kubectl takes them. */
function kubectlName({ namespace, name }: ServicePort["name"]): string {
  return `-n ${namespace} ${name}`;
}

function slicesCommand({ namespace, name }: ServicePort["name"]): string {
  return `kubectl get endpointslices -n ${namespace} -l kubernetes.io/service-name=${name}`;
}

/** Say that the client is outside the source ranges. Pure. */
export function sourceRangeCause({ source }: AskedPacket, { name }: ServicePort, { address, sourceRanges = [] }: Destination): Cause {
  // A load balancer's own address is let in besides what the Service says.
  const own = sourceRanges.filter((range) => range !== `${address}/32` && range !== `${address}/128`);
  return {
    id: "source_range",
    says: `${source} is in none of the source ranges of Service ${name.namespace}/${name.name}: ${own.join(", ")}`,
    show: [`kubectl get service ${kubectlName(name)} -o jsonpath='{.spec.loadBalancerSourceRanges}'`],
    fix: "if the client is welcome, add its address to spec.loadBalancerSourceRanges. The address that counts is the one that this node sees: where a load balancer puts its own in its place, add that one",
  };
}

/** Say why a row has no endpoint for a packet. Pure. */
export function emptyPoolCauses(state: ExplainedState, packet: AskedPacket, row: ServicePort, destination: Destination): readonly Cause[] {
  const { name, endpoints } = row;
  const service = `Service ${printableName(name)}`;
  const show = [slicesCommand(name)];
  if (endpoints.length === 0) return [missingEndpoints(state, packet, row)];
  if (row.cluster.length === 0 && row.local.length === 0 && !endpoints.some(isUsable)) {
    const terminating = endpoints.filter((endpoint) => endpoint.terminating).length;
    const says = `${service} has ${count(endpoints.length, "endpoint")}, and none is ready${terminating > 0 ? ` (${terminating} terminating)` : ""}`;
    return [
      {
        id: "none_ready",
        says,
        show,
        fix: "see why the pods are not ready",
        commands: [`kubectl get pods -n ${name.namespace} -o wide`, `kubectl describe pods -n ${name.namespace}`],
      },
    ];
  }
  const here = endpoints.filter((endpoint) => endpoint.isLocal && !isUsable(endpoint));
  const nodes = [...new Set(endpoints.filter(isUsable).map(({ nodeName }) => nodeName ?? "an unnamed node"))];
  const field = destination.kind === "clusterIP" ? "internalTrafficPolicy" : "externalTrafficPolicy";
  const says = `${service} has ${field} Local, and its usable endpoints are elsewhere: on ${listed(nodes)}, not on ${state.node.name}${here.length === 0 ? "" : `; ${listed(here.map(({ ip }) => ip))} ${here.length === 1 ? "is" : "are"} here and not ready`}`;
  const fix =
    here.length > 0
      ? `see why the pod here is not ready, or set ${field}: Cluster`
      : destination.kind === "clusterIP"
        ? `run a pod of it on this node, or set ${field}: Cluster`
        : `send clients to nodes with an endpoint (the health check node port tells load balancers which), run a pod here, or set ${field}: Cluster`;
  return [{ id: "local_policy", says, show, fix }];
}

function missingEndpoints({ objects, node, issues }: ExplainedState, { family }: AskedPacket, { name }: ServicePort): Cause {
  const service = `Service ${printableName(name)}`;
  const show = [slicesCommand(name)];
  const showAll = [`${slicesCommand(name)} -o yaml`];
  const slices = [...(objects?.slices(`${name.namespace}/${name.name}`).values() ?? [])];
  const filled = slices.filter((slice) => slice.endpoints.length > 0);
  const ofFamily = filled.filter((slice) => slice.family === family);
  const [other] = filled;
  if (ofFamily.length > 0) {
    const has = portsText(ofFamily);
    const says = `${service} finds no endpoints: its slices have no port ${quoted(name.port)}/${name.protocol}${has === "" ? "" : `, but ${has}`}. Ports match by name and protocol (R-12)`;
    return {
      id: "named_port",
      says,
      show: showAll,
      fix: "give the port in the Service and in the pods (a named targetPort: the container port's name) the same name and protocol",
    };
  }
  if (other !== undefined) {
    const says = `${service} has endpoints of ${other.family} only, and this packet is ${family}`;
    return { id: "family_missing", says, show, fix: `ask its ${other.family} address, or give its pods addresses of ${node.family}` };
  }
  const refused = issues.find(({ object }) => slices.some((slice) => object === `EndpointSlice ${slice.namespace}/${slice.name}`));
  if (refused !== undefined)
    return {
      id: "refused_object",
      says: `${service} has no endpoints that can be used: ${refused.object}: ${refused.what}`,
      show: showAll,
      fix: refused.hint,
    };
  const says = `${service} has no endpoints`;
  return {
    id: "no_endpoints",
    says,
    show,
    fix: "compare its selector with the labels of its pods",
    commands: [`kubectl get service ${kubectlName(name)} -o wide`, `kubectl get pods -n ${name.namespace} --show-labels`],
  };
}

/** Say so where some endpoints have hints, and all are used nevertheless (R-19, R-20). Pure. */
export function hintCauses({ objects, node }: ExplainedState, row: ServicePort): readonly Cause[] {
  const { name, topology, family } = row;
  if (objects === undefined || topology !== "" || row.cluster.length === 0) return [];
  const slices = [...objects.slices(`${name.namespace}/${name.name}`).values()].filter((slice) => slice.family === family);
  const ready = slices.flatMap(({ endpoints }) => endpoints).filter((endpoint) => endpoint.ready);
  const hinted = ready.filter(({ zoneHints, nodeHints }) => zoneHints.length > 0 || nodeHints.length > 0);
  if (hinted.length === 0) return [];
  const without = ready.find((endpoint) => !hinted.includes(endpoint));
  const zones = [...new Set(hinted.flatMap(({ zoneHints }) => zoneHints))];
  const why =
    without !== undefined
      ? `the ready endpoint ${without.ip} has none`
      : node.zone === "" && zones.length > 0
        ? `node ${node.name} has no label topology.kubernetes.io/zone`
        : `no endpoint has one for this node${node.zone === "" ? "" : ` or its zone ${node.zone}`}`;
  const says = `Service ${printableName(name)} has topology hints, and they don't apply: ${why}; so endpoints everywhere are used (R-20)`;
  return [
    {
      id: "hints_ignored",
      isSure: false,
      says,
      show: [`${slicesCommand(name)} -o yaml`],
      fix: "label the node with its zone, or have enough endpoints in each zone; traffic is served either way",
    },
  ];
}

function isUsable({ ready, serving, terminating }: ServicePort["endpoints"][number]): boolean {
  return ready || (serving && terminating);
}

function portsText(slices: readonly EndpointSlice[]): string {
  const texts = slices.flatMap(({ ports }) => ports.map(({ name, protocol, port }) => `${quoted(name)}/${protocol} (${port})`));
  return [...new Set(texts)].slice(0, 4).join(", ");
}

function quoted(name: string): string {
  return name === "" ? '""' : name;
}

/** `1 endpoint`, `2 endpoints`. Pure. */
function count(number: number, what: string): string {
  return `${number} ${what}${number === 1 ? "" : "s"}`;
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, 3);
  return `${shown.join(", ")}${names.length > shown.length ? ` and ${names.length - shown.length} more` : ""}`;
}
