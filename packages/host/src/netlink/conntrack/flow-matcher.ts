import { canonicalIP, hostPort, ProxyError } from "@turnout/core";
import type { FlowFilter, IPFamily } from "@turnout/core";

/** A filter made ready for comparing: canonical texts in sets. */
interface Condition {
  readonly keep: ReadonlySet<string>;
  readonly only: ReadonlySet<string> | undefined;
}

/** Conditions of one port: by destination address, and for any local address. */
interface PortConditions {
  readonly byAddress: Map<string, Condition[]>;
  readonly anyLocal: Condition[];
}

/** The part of a UDP flow that is compared. Functions, because most flows are told apart by the port alone. */
export interface FlowView {
  /** Original destination port. */
  readonly port: number;
  /** Original destination, canonical. */
  destination(): string;
  /** Source of the replies as `ip:port`, canonical. */
  replySource(): string;
}

/** Decides which UDP flows are to be forgotten. */
export interface FlowMatcher {
  /** Tell whether a UDP flow of the family goes: any one filter suffices. Never throws. */
  matches(flow: FlowView): boolean;
}

/** Tell whether any filter is for the host's own addresses. */
export function needsLocalAddresses(filters: readonly FlowFilter[]): boolean {
  return filters.some((filter) => filter.address === "");
}

/**
 * Prepare filters for comparing with many flows; real and fake netlink share this.
 *
 * Shape: `localAddresses` are the host's own, canonical; they stand for the address "".
 * Edges: no filters match nothing; several filters for one destination are alternatives.
 * @throws {ProxyError} `invalid_object` for an address of another family or none, or a port outside 1–65535.
 */
export function createFlowMatcher(family: IPFamily, filters: readonly FlowFilter[], localAddresses: readonly string[]): FlowMatcher {
  const byPort = new Map<number, PortConditions>();
  const local = new Set(localAddresses);
  // The destinations of one Service come with one and the same list of endpoints.
  const sets = new Map<readonly string[], ReadonlySet<string>>();
  const setOf = (texts: readonly string[]): ReadonlySet<string> => {
    const set = sets.get(texts) ?? new Set(texts.map((text) => canonicalHostPort(family, text)));
    sets.set(texts, set);
    return set;
  };
  for (const filter of filters) {
    const port = checkedPort(filter.port);
    const conditions = byPort.get(port) ?? { byAddress: new Map<string, Condition[]>(), anyLocal: [] };
    byPort.set(port, conditions);
    conditionsFor(conditions, family, filter.address).push({
      keep: setOf(filter.keep),
      only: filter.only === undefined ? undefined : setOf(filter.only),
    });
  }
  return {
    matches(flow: FlowView): boolean {
      const conditions = byPort.get(flow.port);
      if (conditions === undefined) return false;
      const destination = flow.destination();
      const replySource = flow.replySource();
      const goes = ({ keep, only }: Condition): boolean => !keep.has(replySource) && (only === undefined || only.has(replySource));
      if (conditions.byAddress.get(destination)?.some(goes) === true) return true;
      return conditions.anyLocal.length > 0 && local.has(destination) && conditions.anyLocal.some(goes);
    },
  };
}

function conditionsFor(conditions: PortConditions, family: IPFamily, address: string): Condition[] {
  if (address === "") return conditions.anyLocal;
  const canonical = checkedAddress(family, address);
  const found = conditions.byAddress.get(canonical) ?? [];
  conditions.byAddress.set(canonical, found);
  return found;
}

/** Canonical text of an address of `family`. @throws {ProxyError} `invalid_object`. */
export function checkedAddress(family: IPFamily, text: string): string {
  const canonical = canonicalIP(text);
  if (canonical?.family === family) return canonical.text;
  throw new ProxyError("invalid_object", `not an ${family} address in a flow filter`, { object: text });
}

function checkedPort(port: number): number {
  if (Number.isInteger(port) && port >= 1 && port <= 65535) return port;
  throw new ProxyError("invalid_object", "not a port in a flow filter", { object: String(port) });
}

/** Take `ip:port` or `[ip]:port` apart and write it canonically. @throws {ProxyError} `invalid_object`. */
export function canonicalHostPort(family: IPFamily, text: string): string {
  const match = family === "IPv6" ? /^\[([^\]]+)\]:(\d{1,5})$/.exec(text) : /^([^:]+):(\d{1,5})$/.exec(text);
  if (match === null) throw new ProxyError("invalid_object", `not an ${family} ip:port in a flow filter`, { object: text });
  return hostPort(checkedAddress(family, match[1] ?? ""), checkedPort(Number(match[2])));
}
