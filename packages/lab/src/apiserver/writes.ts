import { randomUUID } from "node:crypto";
import { isApiObject, isRecord, objectKey, type ApiObject } from "./api-object.ts";
import type { ObjectStore } from "./object-store.ts";
import { apiVersionOf, type Resource, type Route } from "./resources.ts";
import { failed, failure, ok, success, type Result, type StatusBody } from "./status.ts";

/** A write by REST. */
export interface WriteRequest {
  readonly method: string;
  readonly route: Route;
  readonly body: unknown;
  readonly contentType: string;
}

/** An answer with its HTTP status. */
export interface WriteResponse {
  readonly status: number;
  readonly body: ApiObject | StatusBody;
}

/** Carry out POST, PUT, PATCH (merge only) or DELETE, with Kubernetes' answers to conflicts and mistakes. */
export function write(store: ObjectStore, request: WriteRequest, nowMs: number): Result<WriteResponse> {
  const { method, route } = request;
  if (method === "POST" && route.name === undefined) return create(store, request, nowMs);
  if (route.name === undefined) return failed(failure(405, `${method} needs the name of an object`));
  const before = store.get(route.resource.kind, objectKey(route.namespace, route.name));
  if (method !== "PUT" && method !== "PATCH" && method !== "DELETE") {
    return failed(failure(405, `the server does not allow this method on the requested resource`));
  }
  if (before === undefined) return failed(notFound(route));
  if (method === "DELETE") {
    store.remove(route.resource.kind, objectKey(route.namespace, route.name));
    const details = { name: route.name, kind: route.resource.plural, uid: before.metadata.uid };
    return ok({ status: 200, body: success(details) });
  }
  return method === "PUT" ? replace(store, request, before, nowMs) : patch(store, request, before, nowMs);
}

/** Fill what the API server sets: kind, apiVersion, namespace, uid, creationTimestamp. A given creationTimestamp stays. */
export function admit(resource: Resource, object: ApiObject, before: ApiObject | undefined, nowMs: number): ApiObject {
  const { metadata } = object;
  const namespace = resource.isNamespaced ? { namespace: metadata.namespace ?? "default" } : {};
  const creationTimestamp = metadata.creationTimestamp ?? before?.metadata.creationTimestamp ?? timestamp(nowMs);
  const uid = before?.metadata.uid ?? metadata.uid ?? randomUUID();
  return {
    ...object,
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    metadata: { ...metadata, ...namespace, uid, creationTimestamp },
  };
}

/** Make the 404 of a named object. */
export function notFound(route: Route): StatusBody {
  const { resource, name = "" } = route;
  const plural = resource.group === "" ? resource.plural : `${resource.plural}.${resource.group}`;
  return failure(404, `${plural} "${name}" not found`, {
    details: { name, group: resource.group, kind: resource.plural },
  });
}

function create(store: ObjectStore, request: WriteRequest, nowMs: number): Result<WriteResponse> {
  const { route } = request;
  const body = bodyFor(route, request.body);
  if (!body.ok) return body;
  const key = objectKey(body.value.metadata.namespace ?? "", body.value.metadata.name);
  if (store.get(route.resource.kind, key) !== undefined) {
    const message = `${route.resource.plural} "${body.value.metadata.name}" already exists`;
    return failed(failure(409, message, { reason: "AlreadyExists" }));
  }
  // Status is written through its own path only.
  const { status: _status, ...fresh } = body.value;
  return ok({ status: 201, body: store.put(route.resource.kind, admit(route.resource, fresh, undefined, nowMs)) });
}

function replace(store: ObjectStore, request: WriteRequest, before: ApiObject, nowMs: number): Result<WriteResponse> {
  const { route } = request;
  const body = bodyFor(route, request.body);
  if (!body.ok) return body;
  if (body.value.metadata.name !== route.name) {
    return failed(failure(400, "the name of the object does not match the name on the URL"));
  }
  const version = body.value.metadata.resourceVersion;
  if (version !== undefined && version !== "" && version !== before.metadata.resourceVersion) {
    const message = `Operation cannot be fulfilled on ${route.resource.plural} "${route.name}": the object has been modified`;
    return failed(failure(409, message));
  }
  return storeParts(store, route, before, body.value, nowMs);
}

function patch(store: ObjectStore, request: WriteRequest, before: ApiObject, nowMs: number): Result<WriteResponse> {
  const { route } = request;
  if (!request.contentType.startsWith("application/merge-patch+json")) {
    return failed(failure(415, "the emulator takes application/merge-patch+json only"));
  }
  if (!isRecord(request.body)) return failed(failure(400, "a merge patch is a JSON object"));
  const merged = mergePatch(before, request.body);
  if (!isApiObject(merged)) return failed(failure(422, "the patched object has no name"));
  return storeParts(store, route, before, merged, nowMs);
}

function storeParts(store: ObjectStore, route: Route, before: ApiObject, wanted: ApiObject, nowMs: number): Result<WriteResponse> {
  // The main path leaves the status alone, /status leaves everything else alone.
  const next = route.isStatus
    ? { ...before, status: wanted["status"] }
    : { ...wanted, ...("status" in before ? { status: before["status"] } : { status: undefined }) };
  const object = JSON.parse(JSON.stringify(next)) as ApiObject;
  return ok({ status: 200, body: store.put(route.resource.kind, admit(route.resource, object, before, nowMs)) });
}

function bodyFor(route: Route, body: unknown): Result<ApiObject> {
  if (!isApiObject(body)) return failed(failure(422, "metadata.name: Required value"));
  if (body.kind !== undefined && body.kind !== route.resource.kind) {
    return failed(failure(400, `the kind in the data (${body.kind}) does not match ${route.resource.kind}`));
  }
  if (!route.resource.isNamespaced) return ok(body);
  const namespace = body.metadata.namespace ?? (route.namespace === "" ? "default" : route.namespace);
  if (route.namespace !== "" && namespace !== route.namespace) {
    return failed(failure(400, "the namespace of the object does not match the namespace on the URL"));
  }
  return ok({ ...body, metadata: { ...body.metadata, namespace } });
}

/** Apply a JSON merge patch (RFC 7386): null deletes, objects merge, everything else replaces. */
export function mergePatch(target: unknown, change: unknown): unknown {
  if (!isRecord(change)) return change;
  const result: Record<string, unknown> = isRecord(target) ? { ...target } : {};
  for (const [field, value] of Object.entries(change)) {
    if (value === null) delete result[field];
    else result[field] = mergePatch(result[field], value);
  }
  return result;
}

function timestamp(nowMs: number): string {
  // metav1.Time has whole seconds.
  return new Date(nowMs).toISOString().replace(/\.\d+Z$/, "Z");
}
