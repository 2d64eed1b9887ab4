import { fieldOf, type ApiObject } from "./api-object.ts";
import type { Resource } from "./resources.ts";
import { refuse } from "./status.ts";

/** A predicate over objects, made from a selector. */
export type Matcher = (object: ApiObject) => boolean;

/**
 * Parse a label selector (`a=b,c!=d,e,!f`).
 *
 * Edges: "" selects everything; `!=` also matches objects without the label, as in Kubernetes; sets (`in`, `notin`) are refused.
 * @throws {Refusal} 400 for what it can't read.
 */
export function parseLabelSelector(text: string): Matcher {
  return all(splitTerms(text).map((part) => parseLabelTerm(part) ?? refuse(400, `unable to parse requirement: ${part}`)));
}

/** Parse a field selector (`a=b`, `a==b`, `a!=b`). @throws {Refusal} 400 for a field that the resource doesn't select by. */
export function parseFieldSelector(text: string, resource: Resource): Matcher {
  const known = ["metadata.name", "metadata.namespace", ...resource.fields];
  return all(
    splitTerms(text).map((part): Matcher => {
      const [, field = "", operator, value] = /^([^!=]+)(!=|==?)(.*)$/.exec(part) ?? [];
      if (!known.includes(field)) return refuse(400, `field label not supported: ${part}`);
      return (object) => (fieldOf(object, field) === value) === (operator !== "!=");
    }),
  );
}

function all(terms: readonly Matcher[]): Matcher {
  return (object) => terms.every((term) => term(object));
}

function splitTerms(text: string): readonly string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

function parseLabelTerm(part: string): Matcher | undefined {
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
