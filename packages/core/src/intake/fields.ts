import type { Issue, Protocol, ServiceEventReason } from "../model/api-objects.ts";
import { isDNSName } from "../model/names.ts";

/** A JSON object whose fields have not been looked at yet. */
export type Raw = Readonly<Record<string, unknown>>;

const NOTHING: Raw = {};
const NO_ITEMS: readonly unknown[] = [];
const NO_ISSUES: readonly Issue[] = [];
const SHOWN_VALUES_MAX = 3;
const TIME_LENGTH_MAX = 64;

/** Read a field as an object; anything else reads as an empty one, and is noted unless it is absent. */
export function objectField(raw: Raw, field: string, findings?: Findings): Raw {
  const value = raw[field];
  if (isObject(value)) return value;
  if (value !== undefined && value !== null) findings?.add(`${field} is not an object, it is ignored`, value, "write an object");
  return NOTHING;
}

/** Read a field as a list; anything else reads as an empty one, and is noted unless it is absent. */
export function listField(raw: Raw, field: string, findings?: Findings): readonly unknown[] {
  const value = raw[field];
  if (Array.isArray(value)) return value as readonly unknown[];
  if (value !== undefined && value !== null) findings?.add(`${field} is not a list, it is ignored`, value, "write a list");
  return NO_ITEMS;
}

/** Read a field as a list of objects; what isn't one is noted and left out. */
export function objectsField(raw: Raw, field: string, findings: Findings): readonly Raw[] {
  const list = listField(raw, field, findings);
  if (list.every(isObject)) return list;
  return list.filter((item): item is Raw => {
    if (isObject(item)) return true;
    findings.add(`item of ${field} is not an object, it is ignored`, item, "write an object");
    return false;
  });
}

/** Give the first `max` items of a list; more are noted. */
export function firstItems<T>(list: readonly T[], max: number, field: string, findings: Findings): readonly T[] {
  if (list.length <= max) return list;
  findings.add(`too many items of ${field}, the first ${max} count`, `${list.length}`, "remove some");
  return list.slice(0, max);
}

/** Read a field as text; undefined when absent or something else. */
export function textField(raw: Raw, field: string): string | undefined {
  const value = raw[field];
  return typeof value === "string" ? value : undefined;
}

/** Tell whether a value is a JSON object. */
export function isObject(value: unknown): value is Raw {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Tell whether a value is a port number, 1–65535. */
export function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65535;
}

/** Read an optional protocol: absent means TCP, an unknown word is undefined. */
export function protocolOf(value: unknown): Protocol | undefined {
  if (value === undefined || value === null || value === "") return "TCP";
  return value === "TCP" || value === "UDP" || value === "SCTP" ? value : undefined;
}

/** Parse an RFC 3339 time to ms since the epoch; undefined when absent or unreadable. */
export function timeOf(value: unknown): number | undefined {
  if (typeof value !== "string" || value.length > TIME_LENGTH_MAX) return undefined;
  const ms = Date.parse(value);
  return Number.isNaN(ms) ? undefined : ms;
}

/** Show a value from outside in a report: one line, only harmless characters, at most 60 of them. */
export function shown(value: unknown): string {
  const text = typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
  const safe = text.slice(0, 61).replace(/[^\x20-\x7e]/g, "?");
  return `"${safe.length > 60 ? `${safe.slice(0, 57)}...` : safe}"`;
}

/** Like findings of one object. */
interface LikeFindings {
  readonly values: string[];
  count: number;
  readonly hint: string;
  readonly event: ServiceEventReason | undefined;
}

/** Collects what is wrong with one object, merging like findings into one line each. */
export class Findings {
  readonly object: string;
  readonly #service: string | undefined;
  /** Made when something is wrong, which is rare. */
  #byKind: Map<string, LikeFindings> | undefined;

  /** @param service what the object concerns, `namespace/name`, where it is no Service itself */
  constructor(object: string, service?: string) {
    this.object = object;
    this.#service = service;
  }

  /** Note that something was skipped: `kind` says what, `value` which one, `hint` what its owner can do; with `event`, the Service gets an Event. */
  add(kind: string, value: unknown, hint: string, event?: ServiceEventReason): void {
    this.#byKind ??= new Map();
    const found = this.#byKind.get(kind) ?? { values: [], count: 0, hint, event };
    found.count++;
    if (found.values.length < SHOWN_VALUES_MAX) found.values.push(shown(value));
    this.#byKind.set(kind, found);
  }

  /** One issue per kind of finding, in the order first met. */
  issues(): readonly Issue[] {
    if (this.#byKind === undefined) return NO_ISSUES;
    return [...this.#byKind].map(([kind, { values, count, hint, event }]) => {
      const more = count > values.length ? ` and ${count - values.length} more` : "";
      const what = `${kind}: ${values.join(", ")}${more}`;
      if (event === undefined)
        return { object: this.object, what, hint, ...(this.#service === undefined ? {} : { service: this.#service }) };
      const [, service = ""] = this.object.split(" ");
      return { object: this.object, what, hint, events: [{ reason: event, service, note: `${what}; ${hint}` }] };
    });
  }
}

/** Name and namespace of an object; undefined when they can't be used as names. */
export interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/** Read metadata.name and metadata.namespace ("default" when absent, as the API server's clients do). */
export function objectName(raw: Raw): ObjectName | undefined {
  const metadata = objectField(raw, "metadata");
  const name = textField(metadata, "name");
  const namespace = textField(metadata, "namespace") || "default";
  if (name === undefined || !isDNSName(name) || !isDNSName(namespace)) return undefined;
  return { namespace, name };
}
