import type { Protocol } from "./api-objects.ts";
import type { ServicePortName } from "./rows.ts";

/** Join namespace and name the way Kubernetes prints them; the namespace is left out when empty. */
export function namespacedName(namespace: string, name: string): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

/** Name a row for people: `namespace/name` or `namespace/name:port`, without the protocol, as kube-proxy does. */
export function printableName(name: ServicePortName): string {
  return name.port === "" ? `${name.namespace}/${name.name}` : `${name.namespace}/${name.name}:${name.port}`;
}

/** List names for people, the first `max` of them, and say that there are more. Pure. */
export function listedNames(names: readonly string[], max: number): string {
  return `${names.slice(0, max).join(", ")}${names.length > max ? ", …" : ""}`;
}

/** The key of a row: `namespace/name:port/protocol`; unique because none of the parts can hold ":" or "/". */
export function rowKey(namespace: string, name: string, port: string, protocol: Protocol): string {
  return `${namespace}/${name}:${port}/${protocol}`;
}

/** The `namespace/name` of the Service whose row has this key. */
export function serviceKeyOf(rowKeyText: string): string {
  return rowKeyText.slice(0, rowKeyText.indexOf(":"));
}

/**
 * Tell whether text is a DNS-like name (letters, digits, `-`, `.`, at most 253 characters), the only form in which
 * API names may travel into keys, comments and logs.
 * @source Kubernetes object name validation; docs/security.md
 */
export function isDNSName(text: string): boolean {
  return text.length <= 253 && /^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$/.test(text);
}

/** Tell whether text is a label value: letters, digits, `-`, `_`, `.`, at most 63 characters. @source Kubernetes label validation */
export function isLabelValue(text: string): boolean {
  return text.length <= 63 && /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/.test(text);
}
