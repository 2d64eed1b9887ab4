import { hostPort } from "@turnout/core/backend";
import type { IPFamily, ObjectWords } from "@turnout/core/backend";
import { originless } from "./chains.ts";
import { NFT_FAMILY, TABLE } from "./names.ts";
import { endpointMap, largePoolLocation, servingLocation, VERDICT_MAPS } from "./objects.ts";
import type { NftObject, NodePortObject, ServiceObject } from "./objects.ts";
import { ANOTHER, isTampered } from "./observe.ts";

/** Endpoints of a list that are named. */
const SHOWN = 4;

/** Call an object by nft's words, and say how the one that the kernel holds differs. Pure. */
export function describeObject(object: NftObject, family: IPFamily, held?: NftObject): ObjectWords {
  const table = `${NFT_FAMILY[family]} ${TABLE}`;
  const get = (set: string, key: string): string => `nft get element ${table} ${set} '{ ${key} }'`;
  switch (object.kind) {
    case "table":
      return {
        what: `table ${table}`,
        show: `nft -t list table ${table}`,
        ...(held?.kind === "table" ? differingTable(table, held.value) : {}),
      };
    case "chain":
      return {
        what: `chain ${object.key} of table ${table}`,
        show: `nft list chain ${table} ${object.key}`,
        ...(held?.kind === "chain" ? differingChain(object.key, table, held.value) : {}),
      };
    case "service":
    case "nodeport": {
      const protocol = protocolOf(object);
      return {
        what: `element ${object.key} of map ${VERDICT_MAPS[object.kind]} with its elements of ${endpointMap(object.kind, protocol)} (table ${table})`,
        show: get(VERDICT_MAPS[object.kind], object.key),
        ...(held?.kind === object.kind ? differingDestination(object, held, table) : {}),
      };
    }
    case "cluster-ips":
    case "nodeport-ips":
    case "hairpin":
      return { what: `element ${object.key} of set ${object.kind} (table ${table})`, show: get(object.kind, object.key) };
    case "affinity-serving": {
      const { map, id } = servingLocation(object);
      return { what: `element ${id} of map ${map} (table ${table})`, show: get(map, id) };
    }
    case "affinity-endpoints":
      return { what: `endpoints of map ${object.key} (table ${table})`, show: `nft list map ${table} ${object.key}` };
    case "large-pool": {
      const { map, key } = largePoolLocation(object);
      return {
        what: `elements ${key} . … of map ${map} (table ${table})`,
        show: listed(table, map, key),
        ...(held?.kind === "large-pool" ? { differs: sends(`packets for ${key}`, held.value, object.value, map, table) } : {}),
      };
    }
    case "map":
      return { what: `map ${object.key} (table ${table})`, show: `nft -t list map ${table} ${object.key}` };
  }
}

/** One that counts, or doesn't, as it was told. */
function differingTable(table: string, held: string): Pick<ObjectWords, "differs" | "isOfOtherSettings"> {
  if (held !== ANOTHER) return { isOfOtherSettings: true };
  return { differs: `table ${table} has other sets, maps or hooks than this version makes: some were deleted, or it is another version's` };
}

/** A chain whose comments fit its rules is of our own making: with other flags. */
function differingChain(key: string, table: string, held: string): Pick<ObjectWords, "differs" | "isOfOtherSettings"> {
  if (!isTampered(held)) return { isOfOtherSettings: true };
  return { differs: `chain ${key} of table ${table} is not as Turnout wrote it: rules were added, deleted or changed` };
}

function differingDestination(
  wanted: ServiceObject | NodePortObject,
  { value: held }: ServiceObject | NodePortObject,
  table: string,
): Partial<ObjectWords> {
  const { kind, key, value } = wanted;
  const verdicts = VERDICT_MAPS[kind];
  if (held.verdict === "") return { what: `element ${key} of map ${verdicts} (table ${table})`, isGone: true };
  const pools = differingPools(wanted, held, table);
  if (held.verdict !== value.verdict && picksOf(held.verdict) === picksOf(value.verdict)) return { isOfOtherSettings: true, ...pools };
  if (held.verdict !== value.verdict)
    return {
      differs: `with packets for ${targetText(wanted)} the kernel does "${held.verdict}", should: "${value.verdict}" (map ${verdicts} of table ${table})`,
    };
  // Whether elements have comments is an option.
  return pools.differs === undefined ? { isOfOtherSettings: true } : pools;
}

/** Which endpoints it has: no settings choose them, but for the node's name. */
function differingPools(
  wanted: ServiceObject | NodePortObject,
  held: ServiceObject["value"],
  table: string,
): Pick<ObjectWords, "differs" | "show"> {
  const { kind, key, value } = wanted;
  const pool = (["cluster", "local"] as const).find((name) => value[name].join() !== held[name].join());
  if (pool === undefined) return {};
  const map = endpointMap(kind, protocolOf(wanted));
  const places = key
    .split(" . ")
    .filter((part) => !/^[a-z]/.test(part))
    .join(" . ");
  return { differs: sends(`packets for ${targetText(wanted)}`, held[pool], value[pool], map, table), show: listed(table, map, places) };
}

/** The endpoints that a verdict leads to, whoever asks: what pods are, and who is masqueraded, are settings. */
function picksOf(verdict: string): string {
  const picks = verdict
    .replace(/^goto /, "")
    .split(".")
    .map((name) => originless(name));
  return [...new Set(picks)].toSorted().join();
}

/** All places of a list; grep, since nft gets single elements by their whole keys alone. */
function listed(table: string, map: string, key: string): string {
  return `nft list map ${table} ${map} | grep -F '${key} . '`;
}

function sends(what: string, held: readonly string[], wanted: readonly string[], map: string, table: string): string {
  const [is, should] = [endpointsText(held), endpointsText(wanted)];
  return `the kernel sends ${what} to ${is}, should: ${should}${is === should ? ", which lie at other places" : ""} (map ${map} of table ${table})`;
}

function endpointsText(places: readonly string[]): string {
  const endpoints = places.filter((place) => place !== "");
  if (endpoints.length === 0) return "no endpoint";
  const shown = endpoints.slice(0, SHOWN).map((endpoint) => {
    const [ip = "", port] = endpoint.split(" . ");
    return hostPort(ip, Number(port));
  });
  return `${shown.join(", ")}${endpoints.length > shown.length ? ` and ${endpoints.length - shown.length} more` : ""}`;
}

/** `10.96.0.1:80/TCP`, or `node port 30080/TCP`. */
function targetText(object: ServiceObject | NodePortObject): string {
  const parts = object.key.split(" . ");
  const protocol = protocolOf(object).toUpperCase();
  return object.kind === "service" ? `${hostPort(parts[0] ?? "", Number(parts[2]))}/${protocol}` : `node port ${parts[1]}/${protocol}`;
}

function protocolOf({ kind, key }: ServiceObject | NodePortObject): string {
  return key.split(" . ")[kind === "service" ? 1 : 0] ?? "";
}
