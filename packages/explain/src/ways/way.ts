import { UNKNOWN_DEVICE } from "@turnout/core";
import type { AskedPacket, Exec, FateEndpoint, IPFamily } from "@turnout/core";
import type { ReadFile } from "../tables/external-tables.ts";
import { isListening } from "./listeners.ts";
import { isByDefault, routeFor } from "../readings/route.ts";
import type { Route, RouteQuestion } from "../readings/route.ts";
import { readRoutingRules } from "../readings/routing-rules.ts";

/** The way of a packet to one endpoint, and of the answer. */
export interface Way {
  readonly endpoint: FateEndpoint;
  readonly there: Route;
  readonly back: Route | undefined;
  readonly asked: RouteQuestion;
  readonly askedBack: RouteQuestion;
  /** This host sends packets there as its own, and forwards (or not) only the answers; absent: it forwards both, unless it sends or answers itself. */
  readonly isForwardedBack?: boolean;
  /** It ends on this host, and a program waits for it there; undefined: it does not end here, or that can't be told. */
  readonly isListenedTo?: boolean | undefined;
}

/** What ways are looked up with. */
export interface WayTools {
  readonly exec: Exec;
  readonly read: ReadFile;
}

/** What of the packet decides about its route besides its addresses. */
export interface Sending {
  /** The mark it has where the route is looked up; 0: none. */
  readonly mark: number;
  /** The kernel has yet to choose the source: the socket's address is replaced before. */
  readonly isSourceOpen: boolean;
}

/** Look up the routes to an endpoint and back, as the kernel would for these packets. */
export async function readWay(
  tools: WayTools,
  { family, protocol, source, device }: AskedPacket,
  endpoint: FateEndpoint,
  { mark, isSourceOpen }: Sending,
  signal: AbortSignal,
): Promise<Way> {
  const isFromHost = device === "";
  // A source that isn't the host's can't be looked up without a device.
  const asked: RouteQuestion = {
    to: endpoint.ip,
    ...(device === UNKNOWN_DEVICE || isSourceOpen ? {} : { from: source }),
    ...(device === "" || device === UNKNOWN_DEVICE ? {} : { by: device }),
    ...(mark === 0 ? {} : { mark }),
  };
  const there = await routeTaken(tools, family, asked, signal);
  const isHere = there.is === "way" && there.isLocal;
  // What the host itself answers, or asked for, is not forwarded back.
  const askedBack: RouteQuestion =
    isHere || isFromHost || device === UNKNOWN_DEVICE
      ? { to: source }
      : { to: source, from: endpoint.ip, by: there.is === "way" ? there.device : "lo" };
  const [back, isListenedTo] = await Promise.all([
    there.is === "way" ? routeTaken(tools, family, askedBack, signal) : undefined,
    isHere ? isListening(tools.read, { family, protocol, ...endpoint }) : undefined,
  ]);
  return { endpoint, there, back, asked, askedBack, isListenedTo };
}

/** The priority of the rule by which the table main is asked. */
const MAIN_PRIORITY = 32_766;

/**
 * Look up the routes to an endpoint and back where IPVS sends packets on: they come in for an address of this host, which then sends them as it sends
 * its own.
 *
 * Edges: conntrack has them routed once more, with mark and source, but `ip route get` takes no foreign source without a device. So of routing rules
 * about the source those are seen that refuse before the table main is asked.
 * @source linux net/netfilter/nf_nat_proto.c nf_nat_ipv4_local_fn
 */
export async function readBalancedWay(
  tools: WayTools,
  packet: AskedPacket,
  endpoint: FateEndpoint,
  mark: number,
  signal: AbortSignal,
): Promise<Way> {
  const { family, protocol, source, destination, device } = packet;
  const isKnown = device !== "" && device !== UNKNOWN_DEVICE;
  const arriving: RouteQuestion = { to: destination, from: source, by: device };
  const arrival = isKnown ? await routeTaken(tools, family, arriving, signal) : undefined;
  const isKept = arrival?.is === "none" && (arrival.why === "rp_filter" || arrival.why === "refused");
  const asked: RouteQuestion = isKept ? arriving : { to: endpoint.ip, ...(mark === 0 ? {} : { mark }) };
  const refusing = isKept ? undefined : await refusalBeforeMain(tools.exec, family, { ...asked, from: source }, signal);
  const there = isKept ? arrival : (refusing ?? (await routeTaken(tools, family, asked, signal)));
  const isHere = there.is === "way" && there.isLocal;
  const askedBack: RouteQuestion =
    isHere || !isKnown ? { to: source } : { to: source, from: endpoint.ip, by: there.is === "way" ? there.device : "lo" };
  const [back, isListenedTo] = await Promise.all([
    there.is === "way" ? routeTaken(tools, family, askedBack, signal) : undefined,
    isHere ? isListening(tools.read, { family, protocol, ...endpoint }) : undefined,
  ]);
  return { endpoint, there, back, asked, askedBack, isForwardedBack: !isHere && device !== "", isListenedTo };
}

async function refusalBeforeMain(exec: Exec, family: IPFamily, asked: RouteQuestion, signal: AbortSignal): Promise<Route | undefined> {
  const rules = await readRoutingRules(exec, family, signal);
  const found = rules.find(({ does, priority, fits }) => does === "refuse" && priority < MAIN_PRIORITY && fits(asked));
  if (found === undefined) return undefined;
  const { text, priority } = found;
  return { is: "none", why: "no_route", says: "a routing rule refuses it", rule: { text, priority } };
}

/** Look a route up, and where the kernel refuses the packet find out why: where it should go, or where it comes from. */
async function routeTaken({ exec, read }: WayTools, family: IPFamily, asked: RouteQuestion, signal: AbortSignal): Promise<Route> {
  const route = await routeFor(exec, family, asked, signal);
  const { to, from, by, mark = 0 } = asked;
  if (route.is === "way") return route.isLocal ? route : { ...route, isDefault: await isByDefault(exec, family, asked, signal) };
  const isFiltered = route.why === "rp_filter";
  const rule = isFiltered || route.why === "other" ? undefined : await ruleAgainst(exec, family, asked, signal);
  if (rule !== undefined) return rule;
  if (route.why !== "refused" && !isFiltered) return route;
  const plain = isFiltered ? undefined : await routeFor(exec, family, { to, mark }, signal);
  if (plain?.is === "none") return { ...plain, why: "no_route", says: plain.why === "refused" ? "a blackhole route" : plain.says };
  if (from === undefined || by === undefined || family !== "IPv4") return route;
  const filters = await Promise.all(
    ["all", by].map(async (name) => Number((await read(`/proc/sys/net/ipv4/conf/${name}/rp_filter`)) ?? 0)),
  );
  const back = await routeFor(exec, family, { to: from }, signal);
  const isElsewhere = back.is === "none" || back.device !== by;
  if (!isFiltered && (Math.max(...filters) === 0 || !isElsewhere)) return route;
  return { ...route, why: "rp_filter", ...(back.is === "way" ? { elsewhere: back.device } : {}) };
}

/** The routing rule because of which there is no route: it refuses, or it sends what has this mark to a table without one. */
async function ruleAgainst(exec: Exec, family: IPFamily, asked: RouteQuestion, signal: AbortSignal): Promise<Route | undefined> {
  const { to, mark = 0 } = asked;
  const found = (await readRoutingRules(exec, family, signal)).filter(({ fits }) => fits(asked));
  const lost = (says: string, { text, priority }: (typeof found)[number]): Route => ({
    is: "none",
    why: "no_route",
    says,
    rule: { text, priority },
  });
  const marked = mark === 0 ? undefined : found.find(({ isByMark }) => isByMark);
  if (marked !== undefined && marked.does === "look up") {
    const [withMark, without] = await Promise.all([{ to, mark }, { to }].map((question) => routeFor(exec, family, question, signal)));
    if (withMark?.is === "none" && without?.is === "way")
      return lost(`packets with the mark 0x${mark.toString(16)} take a table without a way there`, marked);
  }
  const refusing = found.find(({ does }) => does === "refuse");
  // A route in a table that is asked before it would have been taken, so there is none.
  return refusing === undefined ? undefined : lost("a routing rule refuses it", refusing);
}
