import { HIDING_LABELS, type ObjectKind } from "@turnout/core";
import { isRecord, type RawObject } from "./raw-object.ts";

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
 * @source kube-proxy cmd/kube-proxy/app/server.go Run, pkg/proxy/node.go newNodeManager; rule R-63
 */
export function selectionFor(kind: ObjectKind, nodeName: string | undefined): Selection {
  const label = HIDING_LABELS[kind];
  const labelSelector = label === undefined ? "" : `!${label}`;
  switch (kind) {
    case "Node":
      return {
        path: "/api/v1/nodes",
        labelSelector,
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
  const label = HIDING_LABELS[kind];
  const { labels } = object.metadata;
  if (label !== undefined && isRecord(labels) && Object.hasOwn(labels, label)) return false;
  return kind !== "Service" || !isRecord(object.spec) || object.spec["clusterIP"] !== "None";
}
