import { serviceKeyOf, type Issue, type Refusal } from "@turnout/core";

/** How much is not in force as the API says. */
export interface NotInForce {
  /** Services of which the host refuses a port, wholly or in part. */
  readonly services: number;
  /** API objects that are left out, wholly or in part, and objects of the host that fail and belong to no Service. */
  readonly objects: number;
  /** Parts of the source that could not be followed for longer than a sync period. */
  readonly sources: number;
}

/** What is not in force of a family. */
export interface FamilyReadings {
  readonly refusals: readonly Refusal[];
  issues(): Iterable<Issue>;
}

/** Further objects are not counted: tenants write them, and the count is read by all who scrape. */
const OBJECTS_MAX = 1_000;

/** Count what is not in force. Pure; costs what the host refuses, and a thousand reports. */
export function notInForce(families: readonly FamilyReadings[], sources: number): NotInForce {
  const refused = families.flatMap(({ refusals }) => refusals);
  const services = new Set(refused.flatMap(({ rows }) => rows.map(serviceKeyOf)));
  const ofNoService = refused.filter(({ rows }) => rows.length === 0).length;
  return { services: services.size, objects: reportedObjects(families.map((family) => family.issues())) + ofNoService, sources };
}

/** Count the objects that reports are about, up to a thousand. Pure. */
export function reportedObjects(sources: readonly Iterable<Issue>[]): number {
  const objects = new Set<string>();
  for (const issues of sources) for (const { object } of issues) if (objects.add(object).size >= OBJECTS_MAX) return OBJECTS_MAX;
  return objects.size;
}
