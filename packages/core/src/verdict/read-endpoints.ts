import { hostPort } from "../addresses.ts";
import type { IPFamily, Protocol } from "../objects.ts";
import { addressOf, at, isName, listAt, nameOf, objectsOf, portAt, protocolAt, textAt } from "./raw-fields.ts";
import type { OracleObject } from "./oracle-world.ts";

/** An endpoint as the slices tell of it. */
export interface OracleEndpoint {
  readonly ip: string;
  /** `ip:port`. */
  readonly text: string;
  readonly nodeName: string;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints: readonly string[];
  readonly nodeHints: readonly string[];
}

/** Whose endpoints are asked for. */
export interface EndpointsOf {
  readonly namespace: string;
  readonly service: string;
  readonly portName: string;
  readonly protocol: Protocol;
}

/** Collect the endpoints of every row, by {@link endpointsKey}, each sorted by `ip:port` (rules ). */
export function readEndpoints(objects: readonly OracleObject[], family: IPFamily): ReadonlyMap<string, readonly OracleEndpoint[]> {
  const found = new Map<string, Map<string, OracleEndpoint>>();
  for (const slice of slicesOf(objects, family)) {
    const owner = { namespace: nameOf(slice)?.namespace ?? "", service: serviceOf(slice) };
    for (const port of listAt(slice, "ports")) {
      const portName = at(port, "name");
      const protocol = protocolAt(port);
      const number = portAt(port, "port");
      // Rule R-13: nothing said is not "all ports".
      if (typeof portName !== "string" || !(portName === "" || isName(portName)) || protocol === undefined || number === 0) continue;
      const key = endpointsKey({ ...owner, portName, protocol });
      const known = found.get(key) ?? new Map<string, OracleEndpoint>();
      found.set(key, known);
      for (const raw of listAt(slice, "endpoints")) meet(known, readEndpoint(raw, number, family));
    }
  }
  return new Map(
    [...found].map(([key, known]) => [key, [...known.values()].toSorted((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0))]),
  );
}

/** Name a row's endpoints (rule R-12: by name and protocol). */
export function endpointsKey({ namespace, service, portName, protocol }: EndpointsOf): string {
  return JSON.stringify([namespace, service, portName, protocol]);
}

/** Slices of a family that say whose they are, by name (rule R-11). */
function slicesOf(objects: readonly OracleObject[], family: IPFamily): readonly OracleObject[] {
  return objectsOf(objects, "EndpointSlice")
    .filter((slice) => slice["addressType"] === family && isName(serviceOf(slice)) && nameOf(slice) !== undefined)
    .toSorted((a, b) => (textAt(a, "metadata", "name") < textAt(b, "metadata", "name") ? -1 : 1));
}

function serviceOf(slice: OracleObject): string {
  return textAt(slice, "metadata", "labels", "kubernetes.io/service-name");
}

/** Rule R-15; of several that are not terminating the last one counts (semantics.md 1.5), slices in the order of their names. */
function meet(known: Map<string, OracleEndpoint>, endpoint: OracleEndpoint | undefined): void {
  if (endpoint === undefined) return;
  if (!known.has(endpoint.text) || !endpoint.terminating) known.set(endpoint.text, endpoint);
}

/** Rules. */
function readEndpoint(raw: unknown, port: number, family: IPFamily): OracleEndpoint | undefined {
  const ip = addressOf(listAt(raw, "addresses")[0], family);
  if (ip === undefined) return undefined;
  return {
    ip,
    text: hostPort(ip, port),
    nodeName: textAt(raw, "nodeName"),
    ready: at(raw, "conditions", "ready") !== false,
    serving: at(raw, "conditions", "serving") !== false,
    terminating: at(raw, "conditions", "terminating") === true,
    zoneHints: hintsAt(raw, "forZones"),
    nodeHints: hintsAt(raw, "forNodes"),
  };
}

function hintsAt(raw: unknown, field: string): readonly string[] {
  return listAt(raw, "hints", field).flatMap((hint) => {
    const name = at(hint, "name");
    return typeof name === "string" ? [name] : [];
  });
}
