/** What every API object has, as far as sources read it. */
export interface RawObject {
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly metadata: RawMetadata;
  readonly spec?: unknown;
  readonly [field: string]: unknown;
}

/** metadata with the fields sources read. */
export interface RawMetadata {
  readonly name: string;
  readonly namespace?: unknown;
  readonly resourceVersion?: unknown;
  readonly labels?: unknown;
  readonly annotations?: unknown;
}

/** Tell whether `value` is an object that is neither null nor an array. Never throws. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Tell whether `value` has a `metadata` with a name. Never throws. */
export function isRawObject(value: unknown): value is RawObject {
  return isRecord(value) && isRecord(value["metadata"]) && typeof value["metadata"]["name"] === "string";
}

/** Give `namespace/name`, namespace "" when there is none. */
export function keyOf(object: RawObject): string {
  const { namespace, name } = object.metadata;
  return `${typeof namespace === "string" ? namespace : ""}/${name}`;
}

/** Take a key apart again; neither part can hold a slash. */
export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf("/");
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
