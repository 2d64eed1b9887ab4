import type { ObjectKind } from "@turnout/core";

/** What the emulator keeps: what a service proxy reads, and the events it writes. */
export type ServedKind = ObjectKind | "Event";

/** One of the API resources the emulator serves. */
export interface Resource {
  readonly kind: ServedKind;
  /** "" is the core group. */
  readonly group: string;
  readonly version: "v1";
  readonly plural: string;
  readonly isNamespaced: boolean;
  /** Field selector paths beyond metadata.name and metadata.namespace. */
  readonly fields: readonly string[];
}

/** The four resources a service proxy reads, and the one it writes. */
export const RESOURCES: readonly Resource[] = [
  { kind: "Node", group: "", version: "v1", plural: "nodes", isNamespaced: false, fields: ["spec.unschedulable"] },
  { kind: "Service", group: "", version: "v1", plural: "services", isNamespaced: true, fields: ["spec.clusterIP", "spec.type"] },
  { kind: "EndpointSlice", group: "discovery.k8s.io", version: "v1", plural: "endpointslices", isNamespaced: true, fields: [] },
  { kind: "ServiceCIDR", group: "networking.k8s.io", version: "v1", plural: "servicecidrs", isNamespaced: false, fields: [] },
  {
    kind: "Event",
    group: "events.k8s.io",
    version: "v1",
    plural: "events",
    isNamespaced: true,
    fields: ["reason", "regarding.kind", "regarding.name", "reportingController", "type"],
  },
];

/** What a request path points at. */
export interface Route {
  readonly resource: Resource;
  /** "" means all namespaces, or a cluster-scoped resource. */
  readonly namespace: string;
  readonly name: string | undefined;
}

/** Give the apiVersion of a resource's objects, e.g. `discovery.k8s.io/v1`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === "" ? resource.version : `${resource.group}/${resource.version}`;
}

/** Read a request path; undefined when it is none of the resources'. Never throws. */
export function routeFor(pathname: string): Route | undefined {
  const parts = pathname.split("/").filter((part) => part !== "");
  const isCore = parts[0] === "api";
  if (!isCore && parts[0] !== "apis") return undefined;
  const group = isCore ? "" : parts[1];
  const rest = parts.slice(isCore ? 1 : 2);
  if (rest.shift() !== "v1") return undefined;
  // "namespaces/NS/…" only prefixes namespaced resources; the Namespace resource itself is not served.
  const namespace = rest[0] === "namespaces" && rest.length > 2 ? rest.splice(0, 2)[1] : "";
  const [plural, name, ...more] = rest;
  const resource = RESOURCES.find((candidate) => candidate.group === group && candidate.plural === plural);
  if (resource === undefined || more.length > 0 || namespace === undefined) return undefined;
  if (namespace !== "" && !resource.isNamespaced) return undefined;
  if (name !== undefined && resource.isNamespaced && namespace === "") return undefined;
  return { resource, namespace, name };
}
