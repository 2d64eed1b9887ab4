import type { AskedPacket, Cause, Exec, Fate, FateEndpoint, IPFamily, Step, Survey } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";
import { bridgeCauses } from "./bridge-causes.ts";
import { portNotes } from "./lost-links.ts";
import { flowCauses, readFlowTimeouts } from "./flow-causes.ts";
import { counterCauses, readCounters } from "./counter-causes.ts";
import { foreignFindings, routedMark } from "./foreign-causes.ts";
import type { ForeignFindings } from "./foreign-causes.ts";
import type { HookedWay } from "./hooked-way.ts";
import { KUBE_SERVICES, readForeignTables, withServices } from "./foreign-tables.ts";
import type { ForeignTables, ForeignTools, ReadFile } from "./foreign-tables.ts";
import { readHostRoutes } from "./host-routes.ts";
import { readLinks } from "./links.ts";
import { listenerCauses } from "./listener-causes.ts";
import { mtuCauses } from "./mtu-causes.ts";
import { isByDefault, routeFor } from "./route.ts";
import { takenCauses, unreachableCause } from "./route-causes.ts";
import type { Route } from "./route.ts";
import type { HookedPacket } from "./rules/rule.ts";
import { isAddressIn } from "./rules/values.ts";
import { readWayFacts } from "./way-facts.ts";
import { readBalancedWay, readWay } from "./way.ts";
import { defaultNotes, wayCauses, waySteps } from "./way-causes.ts";
import type { WayFacts } from "./way-facts.ts";
import type { Way } from "./way.ts";

/** What the host is read with. */
export interface PathTools extends ForeignTools {
  readonly netlink: Pick<Netlink, "addresses" | "addressesIn" | "flowsOfClient" | "nftTables">;
  /** Rules of other programs for packets of this family, which somebody has begun to read; absent: they are read when they are needed. */
  readonly foreign?: Promise<ForeignTables>;
}

/** A packet, and what is to become of it. */
export interface PathQuestion {
  readonly packet: AskedPacket;
  readonly fate: Fate;
  readonly hostAddresses: readonly string[];
  /** The backend's own rules are in kube-proxy's chains; elsewhere these are another proxy's. */
  readonly hasKubeChains: boolean;
  /** IPVS serves Services: their addresses are this host's own, and what comes in for them is sent on as if this host sent it. */
  readonly servesAtInput: boolean;
  /** Programs at devices have told conntrack what becomes of a packet before any chain sees it. */
  readonly translatesAtDevices: boolean;
  /** Of the packet mark; undefined: the backend asks for masquerade otherwise. */
  readonly masqueradeBit: number | undefined;
  /** The ranges of this node's pods; absent: nobody knows. */
  readonly podCIDRs?: readonly string[] | undefined;
}

/** Endpoints looked at; the others are like them. */
const ENDPOINTS_MAX = 3;
const SET_ROUNDS = 4;

/**
 * Look at what else decides about a packet on this host: routes, kernel parameters, devices, connections the kernel remembers, rules of other
 * programs. Reads only.
 * @throws {ProxyError} what `ip` fails with.
 */
export async function surveyPath(tools: PathTools, question: PathQuestion, signal: AbortSignal): Promise<Survey> {
  const { packet, fate } = question;
  const sent = await routeBefore(tools.exec, question, signal);
  if (sent?.is === "none" && sent.why !== "other") return await unreachable(tools.exec, packet, signal);
  const [read, flows, timeouts, counters, isQueueServed] = await Promise.all([
    tools.foreign ?? readForeignTables(tools, packet.family, signal),
    // No packet of a client whose socket is translated is for the Service's address.
    isBySocket(fate) ? [] : tools.netlink.flowsOfClient(packet.family, packet),
    readFlowTimeouts(tools.read),
    readCounters(tools.read),
    readQueues(tools.read),
  ]);
  const foreign = question.hasKubeChains ? read : await withServices(tools.exec, read, signal);
  const found: Found = { ...question, ...foreign, isQueueServed, sentBy: sent?.is === "way" && !sent.isLocal ? sent.device : undefined };
  const ways = await Promise.all(targetsOf(packet, fate).map((endpoint) => wayTo(tools, found, endpoint, signal)));
  // By which device packets come in matters where some were dropped for coming in by the wrong one.
  const facts = await readWayFacts(tools, packet, ways, { ofAllDevices: counters.reversePathDrops > 0 }, signal);
  const ruled = await Promise.all(ways.map((way) => playForeign(tools.exec, found, way, facts, signal)));
  // What is no Service's goes on, by the same ways.
  const goesOn = fate.is === "forward" || fate.is === "pass";
  const foreignOnes = shared(ruled.map(({ causes }) => causes));
  if (fate.is === "forward" && fate.isHostAddress === true && foreignOnes.some(({ id }) => id === "untracked"))
    return answeredHere(packet, await surveyPath(tools, { ...question, fate: { is: "pass" } }, signal));
  const isTranslated = fate.is === "forward" && !isBySocket(fate);
  const bridged = isTranslated ? firstOfEach(ways.map((way) => bridgeCauses(packet, way, facts))) : [];
  const unheard = ways.map((way, index) => (ruled[index]?.isTranslated === true ? [] : listenerCauses(packet, fate, way)));
  const taken = fate.is === "forward" ? takenCauses(ways, question.hostAddresses) : [];
  return {
    steps: goesOn ? waySteps(packet, ways).map((step) => ({ ...step, isOfWay: true })) : [],
    notes: goesOn
      ? [
          ...defaultNotes(packet, ways, question.podCIDRs ?? []),
          ...portNotes(facts.lostLinks),
          ...new Set(ruled.flatMap(({ notes = [] }) => notes)),
        ]
      : [],
    causes: [
      ...(goesOn
        ? [...firstOfEach(ways.map((way) => wayCauses(packet, way, facts))), ...taken, ...bridged, ...foreignOnes, ...firstOfEach(unheard)]
        : foreignOnes),
      ...flowCauses(packet, fate, flows, timeouts).filter(({ id }) => id !== "stale_flow" || !isAtInput(question)),
      ...proxyCauses(question, foreign),
      ...counterCauses(packet, ways, facts, counters),
    ],
    unseen: foreign.unseen,
    unjudged: goesOn ? distinctRules(ruled) : [],
  };
}

/** IPVS remembers its connections itself, and conntrack follows. */
function isAtInput({ fate, servesAtInput }: Pick<PathQuestion, "fate" | "servesAtInput">): boolean {
  return fate.is === "forward" && servesAtInput;
}

function isBySocket(fate: Fate): boolean {
  return fate.is === "forward" && fate.at === "socket";
}

/** The route by which a program of this host connects to the Service's address; undefined: none does. At a socket the endpoint is put in its place first. */
async function routeBefore(exec: Exec, { packet, fate }: PathQuestion, signal: AbortSignal): Promise<Route | undefined> {
  if (packet.device !== "" || fate.is !== "forward" || isBySocket(fate)) return undefined;
  return await routeFor(exec, packet.family, { to: packet.destination }, signal);
}

async function unreachable(exec: Exec, packet: AskedPacket, signal: AbortSignal): Promise<Survey> {
  const [routes, links] = await Promise.all([readHostRoutes(exec, packet.family, signal), readLinks(exec, signal)]);
  const up = [...links.values()].filter(({ name, isUp, hasCarrier }) => name !== "lo" && isUp && hasCarrier).map(({ name }) => name);
  const steps: readonly Step[] = [{ says: `but before that, connect() needs a route to ${packet.destination}, and this node has none` }];
  return { steps, causes: [unreachableCause(packet, routes, up)], unseen: [] };
}

/** Untracked at an address that is this host's too: so NodeLocal DNSCache takes over a cluster IP. */
function answeredHere({ destination, port, protocol }: AskedPacket, survey: Survey): Survey {
  const where = `${destination} is an address of this node too, and is untracked on purpose`;
  const says = `${where}: a local program (NodeLocal DNS) answers`;
  const listeners = `ss -${protocol === "UDP" ? "u" : "t"}lnp 'sport = :${port}'`;
  const silent = {
    says: `${where}, so that a local program (NodeLocal DNS) answers, and none listens there`,
    show: [listeners],
    mend: "see why that program ended, and start it again; or take the address and the rules about tracking away: then the Service answers",
  };
  return {
    ...survey,
    steps: [{ says }, ...survey.steps],
    notes: [`${says}; ask whether it runs: ${listeners}`, ...(survey.notes ?? [])],
    causes: survey.causes.map((cause) => (cause.id === "unanswered" ? { ...cause, ...silent } : cause)),
  };
}

/** What is read before ways are looked up. */
interface Found extends PathQuestion, ForeignTables {
  readonly isQueueServed: HookedPacket["isQueueServed"];
  /** The device to the Service's address; undefined: nothing is sent there, or it is this host's own. */
  readonly sentBy: string | undefined;
}

/** Look up the way to one endpoint, with the mark that the packet has there. */
async function wayTo(tools: PathTools, found: Found, endpoint: FateEndpoint, signal: AbortSignal): Promise<Way> {
  const { packet, fate, tables } = found;
  const unknown = { outDevice: "", backDevice: "", isInSet: () => undefined };
  const mark = routedMark(tables, hookedWay(found, packet, { endpoint, ...unknown }));
  if (isAtInput(found)) return await readBalancedWay(tools, packet, endpoint, mark, signal);
  return await readWay(tools, packet, endpoint, { mark, isSourceOpen: isBySocket(fate) && packet.device === "" }, signal);
}

/** A packet's way as rules of others see it. */
function hookedWay(
  {
    packet: asked,
    fate,
    hostAddresses,
    masqueradeBit,
    hasKubeChains,
    servesAtInput,
    translatesAtDevices,
    podCIDRs = [],
    isQueueServed,
    sentBy,
  }: Found,
  packet: AskedPacket,
  way: Pick<HookedWay, "endpoint" | "outDevice" | "backDevice" | "isLost" | "isInSet" | "routeOf" | "isBridge">,
): HookedWay {
  const { endpoint } = way;
  const isAtSocket = isBySocket(fate);
  const isLocal = (address: string): boolean => hostAddresses.includes(address) || address.startsWith("127.") || address === "::1";
  return {
    ...way,
    packet: isAtSocket ? { ...packet, destination: endpoint.ip, port: endpoint.port } : packet,
    ...(fate.is === "forward" && !isAtSocket ? { isTranslated: true, sentBy: sentBy ?? "" } : { isTranslated: false }),
    isBySocket: isAtSocket,
    hasKubeChains,
    isServedAtInput: isAtInput({ fate, servesAtInput }),
    isTranslatedBefore: translatesAtDevices,
    isAnsweredHere: endpoint.isLocal || isLocal(asked.source) || podCIDRs.some((range) => isAddressIn(asked.source, range) === true),
    markBit: masqueradeBit === undefined ? 0 : 2 ** masqueradeBit,
    isLocal,
    ...(isQueueServed === undefined ? {} : { isQueueServed }),
  };
}

/** Which queues have a program that takes packets out of them. */
async function readQueues(read: ReadFile): Promise<HookedPacket["isQueueServed"]> {
  const text = await read("/proc/net/netfilter/nfnetlink_queue");
  if (text === undefined) return undefined;
  const served = new Set(text.split("\n").flatMap((line) => /^\s*(\d+)/.exec(line)?.[1] ?? []));
  return (queue) => served.has(String(queue));
}

/** kube-proxy's chains serve the address beside the backend's own rules. */
function proxyCauses({ packet, hasKubeChains }: PathQuestion, { tables, proxyTables }: ForeignTables): readonly Cause[] {
  const mend = "see that only one proxy runs here, then restart this one: it removes what others left (unless told --keep-other-rules)";
  const [table] = hasKubeChains ? proxyTables : [];
  if (table !== undefined)
    return [
      {
        id: "two_proxies",
        says: `another service proxy has rules in force on this node: table ${table}`,
        show: [`nft -t list table ${table}`],
        mend,
      },
    ];
  const nat = tables.find(({ place, chains }) => place === "nat" && chains.has(KUBE_SERVICES));
  const isServed = nat?.chains.get(KUBE_SERVICES)?.rules.some(({ text }) => text.includes(` ${packet.destination}/`)) ?? false;
  if (hasKubeChains || nat === undefined || !isServed) return [];
  const says = `another service proxy serves this address, too: chain ${KUBE_SERVICES} of the ${nat.name}`;
  return [{ id: "two_proxies", says, show: [`${nat.tool} -t nat -S ${KUBE_SERVICES} | grep ${packet.destination}`], mend }];
}

/** A packet that is no Service's goes where it is addressed to. */
function targetsOf({ destination, port }: AskedPacket, fate: Fate): readonly FateEndpoint[] {
  if (fate.is !== "forward") return [{ ip: destination, port, nodeName: undefined, isLocal: false, masquerade: false }];
  // Of those here and those elsewhere some: their ways differ.
  const [here, there] = [true, false].map((isLocal) => fate.endpoints.filter((endpoint) => endpoint.isLocal === isLocal));
  return [...(here ?? []).slice(0, ENDPOINTS_MAX), ...(there ?? []).slice(0, ENDPOINTS_MAX)];
}

/** What is wrong alike on the ways to several endpoints is said of the first. */
function firstOfEach(found: readonly (readonly Cause[])[]): readonly Cause[] {
  const byId = Map.groupBy(found.flat(), ({ id }) => id);
  return [...byId.values()].flatMap(([first, ...others]) => {
    const more = new Set(others.map(({ says }) => says).filter((says) => says !== first?.says)).size;
    return first === undefined ? [] : [more === 0 ? first : { ...first, says: `${first.says} (and ${more} more like it)` }];
  });
}

/** A rule that several packets meet is named once. */
function distinctRules(found: readonly ForeignFindings[]): ForeignFindings["unjudged"] {
  const all = found.flatMap(({ unjudged }) => unjudged);
  return [...new Map(all.map((rule) => [`${rule.says} ${rule.rule}`, rule])).values()];
}

/** What concerns several endpoints is said once, with what lets each of them through. */
function shared(found: readonly (readonly Cause[])[]): readonly Cause[] {
  const told = new Map<string, Cause>();
  for (const cause of found.flat()) {
    const key = `${cause.id} ${cause.show?.join()}`;
    const first = told.get(key) ?? cause;
    const commands = new Set([...(first.commands ?? []), ...(cause.commands ?? [])]);
    told.set(key, commands.size === 0 ? first : { ...first, commands: [...commands] });
  }
  return [...told.values()];
}

/** This host's own route to an address, and whether none but the default one fits. */
async function ownRoute(exec: Exec, family: IPFamily, to: string, signal: AbortSignal): Promise<Route> {
  const route = await routeFor(exec, family, { to }, signal);
  return route.is === "way" && !route.isLocal ? { ...route, isDefault: await isByDefault(exec, family, { to }, signal) } : route;
}

/** Play the packet through the rules of others; sets they ask for are looked into as they are met. */
async function playForeign(exec: Exec, found: Found, way: Way, facts: WayFacts, signal: AbortSignal): Promise<ForeignFindings> {
  const { tables } = found;
  const held = new Map<string, boolean>();
  const routes = new Map<string, Route>();
  const isBridge = (device: string): boolean => facts.links.get(device)?.bridge !== undefined;
  const outDevice = way.there.is === "way" && !way.there.isLocal ? way.there.device : "";
  const backDevice = way.back?.is === "way" && !way.back.isLocal ? way.back.device : "";
  // Where the kernel chooses the source after the endpoint, the route says which.
  const source = way.asked.from === undefined && way.there.is === "way" ? way.there.source : undefined;
  const packet = found.packet.device === "" && source !== undefined ? { ...found.packet, source } : found.packet;
  for (let round = 0; ; round++) {
    const asked = new Map<string, readonly string[]>();
    const sought = new Set<string>();
    const routeOf = (address: string): Route | undefined => {
      if (!routes.has(address)) sought.add(address);
      return routes.get(address);
    };
    const isInSet: HookedPacket["isInSet"] = (set, address, port) => {
      const member = port === undefined ? address : `${address},${packet.protocol.toLowerCase()}:${port}`;
      const key = `${set} ${member}`;
      if (!held.has(key)) asked.set(key, [set, member]);
      return held.get(key);
    };
    const hooked = hookedWay(found, packet, {
      endpoint: way.endpoint,
      outDevice,
      backDevice,
      isLost: way.there.is === "none",
      isInSet,
      routeOf,
      isBridge,
    });
    const { causes, ...told } = foreignFindings(tables, hooked);
    const narrow = mtuCauses(tables, found, way, facts, { isLocal: hooked.isLocal, isInSet });
    if ((asked.size === 0 && sought.size === 0) || round === SET_ROUNDS) return { causes: [...causes, ...narrow], ...told };
    for (const address of sought) routes.set(address, await ownRoute(exec, packet.family, address, signal));
    await Promise.all(
      [...asked].map(async ([key, [set = "", member = ""]]) => {
        const { code } = await exec.run("ipset", ["test", set, member], { signal });
        held.set(key, code === 0);
      }),
    );
  }
}
