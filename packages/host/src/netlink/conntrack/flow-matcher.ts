import type { FlowFilter } from "@turnout/core";

/** A filter made ready for comparing: texts in sets. */
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
 * Shape: all addresses are canonical. `localAddresses` are the host's own; they stand for the address "".
 * Edges: no filters match nothing; several filters for one destination are alternatives.
 */
export function createFlowMatcher(filters: readonly FlowFilter[], localAddresses: readonly string[]): FlowMatcher {
  const byPort = new Map<number, PortConditions>();
  const local = new Set(localAddresses);
  // The destinations of one Service come with one and the same list of endpoints.
  const sets = new Map<readonly string[], ReadonlySet<string>>();
  const setOf = (texts: readonly string[]): ReadonlySet<string> => {
    const set = sets.get(texts) ?? new Set(texts);
    sets.set(texts, set);
    return set;
  };
  for (const { address, port, keep, only } of filters) {
    const ofPort: PortConditions = byPort.get(port) ?? { byAddress: new Map(), anyLocal: [] };
    byPort.set(port, ofPort);
    const conditions = address === "" ? ofPort.anyLocal : (ofPort.byAddress.get(address) ?? []);
    if (address !== "") ofPort.byAddress.set(address, conditions);
    conditions.push({ keep: setOf(keep), only: only === undefined ? undefined : setOf(only) });
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
