import * as globalv1 from "../gen/kpng/globalv1/globalv1.ts";
import * as localv1 from "../gen/kpng/localv1/localv1.ts";
import { precedes } from "@turnout/core";
import type { EndpointSlice, Node, ServicePort, SliceEndpoint } from "@turnout/core";
import { joinFamilies, type Draft } from "./join-families.ts";
import { makeItem, type Item } from "./kpng-item.ts";
import { sortedPorts } from "./local-items.ts";
import { serviceShape, sortedRows } from "./row-shape.ts";
import { ipSet, overrideName, serviceMessage, type PortShape } from "./service-message.ts";
import { xxh64 } from "./xxh64.ts";

const ZONE_LABEL = "topology.kubernetes.io/zone";
const HOSTNAME_LABEL = "kubernetes.io/hostname";

/** Say what a Node is, as far as kpng asks. */
export function nodeItem({ name, zone }: Node): Item {
  const labels = new Map([[HOSTNAME_LABEL, name], ...(zone === "" ? [] : [[ZONE_LABEL, zone] as const])]);
  const node = { Name: name, Labels: labels, Annotations: new Map<string, string>(), Topology: { Node: name, Zone: zone } };
  const hash = xxh64(globalv1.Node.encode(node).finish());
  const bytes = globalv1.NodeInfo.encode({ Hash: String(hash), Node: node }).finish();
  return makeItem("node", localv1.Set.GlobalNodeInfos, `|${name}||`, bytes);
}

/**
 * Say what one Service is to the whole cluster: itself, and its endpoints in whatever condition, each once.
 *
 * Shape: `rows` are those of the Service as no node has them, of both families: who is to have an address that several want is decided
 * in them, and kpng has no ages to decide it by.
 * Edges: a Service without a cluster IP (headless, ExternalName) has none and gives nothing, and neither do its endpoints.
 */
export function globalItems(rows: readonly ServicePort[], slices: Iterable<EndpointSlice>): readonly Item[] {
  const shape = serviceShape(sortedRows(rows));
  if (shape === undefined) return [];
  const sorted = [...slices].toSorted((a, b) => (a.name < b.name ? -1 : 1));
  const { namespace, name } = shape;
  const info = { Hash: "0", Service: serviceMessage(shape) };
  const hash = xxh64(globalv1.ServiceInfo.encode(info).finish());
  const bytes = globalv1.ServiceInfo.encode({ ...info, Hash: String(hash) }).finish();
  const item = makeItem("service", localv1.Set.GlobalServiceInfos, `${namespace}|${name}||`, bytes);
  const endpoints = joinFamilies(draftsOf(sorted, shape.ports)).map(({ ips, draft, podName }) => {
    const { slice, endpoint, ports } = draft;
    const endpointInfo = infoOf(namespace, name, slice, endpoint, ips, ports, podName);
    const endpointHash = xxh64(globalv1.EndpointInfo.encode(endpointInfo).finish());
    const encoded = globalv1.EndpointInfo.encode({ ...endpointInfo, Hash: String(endpointHash) }).finish();
    const path = `${namespace}|${name}|${slice}|${endpointHash.toString(16)}`;
    return makeItem("endpoint", localv1.Set.GlobalEndpointInfos, path, encoded);
  });
  return [item, ...endpoints];
}

function infoOf(
  namespace: string,
  service: string,
  slice: string,
  { ready, nodeName, zoneHints }: SliceEndpoint,
  ips: readonly string[],
  ports: readonly localv1.PortName[],
  podName: string | undefined,
): globalv1.EndpointInfo {
  return {
    Hash: "0",
    Namespace: namespace,
    SourceName: slice,
    ServiceName: service,
    Endpoint: { Hostname: "", IPs: ipSet(ips), Local: false, PortOverrides: [...ports], Scopes: undefined },
    Conditions: { Ready: ready },
    PodName: podName ?? "",
    Topology: { Node: nodeName ?? "", Zone: "" },
    Hints: zoneHints.length === 0 ? undefined : { Zones: [...zoneHints] },
  };
}

interface GlobalDraft extends Draft {
  readonly slice: string;
  readonly endpoint: SliceEndpoint;
  readonly ports: readonly localv1.PortName[];
}

/**
 * Take the endpoints out of slices. An address that is in two of them is there once for each number, as core's `endpointsFor` chooses it.
 */
function draftsOf(slices: readonly EndpointSlice[], shapes: readonly PortShape[]): readonly GlobalDraft[] {
  const winners = new Map<string, { slice: string; entry: SliceEndpoint; port: localv1.PortName; triggeredMs: number | undefined }>();
  for (const slice of slices) {
    const ports = portsOf(slice, shapes);
    for (const endpoint of slice.endpoints) {
      for (const port of ports) {
        const id = `${endpoint.ip} ${port.Name} ${port.Port}`;
        const [before, next] = [winners.get(id), { slice: slice.name, entry: endpoint, port, triggeredMs: slice.triggeredMs }];
        if (before === undefined || !precedes(before, next, "")) winners.set(id, next);
      }
    }
  }
  const drafts = new Map<SliceEndpoint, { readonly slice: string; readonly ports: localv1.PortName[] }>();
  for (const { slice, entry: endpoint, port } of winners.values()) {
    const draft = drafts.get(endpoint) ?? { slice, ports: [] };
    draft.ports.push(port);
    drafts.set(endpoint, draft);
  }
  return [...drafts].map(([endpoint, { slice, ports: unsorted }]) => {
    const { ip, podName, ready, nodeName, zoneHints } = endpoint;
    const ports = unsorted.toSorted((x, y) => (x.Name < y.Name ? -1 : 1));
    return { ip, podName, slice, endpoint, ports, content: JSON.stringify([ports, ready, nodeName ?? "", zoneHints]) };
  });
}

/** The numbers of the Service's ports in one slice. */
function portsOf(slice: EndpointSlice, shapes: readonly PortShape[]): readonly localv1.PortName[] {
  const numbers = new Map<string, number>();
  for (const { name, protocol, port } of slice.ports) {
    const shape = shapes.find((one) => one.name === name && one.protocol === protocol);
    if (shape !== undefined) numbers.set(overrideName(shape, shapes), port);
  }
  return sortedPorts(numbers);
}
