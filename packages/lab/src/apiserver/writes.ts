import { randomUUID } from "node:crypto";
import { isApiObject, objectKey, type ApiObject } from "./api-object.ts";
import type { ObjectStore } from "./object-store.ts";
import { apiVersionOf, type Resource, type Route } from "./resources.ts";
import { refuse } from "./status.ts";

/**
 * Store what a POST has, with Kubernetes' answers to conflicts and mistakes: it is all that a service proxy writes.
 *
 * Edges: its status is left out, which Kubernetes takes by a path of its own.
 * @throws {Refusal}
 */
export function create(store: ObjectStore, { resource, namespace: named }: Route, body: unknown, nowMs: number): ApiObject {
  if (!isApiObject(body)) refuse(422, "metadata.name: Required value");
  if (body.kind !== undefined && body.kind !== resource.kind)
    refuse(400, `the kind in the data (${body.kind}) does not match ${resource.kind}`);
  const { status: _status, metadata, ...fresh } = body;
  const namespace = metadata.namespace ?? (named === "" ? "default" : named);
  if (named !== "" && namespace !== named) refuse(400, "the namespace of the object does not match the namespace on the URL");
  const admitted = admit(resource, { ...fresh, metadata: { ...metadata, namespace } }, undefined, nowMs);
  if (store.get(resource.kind, objectKey(admitted.metadata.namespace ?? "", metadata.name)) !== undefined)
    refuse(409, `${resource.plural} "${metadata.name}" already exists`, { reason: "AlreadyExists" });
  return store.put(resource.kind, admitted);
}

/** Fill what the API server sets: kind, apiVersion, namespace, uid, creationTimestamp. A given creationTimestamp stays. */
export function admit(resource: Resource, object: ApiObject, before: ApiObject | undefined, nowMs: number): ApiObject {
  const { namespace: own = "default", ...metadata } = object.metadata;
  const namespace = resource.isNamespaced ? { namespace: own } : {};
  const creationTimestamp = metadata.creationTimestamp ?? before?.metadata.creationTimestamp ?? timestamp(nowMs);
  const uid = before?.metadata.uid ?? metadata.uid ?? randomUUID();
  return {
    ...object,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { ...metadata, ...namespace, uid, creationTimestamp },
  };
}

function timestamp(nowMs: number): string {
  // metav1.Time has whole seconds.
  return new Date(nowMs).toISOString().replace(/\.\d+Z$/, "Z");
}
