/** metadata of an API object, as far as the emulator handles it. */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly creationTimestamp?: string;
  readonly generation?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly [field: string]: unknown;
}

/** An API object in its raw form; nothing beyond metadata is interpreted. */
export interface ApiObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

/** Tell whether `value` has the shape of an API object: a record with a named `metadata`. Never throws. */
export function isApiObject(value: unknown): value is ApiObject {
  if (!isRecord(value) || !isRecord(value["metadata"])) return false;
  return typeof value["metadata"]["name"] === "string" && value["metadata"]["name"] !== "";
}

/** Tell whether `value` is an object that is neither null nor an array. Never throws. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Give the key an object is stored under: `namespace/name`, namespace "" for cluster-scoped. */
export function objectKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

/** Read a dotted field path (`spec.clusterIP`); absent or not a scalar gives "", as field selectors see it. */
export function fieldOf(object: ApiObject, path: string): string {
  let value: unknown = object;
  for (const part of path.split(".")) value = isRecord(value) ? value[part] : undefined;
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? String(value) : "";
}
