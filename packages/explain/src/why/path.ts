import type { AskedPacket, Exec, Fate, FateEndpoint, Step, Survey } from "@turnout/core";
import type { Netlink } from "@turnout/host";
import type { HookedPacket } from "@turnout/host/rules";
import { answeredHere, arrivingQuestion, isAnsweredHere, notHere, openedQuestion } from "../causes/answered-here.ts";
import { bridgeCauses } from "../causes/bridge-causes.ts";
import { counterCauses, counterNotes, readCounters } from "../causes/counter-causes.ts";
import { flowCauses, readFlowTimeouts } from "../causes/flow-causes.ts";
import { readExternalTables, withServices } from "../tables/external-tables.ts";
import type { ExternalTables, ExternalTools, ReadFile } from "../tables/external-tables.ts";
import { hairpinCauses } from "../causes/hairpin.ts";
import { readHostRoutes } from "../readings/host-routes.ts";
import { leftToLocal } from "../causes/left-to-local.ts";
import { isListening } from "../ways/listeners.ts";
import { readLinks } from "../readings/links.ts";
import { listenerCauses } from "../causes/listener-causes.ts";
import { portNotes } from "../ways/lost-links.ts";
import { distinctRules, firstOfEach, shared } from "../causes/merged-causes.ts";
import { isAtInput, isBySocket } from "../ways/path-question.ts";
import type { PathQuestion } from "../ways/path-question.ts";
import { evaluateExternal, wayTo } from "../causes/evaluate-external.ts";
import type { Found } from "../causes/evaluate-external.ts";
import { proxyCauses } from "../causes/proxy-causes.ts";
import { takenCauses, unreachableCause } from "../causes/route-causes.ts";
import { routeFor } from "../readings/route.ts";
import type { Route } from "../readings/route.ts";
import { defaultNotes, senderCauses, wayCauses, waySteps } from "../causes/way-causes.ts";
import { readWayFacts } from "../ways/way-facts.ts";

/** What the host is read with. */
export interface PathTools extends ExternalTools {
  readonly netlink: Pick<Netlink, "addresses" | "addressesIn" | "flowsOfClient" | "nftTables">;
  /** Rules of other programs for packets of this family, which somebody has begun to read; absent: they are read when they are needed. */
  readonly external?: Promise<ExternalTables>;
}

/** Endpoints looked at; the others are like them. */
const ENDPOINTS_MAX = 3;

/**
 * Look at what else decides about a packet on this host: routes, kernel parameters, devices, connections the kernel remembers, rules of other
 * programs. Reads only.
 * @throws {ProxyError} what `ip` fails with.
 */
export async function surveyPath(tools: PathTools, question: PathQuestion, signal: AbortSignal): Promise<Survey> {
  if (!isAnsweredHere(question)) return await surveyWays(tools, question, signal);
  const { family, destination } = question.packet;
  // Both connections meet the same rules.
  const both = { ...tools, external: tools.external ?? readExternalTables(tools, family, signal) };
  const [arriving, opened, route] = await Promise.all([
    surveyWays(both, arrivingQuestion(question), signal),
    surveyWays(both, openedQuestion(question), signal),
    routeFor(tools.exec, family, { to: destination }, signal),
  ]);
  return route.is === "way" && route.isLocal ? answeredHere(arriving, opened) : notHere(arriving, question.packet);
}

/** Of packets that are forwarded, or end here. */
async function surveyWays(tools: PathTools, question: PathQuestion, signal: AbortSignal): Promise<Survey> {
  const { packet, fate } = question;
  const sent = await routeBefore(tools.exec, question, signal);
  if (sent?.is === "none" && sent.why !== "other") return await unreachable(tools.exec, packet, signal);
  const [read, flows, timeouts, counters, isQueueServed] = await Promise.all([
    tools.external ?? readExternalTables(tools, packet.family, signal),
    // No packet of a client whose socket is translated is for the Service's address.
    isBySocket(fate) ? [] : tools.netlink.flowsOfClient(packet.family, packet),
    readFlowTimeouts(tools.read),
    readCounters(tools.read),
    readQueues(tools.read),
  ]);
  const external = question.hasKubeChains ? read : await withServices(tools.exec, read, signal);
  const found: Found = { ...question, ...external, isQueueServed, sentBy: sent?.is === "way" && !sent.isLocal ? sent.device : undefined };
  const ways = await Promise.all(targetsOf(packet, fate).map((endpoint) => wayTo(tools, found, endpoint, signal)));
  // By which device packets come in matters where some were dropped for coming in by the wrong one.
  const facts = await readWayFacts(tools, packet, ways, { ofAllDevices: counters.reversePathDrops > 0 }, signal);
  const ruled = await Promise.all(ways.map((way) => evaluateExternal(tools.exec, found, way, facts, signal)));
  // What is no Service's goes on, by the same ways.
  const goesOn = fate.is === "forward" || fate.is === "pass";
  const externalOnes = shared(ruled.map(({ causes }) => causes));
  const isUntracked = fate.is === "forward" && fate.isHostAddress === true && externalOnes.some(({ id }) => id === "untracked");
  if (isUntracked || (await isListenerFirst(tools, question)))
    return leftToLocal(packet, await surveyWays(tools, { ...question, fate: { is: "pass" } }, signal), isUntracked);
  const isTranslated = fate.is === "forward" && !isBySocket(fate);
  const bridged = isTranslated
    ? firstOfEach(ways.map((way) => [...bridgeCauses(packet, way, facts), ...hairpinCauses(packet, way, facts)]))
    : [];
  const unheard = ways.map((way, index) => (ruled[index]?.isTranslated === true ? [] : listenerCauses(question, way)));
  const lostSender = senderCauses(packet, question.processFate ?? fate, ways);
  const taken = fate.is === "forward" ? takenCauses(ways, question.hostAddresses) : [];
  return {
    steps: goesOn ? waySteps(packet, ways).map((step) => ({ ...step, isOfWay: true })) : [],
    notes: goesOn
      ? [
          ...(lostSender.length > 0 ? [] : defaultNotes(packet, ways, question.podCIDRs ?? [])),
          ...portNotes(facts.lostLinks),
          ...counterNotes(packet, ways, facts, counters),
          ...new Set(ruled.flatMap(({ notes = [] }) => notes)),
        ]
      : [],
    causes: [
      ...(goesOn
        ? [
            ...firstOfEach(ways.map((way) => wayCauses(packet, way, facts))),
            ...lostSender,
            ...taken,
            ...bridged,
            ...externalOnes,
            ...firstOfEach(unheard),
          ]
        : externalOnes),
      ...flowCauses(question, flows, timeouts).filter(({ id }) => id !== "stale_flow" || !isAtInput(question)),
      ...proxyCauses(question, external),
      ...counterCauses(counters),
    ],
    unseen: external.unseen.map(({ what, because }) => `foreign rules (${what}): ${because}`),
    unjudged: goesOn ? distinctRules(ruled) : [],
  };
}

/** Programs at sockets and devices leave a cluster IP to a process of this host that listens at it. @source rule R-47 */
async function isListenerFirst({ read }: PathTools, { packet, fate, translatesAtDevices }: PathQuestion): Promise<boolean> {
  if (!translatesAtDevices || fate.is !== "forward" || fate.isClusterIP !== true) return false;
  return (await isListening(read, { ...packet, ip: packet.destination })) === true;
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

/** Which queues have a program that takes packets out of them. */
async function readQueues(read: ReadFile): Promise<HookedPacket["isQueueServed"]> {
  const text = await read("/proc/net/netfilter/nfnetlink_queue");
  if (text === undefined) return undefined;
  const served = new Set(text.split("\n").flatMap((line) => /^\s*(\d+)/.exec(line)?.[1] ?? []));
  return (queue) => served.has(String(queue));
}

/** A packet that is no Service's goes where it is addressed to. */
function targetsOf({ destination, port }: AskedPacket, fate: Fate): readonly FateEndpoint[] {
  if (fate.is !== "forward") return [{ ip: destination, port, nodeName: undefined, isLocal: false, masquerade: false }];
  // Of those here and those elsewhere some: their ways differ.
  const [here, there] = [true, false].map((isLocal) => fate.endpoints.filter((endpoint) => endpoint.isLocal === isLocal));
  return [...(here ?? []).slice(0, ENDPOINTS_MAX), ...(there ?? []).slice(0, ENDPOINTS_MAX)];
}
