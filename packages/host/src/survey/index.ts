/**
 * A read-only look at what decides about packets on a host besides a backend's own rules.
 *
 * @packageDocumentation
 */
export { surveyPath } from "./path.ts";
export type { PathQuestion, PathTools } from "./path.ts";
export { routeFor } from "./route.ts";
export type { Route } from "./route.ts";
export type { ReadFile } from "./foreign-tables.ts";
