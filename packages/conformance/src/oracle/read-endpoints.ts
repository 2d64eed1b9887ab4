import { hostPort } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";
import { addressOf, at, isName, listAt, nameOf, objectsOf, portAt, protocolAt, textAt } from "./raw-fields.ts";
import { remember } from "./remember.ts";
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

/** Finds the endpoints of a row, sorted by `ip:port`. */
export type EndpointsFinder = (row: EndpointsOf) => readonly OracleEndpoint[];

/** Read the slices of a family, for one node (rules ). */
export function readEndpoints(objects: readonly OracleObject[], family: IPFamily, nodeName: string): EndpointsFinder {
  const slices = new Map<string, SliceContent[]>();
  for (const slice of slicesOf(objects, family)) {
    const content = readSlice(slice, family);
    const known = slices.get(content.owner);
    if (known === undefined) slices.set(content.owner, [content]);
    else known.push(content);
  }
  const found = new Map<string, readonly OracleEndpoint[]>();
  return (row) => {
    // Rule R-12: by name and protocol.
    const key = `${row.namespace}/${row.service}:${row.portName}/${row.protocol}`;
    const endpoints = found.get(key) ?? merge(slices.get(`${row.namespace}/${row.service}`) ?? [], row, nodeName);
    found.set(key, endpoints);
    return endpoints;
  };
}

/** The Service of the API servers themselves. */
export const API_SERVERS = "default/kubernetes";

/** Whose endpoint has an address and port, and since when. */
export interface EndpointPlace {
  readonly namespace: string;
  /** `namespace/service`. */
  readonly service: string;
  readonly createdMs: number;
}

/** All endpoints of a family, whatever their conditions, by `address port protocol`. */
export function endpointPlaces(objects: readonly OracleObject[], family: IPFamily): ReadonlyMap<string, readonly EndpointPlace[]> {
  const places = slicesOf(objects, family).flatMap((slice) => {
    const { owner, createdMs, ports, endpoints } = readSlice(slice, family);
    const of = { namespace: owner.slice(0, owner.indexOf("/")), service: owner, createdMs };
    return endpoints.flatMap(({ ip }) => ports.map(({ number, protocol }) => ({ key: `${ip} ${number} ${protocol}`, of })));
  });
  const found = new Map<string, EndpointPlace[]>();
  for (const { key, of } of places) found.set(key, [...(found.get(key) ?? []), of]);
  return found;
}

/** What a slice says, endpoints and ports not yet put together. */
interface SliceContent {
  /** `namespace/service`. */
  readonly owner: string;
  /** When its last change was triggered; 0: it doesn't say. */
  readonly triggeredMs: number;
  /** When it was created; 0: it doesn't say. */
  readonly createdMs: number;
  readonly ports: readonly { readonly portName: string; readonly protocol: Protocol; readonly number: number }[];
  readonly endpoints: readonly Omit<OracleEndpoint, "text">[];
}

const readSlice: (slice: OracleObject, family: IPFamily) => SliceContent = remember((slice, family) => ({
  owner: `${nameOf(slice)?.namespace}/${serviceOf(slice)}`,
  triggeredMs: Date.parse(textAt(slice, "metadata", "annotations", "endpoints.kubernetes.io/last-change-trigger-time")) || 0,
  createdMs: Date.parse(textAt(slice, "metadata", "creationTimestamp")) || 0,
  ports: listAt(slice, "ports").flatMap((port) => {
    const portName = at(port, "name");
    const protocol = protocolAt(port);
    const number = portAt(port, "port");
    // Rule R-13: nothing said is not "all ports".
    if (typeof portName !== "string" || !(portName === "" || isName(portName)) || protocol === undefined || number === 0) return [];
    return [{ portName, protocol, number }];
  }),
  endpoints: listAt(slice, "endpoints").flatMap((raw) => readEndpoint(raw, family) ?? []),
}));

/** Rule R-15: the better conditions, then this node, then the newer change, then the last one, slices in the order of their names. */
function merge(slices: readonly SliceContent[], { portName, protocol }: EndpointsOf, nodeName: string): readonly OracleEndpoint[] {
  const known = new Map<string, { readonly endpoint: OracleEndpoint; readonly order: readonly number[] }>();
  for (const slice of slices) {
    for (const port of slice.ports) {
      if (port.portName !== portName || port.protocol !== protocol) continue;
      for (const endpoint of slice.endpoints) {
        const text = hostPort(endpoint.ip, port.number);
        const isHere = nodeName !== "" && endpoint.nodeName === nodeName;
        const order = [conditionsRank(endpoint), isHere ? 1 : 0, slice.triggeredMs];
        const before = known.get(text)?.order ?? [];
        if (firstDifference(order, before) >= 0) known.set(text, { endpoint: { ...endpoint, text }, order });
      }
    }
  }
  const endpoints = [...known.values()].map(({ endpoint }) => endpoint);
  return endpoints.toSorted((a, b) => (a.text < b.text ? -1 : a.text > b.text ? 1 : 0));
}

function conditionsRank({ ready, serving, terminating }: Omit<OracleEndpoint, "text">): number {
  if (ready) return terminating ? 2 : 3;
  return serving && terminating ? 1 : 0;
}

function firstDifference(a: readonly number[], b: readonly number[]): number {
  return a.map((one, index) => one - (b[index] ?? 0)).find((difference) => difference !== 0) ?? 0;
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

/** Rules. */
function readEndpoint(raw: unknown, family: IPFamily): Omit<OracleEndpoint, "text"> | undefined {
  const ip = addressOf(listAt(raw, "addresses")[0], family);
  if (ip === undefined) return undefined;
  return {
    ip,
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
