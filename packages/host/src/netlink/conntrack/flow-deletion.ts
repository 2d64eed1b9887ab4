import { ProxyError } from "@turnout/core";
import type { FlowFilter, IPFamily } from "@turnout/core";
import { MAX_IN_FLIGHT } from "../channel.ts";
import type { NetlinkChannel } from "../channel.ts";
import { CT, dumpRequest, parseEntry, passesFilter, UDP } from "./conntrack.ts";
import type { DumpFilter } from "./conntrack.ts";
import { errno, kernelError } from "../errno.ts";
import { createFlowMatcher } from "./flow-matcher.ts";
import type { FlowMatcher } from "./flow-matcher.ts";

/** The part of a channel that deleting flows uses. */
export type FlowChannel = Pick<NetlinkChannel, "dump" | "requestMany">;

/** Up to this many destinations get a kernel-filtered dump each; more share one dump of all UDP entries. */
export const MAX_DUMPS = 16;

/**
 * Choose the dumps that together show every flow the filters could match. Pure.
 *
 * Edges: filters for one destination share a dump; no filters need none.
 */
export function dumpsFor(family: IPFamily, filters: readonly FlowFilter[]): readonly DumpFilter[] {
  const dumps = new Map<string, DumpFilter>();
  for (const { address, port } of filters) {
    // Linux compares IPv6 addresses the wrong way round (ctnetlink_filter_match_tuple, seen on 6.18): it would show
    // every flow but the ones asked for. The port alone it gets right.
    const filter = address === "" || family === "IPv6" ? { port } : { destination: address, port };
    dumps.set(JSON.stringify(filter), filter);
    if (dumps.size > MAX_DUMPS) return [{}];
  }
  return [...dumps.values()];
}

/**
 * Delete the UDP conntrack entries that the filters match, each by its own tuple, and resolve to how many went.
 *
 * Shape: `localAddresses` stand for the filter address "".
 * Edges: an entry that went by itself meanwhile isn't counted. A dump during which the table changed is repeated
 * once; after that what it showed counts. Nothing goes of what a dump showed in which `signal` aborted: by then rules may be in force
 * that let in what the filters mean to go. Only the requests for matching entries are held in memory.
 * @throws {ProxyError} `canceled`, `permission_denied`, `tool_failed`.
 */
export async function deleteMatchingFlows(
  channel: FlowChannel,
  family: IPFamily,
  filters: readonly FlowFilter[],
  localAddresses: readonly string[],
  signal: AbortSignal,
): Promise<number> {
  const matcher = createFlowMatcher(filters, localAddresses);
  const dumps = dumpsFor(family, filters);
  const requests = new Map<string, Buffer>();
  for (const filter of dumps) {
    throwIfAborted(signal);
    const seen = await collect(channel, family, filter, matcher, requests);
    if (seen === "everything") break;
  }
  return deleteEntries(channel, [...requests.values()], signal);
}

/** Run one dump into `requests`; tells whether the kernel honoured the filter or showed the whole table. */
async function collect(
  channel: FlowChannel,
  family: IPFamily,
  filter: DumpFilter,
  matcher: FlowMatcher,
  requests: Map<string, Buffer>,
): Promise<"filtered" | "everything"> {
  let kernelFilter: DumpFilter | undefined = filter;
  let isIgnored = false;
  for (let attempt = 1; ;) {
    const end = await channel.dump(CT.dump, dumpRequest(family, kernelFilter), (_, payload) => {
      const entry = parseEntry(payload, family);
      if (entry === undefined) return;
      isIgnored ||= !passesFilter(entry, filter);
      if (entry.protocol !== UDP || !matcher.matches(entry)) return;
      const request = entry.deleteRequest();
      requests.set(request.toString("latin1"), request);
    });
    if (kernelFilter !== undefined && (end.errno === errno("EOPNOTSUPP") || end.errno === errno("EINVAL"))) {
      kernelFilter = undefined;
      continue;
    }
    if (end.errno !== 0 && end.errno !== errno("EINTR")) throw kernelError(end.errno, "conntrack entries can't be listed");
    const isComplete = end.errno === 0 && !end.interrupted;
    if (isComplete || attempt === 2) return kernelFilter === undefined || isIgnored ? "everything" : "filtered";
    attempt++;
  }
}

async function deleteEntries(channel: FlowChannel, requests: readonly Buffer[], signal: AbortSignal): Promise<number> {
  let deleted = 0;
  let refusal = 0;
  for (let at = 0; at < requests.length; at += MAX_IN_FLIGHT) {
    throwIfAborted(signal);
    for (const outcome of await channel.requestMany(CT.delete, requests.slice(at, at + MAX_IN_FLIGHT))) {
      if (outcome === 0) deleted++;
      else if (outcome !== errno("ENOENT")) refusal = outcome;
    }
  }
  if (refusal !== 0) throw kernelError(refusal, `some of ${requests.length} conntrack entries can't be deleted`);
  return deleted;
}

function throwIfAborted(signal: AbortSignal): void {
  if (signal.aborted) throw new ProxyError("canceled", "forgetting flows was given up", { cause: signal.reason });
}
