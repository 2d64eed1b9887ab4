import type { ObjectKind } from "@turnout/core";
import { isRecord, type RawObject } from "./raw-object.ts";

/** Labels whose mere presence, whatever the value, hides an object from service proxies. */
const HIDING_LABELS: readonly string[] = ["service.kubernetes.io/service-proxy-name", "service.kubernetes.io/headless"];

/** Where a kind is listed and what is asked for. */
export interface Selection {
  readonly path: string;
  /** "" selects everything. */
  readonly labelSelector: string;
  readonly fieldSelector: string;
}

/**
 * Say what to list and watch of a kind.
 *
 * Edges: `nodeName` undefined watches every Node.
 * @source rule R-63; the field selector is legal for Services only.
 */
export function selectionFor(kind: ObjectKind, nodeName: string | undefined): Selection {
  const labelSelector = HIDING_LABELS.map((label) => `!${label}`).join(",");
  switch (kind) {
    case "Node":
      return {
        path: "/api/v1/nodes",
        labelSelector: "",
        fieldSelector: nodeName === undefined ? "" : `metadata.name=${nodeName}`,
      };
    case "Service":
      return { path: "/api/v1/services", labelSelector, fieldSelector: "spec.clusterIP!=None" };
    case "EndpointSlice":
      return { path: "/apis/discovery.k8s.io/v1/endpointslices", labelSelector, fieldSelector: "" };
    case "ServiceCIDR":
      return { path: "/apis/networking.k8s.io/v1/servicecidrs", labelSelector, fieldSelector: "" };
  }
}

/** Tell whether the same selection, made by an API server, would show `object`; for sources without one. Never throws. */
export function isSelected(kind: ObjectKind, object: RawObject): boolean {
  if (kind === "Node") return true;
  const { labels } = object.metadata;
  if (isRecord(labels) && HIDING_LABELS.some((label) => Object.hasOwn(labels, label))) return false;
  return kind !== "Service" || !isRecord(object.spec) || object.spec["clusterIP"] !== "None";
}
