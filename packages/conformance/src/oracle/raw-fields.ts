import { canonicalIP, unusableReason } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";
import type { OracleObject } from "./oracle-world.ts";

/** Labels that hide objects of a kind from service proxies, whatever their value (rule R-63). */
const HIDING_LABELS: ReadonlyMap<string, string> = new Map([
  ["Service", "service.kubernetes.io/service-proxy-name"],
  ["EndpointSlice", "service.kubernetes.io/headless"],
]);

/** Follow field names into anything; undefined where the way ends, and for the API's null. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const name of path) {
    if (typeof here !== "object" || here === null || !Object.hasOwn(here, name)) return undefined;
    here = (here as Readonly<Record<string, unknown>>)[name];
  }
  return here ?? undefined;
}

/** The text there, "" when it is none. */
export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
}

/** The list there, empty when it is none. */
export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The port number there, 0 when it is none. */
export function portAt(value: unknown, ...path: readonly string[]): number {
  const found = at(value, ...path);
  return typeof found === "number" && Number.isInteger(found) && found >= 1 && found <= 65_535 ? found : 0;
}

/** The protocol there, TCP when nothing is said (the API writes that as an empty text too); undefined when it is none we know. */
export function protocolAt(value: unknown): Protocol | undefined {
  const found = at(value, "protocol") || "TCP";
  return found === "TCP" || found === "UDP" || found === "SCTP" ? found : undefined;
}

/** Whose an object is: its namespace and name, the only form in which names count; undefined when they can't be names. */
export function nameOf(object: OracleObject): { readonly namespace: string; readonly name: string } | undefined {
  const namespace = textAt(object, "metadata", "namespace") || "default";
  const name = textAt(object, "metadata", "name");
  return isName(namespace) && isName(name) ? { namespace, name } : undefined;
}

/** Tell whether text can be a name: letters, digits, dashes and dots, at most 253. */
export function isName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/i.test(text);
}

/** The API objects of a kind that a service proxy gets to see. */
export function objectsOf(objects: readonly OracleObject[], kind: string): readonly OracleObject[] {
  const label = HIDING_LABELS.get(kind);
  return objects.filter((object) => object["kind"] === kind && (label === undefined || !hasLabel(object, label)));
}

/** A usable address of a family, canonical (rules ); undefined for anything else. */
export function addressOf(value: unknown, family: IPFamily): string | undefined {
  if (typeof value !== "string") return undefined;
  const ip = canonicalIP(value);
  return ip?.family === family && unusableReason(ip.text) === undefined ? ip.text : undefined;
}

function hasLabel(object: OracleObject, label: string): boolean {
  const labels = at(object, "metadata", "labels");
  return typeof labels === "object" && labels !== null && Object.hasOwn(labels, label);
}
