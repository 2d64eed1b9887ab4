import { fieldOf, type ApiObject } from "./api-object.ts";
import type { Resource } from "./resources.ts";
import { failed, failure, ok, type Result } from "./status.ts";

/** A predicate over objects, made from a selector. */
export type Matcher = (object: ApiObject) => boolean;

/**
 * Parse a label selector (`a=b,c!=d,e,!f,g in (h,i),j notin (k)`).
 *
 * Edges: "" selects everything; `!=` and `notin` also match objects without the label, as in Kubernetes.
 */
export function parseLabelSelector(text: string): Result<Matcher> {
  const terms: Matcher[] = [];
  for (const part of splitTerms(text)) {
    const term = parseLabelTerm(part);
    if (term === undefined) return failed(failure(400, `unable to parse requirement: ${part}`));
    terms.push(term);
  }
  return ok((object) => terms.every((term) => term(object)));
}

/** Parse a field selector (`a=b`, `a==b`, `a!=b`); a field the resource doesn't select by is a 400. */
export function parseFieldSelector(text: string, resource: Resource): Result<Matcher> {
  const known = ["metadata.name", "metadata.namespace", ...resource.fields];
  const terms: Matcher[] = [];
  for (const part of splitTerms(text)) {
    const match = /^([^!=]+)(!=|==?)(.*)$/.exec(part);
    if (match === null) return failed(failure(400, `invalid field selector: ${part}`));
    const [, field = "", operator, value] = match;
    if (!known.includes(field)) return failed(failure(400, `field label not supported: ${field}`));
    terms.push((object) => (fieldOf(object, field) === value) === (operator !== "!="));
  }
  return ok((object) => terms.every((term) => term(object)));
}

function splitTerms(text: string): readonly string[] {
  // A comma inside parentheses belongs to a set.
  return text
    .split(/,(?![^(]*\))/)
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function parseLabelTerm(part: string): Matcher | undefined {
  const set = /^(\S+)\s+(in|notin)\s+\(([^)]*)\)$/.exec(part);
  if (set !== null) {
    const [, key = "", operator, list = ""] = set;
    const values = new Set(list.split(",").map((value) => value.trim()));
    return (object) => {
      const value = labelOf(object, key);
      return operator === "in" ? value !== undefined && values.has(value) : value === undefined || !values.has(value);
    };
  }
  const equality = /^([^!=\s]+)\s*(!=|==?)\s*(\S*)$/.exec(part);
  if (equality !== null) {
    const [, key = "", operator, wanted] = equality;
    return (object) => (labelOf(object, key) === wanted) === (operator !== "!=");
  }
  const exists = /^(!?)([^!=\s()]+)$/.exec(part);
  if (exists === null) return undefined;
  const [, not, key = ""] = exists;
  return (object) => (labelOf(object, key) !== undefined) === (not === "");
}

function labelOf(object: ApiObject, key: string): string | undefined {
  const labels = object.metadata.labels;
  return labels !== undefined && Object.hasOwn(labels, key) ? labels[key] : undefined;
}
