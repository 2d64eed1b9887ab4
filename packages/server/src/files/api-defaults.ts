import type { ObjectKind } from "@turnout/core";
import { isRecord, type RawObject } from "../source/raw-object.ts";

/**
 * Fill in what the API server would have, where a hand-written file leaves it out and the core reads its absence as "not there".
 *
 * Shape: the object itself where nothing is missing.
 * Edges: only a slice port's name is concerned ("" for the unnamed port); the core knows the other defaults.
 * @source kubernetes pkg/apis/discovery/v1/defaults.go SetDefaults_EndpointPort
 */
export function withApiDefaults(kind: ObjectKind, object: RawObject): RawObject {
  const ports: unknown = (object as Readonly<Record<string, unknown>>)["ports"];
  if (kind !== "EndpointSlice" || !Array.isArray(ports)) return object;
  const isUnnamed = (port: unknown): port is Record<string, unknown> =>
    isRecord(port) && (port["name"] === undefined || port["name"] === null);
  if (!ports.some(isUnnamed)) return object;
  return { ...object, ports: ports.map((port: unknown) => (isUnnamed(port) ? { ...port, name: "" } : port)) };
}
