import { hostPort } from "@turnout/core";
import type { AskedPacket, Exec, FateEndpoint, IPFamily, Cause } from "@turnout/core";
import { isAddressIn, evaluateChain, isOfBridges } from "@turnout/host/rules";
import type { HookedPacket, RunResult, ExternalChain, ExternalTable } from "@turnout/host/rules";
import { externalFindings, routedMark } from "./external-causes.ts";
import type { ExternalFindings } from "./external-causes.ts";
import { isProxyChain } from "../tables/external-tables.ts";
import type { ExternalTables } from "../tables/external-tables.ts";
import type { HookedWay } from "../ways/hooked-way.ts";
import { isAtInput, isBySocket } from "../ways/path-question.ts";
import type { PathQuestion } from "../ways/path-question.ts";
import { isByDefault, routeFor } from "../readings/route.ts";
import type { Route } from "../readings/route.ts";
import { readBalancedWay, readWay } from "../ways/way.ts";
import type { Way, WayTools } from "../ways/way.ts";
import type { WayFacts } from "../ways/way-facts.ts";
import { orDelete, ruleText, showCommand } from "./drop-causes.ts";
import type { Link } from "../readings/links.ts";

/** More rounds of sets and routes that rules ask for are not looked up. */
const SET_ROUNDS = 4;

/** What is read before ways are looked up. */
export interface Found extends PathQuestion, ExternalTables {
  readonly isQueueServed: HookedPacket["isQueueServed"];
  /** The device to the Service's address; undefined: nothing is sent there, or it is this host's own. */
  readonly sentBy: string | undefined;
}

/** Look up the way to one endpoint, with the mark that the packet has there. */
export async function wayTo(tools: WayTools, found: Found, endpoint: FateEndpoint, signal: AbortSignal): Promise<Way> {
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
    processFate,
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
    isForProxy: processFate !== undefined,
    hasKubeChains,
    isServedAtInput: isAtInput({ fate, servesAtInput }),
    isTranslatedBefore: translatesAtDevices,
    isAnsweredHere: endpoint.isLocal || isLocal(asked.source) || podCIDRs.some((range) => isAddressIn(asked.source, range) === true),
    markBit: masqueradeBit === undefined ? 0 : 2 ** masqueradeBit,
    isLocal,
    ...(isQueueServed === undefined ? {} : { isQueueServed }),
  };
}

/** This host's own route to an address, and whether none but the default one fits. */
async function ownRoute(exec: Exec, family: IPFamily, to: string, signal: AbortSignal): Promise<Route> {
  const route = await routeFor(exec, family, { to }, signal);
  return route.is === "way" && !route.isLocal ? { ...route, isDefault: await isByDefault(exec, family, { to }, signal) } : route;
}

/** Play the packet through the rules of others; sets they ask for are looked into as they are met. */
export async function evaluateExternal(
  exec: Exec,
  found: Found,
  way: Way,
  facts: WayFacts,
  signal: AbortSignal,
): Promise<ExternalFindings> {
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
    const isInSet: HookedPacket["isInSet"] = (set, seen, [end, portEnd]) => {
      const address = end === "src" ? seen.source : seen.destination;
      if (address === undefined) return undefined;
      const port = portEnd === undefined ? undefined : end === "src" ? seen.sourcePort : seen.destinationPort;
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
    const { causes, ...reported } = externalFindings(tables, hooked);
    const narrow = mtuCauses(tables, found, way, facts, { isLocal: hooked.isLocal, isInSet });
    if ((asked.size === 0 && sought.size === 0) || round === SET_ROUNDS) return { causes: [...causes, ...narrow], ...reported };
    for (const address of sought) routes.set(address, await ownRoute(exec, packet.family, address, signal));
    await Promise.all(
      [...asked].map(async ([key, [set = "", member = ""]]) => {
        const { code } = await exec.run("ipset", ["test", set, member], { signal });
        held.set(key, code === 0);
      }),
    );
  }
}

/** Say that packets get lost for their size. A narrower device behind a wider one is no fault, as long as the sender gets to hear of it. Pure. */
function mtuCauses(
  tables: readonly ExternalTable[],
  { packet, hostAddresses }: { readonly packet: AskedPacket; readonly hostAddresses: readonly string[] },
  { there, endpoint }: Way,
  { links }: WayFacts,
  sets: Pick<HookedPacket, "isLocal" | "isInSet">,
): readonly Cause[] {
  if (there.is !== "way" || packet.device === "") return [];
  const [wide, narrow] = [links.get(packet.device), links.get(there.device)];
  if (wide === undefined || narrow === undefined || narrow.mtu >= wide.mtu) return [];
  const message: HookedPacket = {
    family: packet.family,
    protocol: packet.family === "IPv4" ? "icmp" : "icmpv6",
    source: hostAddresses[0] ?? "",
    destination: packet.source,
    sourcePort: undefined,
    destinationPort: undefined,
    inDevice: "",
    outDevice: packet.device,
    state: "related",
    isTranslated: true,
    isAnsweredThere: undefined,
    mark: 0,
    ...sets,
  };
  for (const table of tables.filter((one) => !isOfBridges(one))) {
    for (const chain of table.chains.values()) {
      const { hook } = chain;
      // Of a connection that is known, no nat chain is asked.
      if ((hook?.at !== "output" && hook?.at !== "postrouting") || hook.type === "nat") continue;
      const ran = evaluateChain(table, chain, message, (name) => (isProxyChain(name) ? "skip" : undefined));
      if (ran.is === "pass") continue;
      return [silentCause(packet, { wide, narrow }, hostPort(endpoint.ip, endpoint.port), table, chain, ran)];
    }
  }
  return [];
}

function silentCause(
  { family }: AskedPacket,
  { wide, narrow }: { readonly wide: Link; readonly narrow: Link },
  to: string,
  table: ExternalTable,
  base: ExternalChain,
  { chain = base.name, rule }: RunResult,
): Cause {
  const needed = family === "IPv4" ? "fragmentation needed" : "packet too big";
  const type = family === "IPv4" ? "icmp type destination-unreachable" : "icmpv6 type packet-too-big";
  const [option, name] =
    family === "IPv4" ? ["-p icmp --icmp-type", "fragmentation-needed"] : ["-p icmpv6 --icmpv6-type", "packet-too-big"];
  const accept =
    table.tool === "nft"
      ? `nft insert rule ${table.place} ${base.name} ${type} accept`
      : `${table.tool} -t ${table.place} -I ${base.name} ${option} ${name} -j ACCEPT`;
  return {
    id: "mtu",
    says: `packets of more than ${narrow.mtu} bytes don't fit ${narrow.name} on the way to ${to} (${wide.name} takes ${wide.mtu}), and ${table.name}, chain ${chain}, drops the ICMP messages that would tell the client${ruleText(rule?.text)}: connections open, then hang`,
    show: [showCommand(table, chain), `ip link show ${narrow.name}`, `ip link show ${wide.name}`],
    fix: `give both networks the same MTU, or let ICMP through (${needed})${rule === undefined ? "" : " before that rule"}`,
    commands: [accept],
    ...orDelete(rule),
  };
}
