import type { Issue, ObjectKind } from "@turnout/core";
import { EndpointInfo, NodeInfo, ServiceInfo, type Node } from "../gen/kpng/globalv1/globalv1.ts";
import { Endpoint, Service, Set as KpngSet } from "../gen/kpng/localv1/localv1.ts";
import type { ItemNews } from "./op-collector.ts";
import { rawSlicesOf, type KpngEndpoint } from "./raw-slices.ts";
import { rawServiceOf, type RawObject } from "./raw-service.ts";
import { scopedEndpoint, scopeZones } from "./scopes.ts";

/** Where objects go; core's Store is one. */
export interface KpngSink {
  upsert(kind: ObjectKind, raw: unknown): void;
  remove(kind: ObjectKind, namespace: string, name: string): void;
}

/** Everything told of one Service, by the id of the item that told it: the same may be told twice. */
interface Group {
  readonly services: Map<string, Service>;
  readonly endpoints: Map<string, EndpointInfo | Endpoint>;
  slices: readonly string[];
  /** Namespace and name under which it is in the sink. */
  shown: { readonly namespace: string; readonly name: string } | undefined;
}

/** What an item was about, for when it goes. */
type Known = { readonly kind: "service" | "endpoint"; readonly key: string } | { readonly kind: "node"; readonly key: string };

const ZONE_LABEL = "topology.kubernetes.io/zone";

/**
 * Turns what a kpng server says into the API objects it might have come from, so that this side's rules of service proxying apply.
 *
 * Edges: an item that can't be read counts as absent and is reported; what is in the objects the Store checks.
 */
export class KpngObjects {
  readonly #sink: KpngSink;
  readonly #nodeName: string;
  readonly #report: (issue: Issue) => void;
  readonly #groups = new Map<string, Group>();
  readonly #known = new Map<string, Known>();

  /** `nodeName` is whom localv1 is asked for: what is local to it. */
  constructor(sink: KpngSink, nodeName: string, report: (issue: Issue) => void) {
    this.#sink = sink;
    this.#nodeName = nodeName;
    this.#report = report;
  }

  /** Take in what is different. */
  apply(news: readonly ItemNews[]): void {
    const touched = new Set<string>();
    for (const item of news) {
      const id = `${item.set} ${item.path}`;
      this.#forget(id, touched);
      if (item.bytes === undefined) continue;
      try {
        this.#learn(id, item, item.bytes, touched);
      } catch (error) {
        const what = `it can't be read and counts as absent (${error instanceof Error ? error.message : String(error)})`;
        this.#report({ object: `item ${JSON.stringify(item.path)}`, what, hint: "is the node-state server a kpng, and sound?" });
      }
    }
    for (const key of touched) this.#show(key);
  }

  #forget(id: string, touched: Set<string>): void {
    const known = this.#known.get(id);
    if (known === undefined) return;
    this.#known.delete(id);
    if (known.kind === "node") {
      this.#sink.remove("Node", "", known.key);
      return;
    }
    const group = this.#groupOf(known.key);
    if (known.kind === "service") group.services.delete(id);
    else group.endpoints.delete(id);
    touched.add(known.key);
  }

  #learn(id: string, { set, path }: ItemNews, bytes: Buffer, touched: Set<string>): void {
    switch (set) {
      case KpngSet.ServicesSet:
        return this.#learnService(id, Service.decode(bytes), touched);
      case KpngSet.EndpointsSet:
        return this.#learnEndpoint(id, serviceOfPath(path), Endpoint.decode(bytes), touched);
      case KpngSet.GlobalServiceInfos: {
        const { Service: service } = ServiceInfo.decode(bytes);
        if (service !== undefined) this.#learnService(id, service, touched);
        return;
      }
      case KpngSet.GlobalEndpointInfos: {
        const info = EndpointInfo.decode(bytes);
        // A slice of no Service.
        if (info.ServiceName !== "") this.#learnEndpoint(id, `${info.Namespace}/${info.ServiceName}`, info, touched);
        return;
      }
      case KpngSet.GlobalNodeInfos: {
        const { Node: node } = NodeInfo.decode(bytes);
        if (node === undefined || node.Name === "") return;
        this.#known.set(id, { kind: "node", key: node.Name });
        this.#sink.upsert("Node", rawNodeOf(node));
        return;
      }
      default:
        throw new Error(`no set has the number ${set}`);
    }
  }

  #learnService(id: string, service: Service, touched: Set<string>): void {
    const key = `${service.Namespace}/${service.Name}`;
    this.#known.set(id, { kind: "service", key });
    this.#groupOf(key).services.set(id, service);
    touched.add(key);
  }

  #learnEndpoint(id: string, key: string, endpoint: EndpointInfo | Endpoint, touched: Set<string>): void {
    this.#known.set(id, { kind: "endpoint", key });
    this.#groupOf(key).endpoints.set(id, endpoint);
    touched.add(key);
  }

  #groupOf(key: string): Group {
    const known = this.#groups.get(key);
    if (known !== undefined) return known;
    const group: Group = { services: new Map(), endpoints: new Map(), slices: [], shown: undefined };
    this.#groups.set(key, group);
    return group;
  }

  /** Bring the sink's objects of one Service to what is told of it. */
  #show(key: string): void {
    const group = this.#groupOf(key);
    const service = [...group.services.values()].at(-1);
    const slices = service === undefined ? [] : rawSlicesOf(service, this.#endpointsOf(service, group));
    const names = slices.map((slice) => (slice["metadata"] as { readonly name: string }).name);
    const { shown } = group;
    if (shown !== undefined)
      for (const name of group.slices) if (!names.includes(name)) this.#sink.remove("EndpointSlice", shown.namespace, name);
    group.slices = names;
    if (service === undefined) {
      if (shown !== undefined) this.#sink.remove("Service", shown.namespace, shown.name);
      group.shown = undefined;
      if (group.endpoints.size === 0) this.#groups.delete(key);
      return;
    }
    const { Namespace: namespace, Name: name } = service;
    group.shown = { namespace, name };
    const refuse = (what: string): void =>
      this.#report({ object: `Service ${key}`, what, hint: "a node-state server that speaks turnout.node.v1 can say it" });
    this.#sink.upsert("Service", rawServiceOf(service, refuse));
    for (const slice of slices) this.#sink.upsert("EndpointSlice", slice);
  }

  #endpointsOf(service: Service, { endpoints }: Group): readonly KpngEndpoint[] {
    const all = [...endpoints.values()];
    const local = all.filter((one): one is Endpoint => !("Endpoint" in one));
    const zones = scopeZones(service, local);
    return all.flatMap((one): readonly KpngEndpoint[] => {
      if (!("Endpoint" in one)) return [scopedEndpoint(service, one, this.#nodeName, zones)];
      return one.Endpoint === undefined ? [] : [globalEndpoint(one, one.Endpoint)];
    });
  }
}

/** Undefined conditions are good ones. @source kpng api/localv1/services.proto EndpointConditions */
function globalEndpoint({ Conditions, Topology, Hints, PodName }: EndpointInfo, endpoint: Endpoint): KpngEndpoint {
  return {
    endpoint,
    isReady: Conditions?.Ready ?? true,
    nodeName: Topology === undefined || Topology.Node === "" ? undefined : Topology.Node,
    zones: Hints?.Zones ?? [],
    podName: PodName === "" ? undefined : PodName,
  };
}

/** An endpoint of localv1 does not say whose it is; its path begins with its Service's. @throws when it can't. */
function serviceOfPath(path: string): string {
  const [namespace = "", name = "", ...rest] = path.split("/");
  if (namespace === "" || name === "" || rest.length === 0) throw new Error("its path names no Service");
  return `${namespace}/${name}`;
}

function rawNodeOf({ Name: name, Labels: labels, Topology: topology }: Node): RawObject {
  const zone = topology === undefined || topology.Zone === "" ? labels.get(ZONE_LABEL) : topology.Zone;
  return { apiVersion: "v1", kind: "Node", metadata: { name, ...(zone === undefined ? {} : { labels: { [ZONE_LABEL]: zone } }) } };
}
