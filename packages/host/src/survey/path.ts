import type { AskedPacket, Cause, Exec, Fate, FateEndpoint, Survey } from "@turnout/core";
import type { Netlink } from "../netlink/netlink.ts";
import { flowCauses, readFlowTimeouts } from "./flow-causes.ts";
import { counterCauses, readCounters } from "./counter-causes.ts";
import { foreignFindings } from "./foreign-causes.ts";
import type { ForeignFindings } from "./foreign-causes.ts";
import { readForeignTables } from "./foreign-tables.ts";
import type { ForeignTables, ReadFile } from "./foreign-tables.ts";
import { mtuCauses } from "./mtu-causes.ts";
import type { ForeignTable, HookedPacket } from "./rules/rule.ts";
import { readWay, readWayFacts } from "./way.ts";
import { defaultNotes, wayCauses, waySteps } from "./way-causes.ts";
import type { Way, WayFacts } from "./way.ts";

/** What the host is read with. */
export interface PathTools {
  readonly exec: Exec;
  readonly netlink: Pick<Netlink, "flowsOfClient">;
  readonly read: ReadFile;
}

/** A packet, and what is to become of it. */
export interface PathQuestion {
  readonly packet: AskedPacket;
  readonly fate: Fate;
  readonly hostAddresses: readonly string[];
  /** The backend's own rules are in kube-proxy's chains; elsewhere these are another proxy's. */
  readonly hasKubeChains: boolean;
  /** Of the packet mark; undefined: the backend asks for masquerade otherwise. */
  readonly masqueradeBit: number | undefined;
  /** The ranges of this node's pods; absent: nobody knows. */
  readonly podCIDRs?: readonly string[] | undefined;
}

/** Endpoints looked at; the others are like them. */
const ENDPOINTS_MAX = 3;
const SET_ROUNDS = 4;
const KUBE_SERVICES = "KUBE-SERVICES";

/**
 * Look at what else decides about a packet on this host: routes, kernel parameters, devices, connections the kernel remembers, rules of other
 * programs. Reads only.
 * @throws {ProxyError} what `ip` fails with.
 */
export async function surveyPath(tools: PathTools, question: PathQuestion, signal: AbortSignal): Promise<Survey> {
  const { packet, fate } = question;
  const endpoints = targetsOf(packet, fate);
  const [ways, foreign, flows, timeouts, counters, isQueueServed] = await Promise.all([
    Promise.all(endpoints.map((endpoint) => readWay(tools, packet, endpoint, signal))),
    readForeignTables(tools, packet.family, { readsServices: !question.hasKubeChains }, signal),
    tools.netlink.flowsOfClient(packet.family, packet),
    readFlowTimeouts(tools.read),
    readCounters(tools.read),
    readQueues(tools.read),
  ]);
  // By which device packets come in matters where some were dropped for coming in by the wrong one.
  const facts = await readWayFacts(tools, packet, ways, { ofAllDevices: counters.reversePathDrops > 0 }, signal);
  const ruled = await Promise.all(
    ways.map((way) => playForeign(tools.exec, foreign.tables, { ...question, isQueueServed }, way, facts, signal)),
  );
  // What is no Service's goes on, by the same ways.
  const goesOn = fate.is === "forward" || fate.is === "pass";
  const foreignOnes = shared(ruled.map(({ causes }) => causes));
  return {
    steps: goesOn ? waySteps(packet, ways) : [],
    notes: goesOn ? defaultNotes(packet, ways, question.podCIDRs ?? []) : [],
    causes: [
      ...(goesOn ? [...firstOfEach(ways.map((way) => wayCauses(packet, way, facts))), ...foreignOnes] : foreignOnes),
      ...flowCauses(packet, fate, flows, timeouts),
      ...proxyCauses(question, foreign),
      ...counterCauses(packet, ways, facts, counters),
    ],
    unseen: foreign.unseen,
    unjudged: goesOn ? distinctRules(ruled) : [],
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

/** What concerns several endpoints is said once. */
function shared(found: readonly (readonly Cause[])[]): readonly Cause[] {
  const told = new Map<string, Cause>();
  for (const cause of found.flat())
    if (!told.has(`${cause.id} ${cause.show?.join()}`)) told.set(`${cause.id} ${cause.show?.join()}`, cause);
  return [...told.values()];
}

/** Play the packet through the rules of others; sets they ask for are looked into as they are met. */
async function playForeign(
  exec: Exec,
  tables: readonly ForeignTable[],
  question: PathQuestion & { readonly isQueueServed: HookedPacket["isQueueServed"] },
  way: Way,
  facts: WayFacts,
  signal: AbortSignal,
): Promise<ForeignFindings> {
  const { packet, fate, hostAddresses, masqueradeBit, isQueueServed } = question;
  const held = new Map<string, boolean>();
  const outDevice = way.there.is === "way" && !way.there.isLocal ? way.there.device : "";
  const backDevice = way.back?.is === "way" && !way.back.isLocal ? way.back.device : "";
  for (let round = 0; ; round++) {
    const asked = new Map<string, readonly string[]>();
    const isInSet: HookedPacket["isInSet"] = (set, address, port) => {
      const member = port === undefined ? address : `${address},${packet.protocol.toLowerCase()}:${port}`;
      const key = `${set} ${member}`;
      if (!held.has(key)) asked.set(key, [set, member]);
      return held.get(key);
    };
    const isLocal = (address: string): boolean => hostAddresses.includes(address) || address.startsWith("127.") || address === "::1";
    const markBit = masqueradeBit === undefined ? 0 : 2 ** masqueradeBit;
    const hooked = {
      packet,
      endpoint: way.endpoint,
      outDevice,
      backDevice,
      isTranslated: fate.is === "forward",
      markBit,
      isLocal,
      isInSet,
      ...(isQueueServed === undefined ? {} : { isQueueServed }),
    };
    const { causes, unjudged } = foreignFindings(tables, hooked);
    const narrow = mtuCauses(tables, question, way, facts, { isLocal, isInSet });
    if (asked.size === 0 || round === SET_ROUNDS) return { causes: [...causes, ...narrow], unjudged };
    await Promise.all(
      [...asked].map(async ([key, [set = "", member = ""]]) => {
        const { code } = await exec.run("ipset", ["test", set, member], { signal });
        held.set(key, code === 0);
      }),
    );
  }
}
