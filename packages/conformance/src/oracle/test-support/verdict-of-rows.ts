import { cidrContains, hostPort, nodePortAddresses, parseCIDR, parseIP } from "@turnout/core";
import type { Capabilities, Destination, NodeContext, Rule, ServicePort, Variants } from "@turnout/core";
import type { AllowedEndpoint, Packet } from "../packet.ts";

/** What a perfect backend would do to a packet, given the core's rows and nothing else. */
export interface RowsVerdict {
  readonly is: "forward" | "reject" | "drop" | "pass";
  readonly answers: readonly AllowedEndpoint[];
}

/** Rows with what else a backend knows. */
export interface RowsWorld {
  readonly rows: readonly ServicePort[];
  readonly node: NodeContext;
  readonly hostAddresses: readonly string[];
  readonly nodePortAddressesDefault: readonly string[];
  readonly capabilities: Capabilities;
  readonly variants: Variants;
}

interface Hit {
  readonly row: ServicePort;
  readonly destination: Destination;
}

/** Interpret the core's rows, rule by rule: the other side of the oracle's trial. */
export function verdictOfRows(world: RowsWorld, packet: Packet): RowsVerdict {
  const verdict = verdictOfRules(world, packet);
  const { refuse, drop } = world.capabilities;
  if (refuse === true || (verdict.is !== "reject" && verdict.is !== "drop")) return verdict;
  return just(drop === true ? "drop" : "pass");
}

function verdictOfRules(world: RowsWorld, packet: Packet): RowsVerdict {
  const { capabilities, variants, hostAddresses } = world;
  if (packet.link === "" && capabilities.hostOrigin !== true) return just("pass");
  const hit = hitOf(world, packet);
  const verdict = hit === undefined ? verdictOnMiss(world, packet) : applyRules(world, packet, hit);
  if (verdict.is === "drop" && capabilities.drop !== true && packet.protocol !== "UDP") return just("reject");
  const kind = hit?.destination.kind;
  const isHooked = packet.link !== "" || hostAddresses.includes(packet.destination) || kind === undefined || kind === "clusterIP";
  const ranges = hit?.destination.sourceRanges;
  const isRefused = verdict.is === "reject" || (verdict.is === "drop" && (ranges === undefined || isWithin(packet.source, ranges)));
  return isRefused && !isHooked && !variants.rejectFromHost ? just("pass") : verdict;
}

/** The destination that holds for a packet: its address first, then the node port. */
export function hitOf(
  world: RowsWorld,
  { destination, port, protocol }: Pick<Packet, "destination" | "port" | "protocol">,
): Hit | undefined {
  const find = (address: string): Hit | undefined => {
    for (const row of world.rows) {
      const found = row.destinations.find((candidate) => candidate.address === address && candidate.port === port);
      if (row.name.protocol === protocol && found !== undefined) return { row, destination: found };
    }
    return undefined;
  };
  return find(destination) ?? (answersNodePorts(world, destination) ? find("") : undefined);
}

function answersNodePorts({ node, hostAddresses, nodePortAddressesDefault, variants }: RowsWorld, address: string): boolean {
  const wanted = node.settings.nodePortAddresses ?? nodePortAddressesDefault;
  const chosen = nodePortAddresses({ wanted, family: node.family, primary: node.addresses[0], hostAddresses });
  const isOff = isLoopback(address) && variants.nodePortsOnLoopback !== node.family;
  return hostAddresses.includes(address) && !isOff && (chosen === "all" || variants.nodePortScope === "all" || chosen.includes(address));
}

function applyRules({ node, hostAddresses, capabilities, variants }: RowsWorld, packet: Packet, { row, destination }: Hit): RowsVerdict {
  const fits = ({ from }: Rule): boolean => {
    const isPod = (): boolean => isFromPod(node, packet, capabilities.clientAddress === true);
    switch (from) {
      case "anyone":
        return true;
      case "localPod":
        return isPod();
      case "offCluster":
        return !isPod();
      case "thisHost":
        return hostAddresses.includes(packet.source) || isLoopback(packet.source);
      case "outsideSourceRanges":
        return !isWithin(packet.source, destination.sourceRanges ?? []);
    }
  };
  const rule = destination.rules.find(fits);
  if (rule === undefined) throw new Error(`${row.key}: no rule fits`);
  if (rule.from === "outsideSourceRanges" && variants.blockedWithoutEndpoints === "reject" && destination.rules[1]?.to === "reject")
    return just("reject");
  if (rule.to === "reject" || rule.to === "drop") return just(rule.to);
  const isReached = (ip: string): boolean => capabilities.hostEndpoints === true || ![...hostAddresses, ...node.addresses].includes(ip);
  const pool = row[rule.to]
    .map((index) => row.endpoints[index])
    .filter((endpoint) => endpoint !== undefined)
    .filter(({ ip }) => isReached(ip));
  const answers = pool.map(({ ip, port }) => ({
    endpoint: hostPort(ip, port),
    masquerade: rule.masquerade || capabilities.clientAddress !== true || (capabilities.hairpin === true && ip === packet.source),
  }));
  if (answers.length === 0 && capabilities.hostEndpoints !== true) return just("reject");
  if (answers.length === 0) throw new Error(`${row.key}: a rule points to an empty pool`);
  return { is: "forward", answers };
}

function verdictOnMiss(world: RowsWorld, { destination, port, protocol }: Packet): RowsVerdict {
  const { rows, node, hostAddresses, variants } = world;
  if (hostAddresses.includes(destination)) {
    if (variants.nodePortRejectScope === "nodePortAddresses") return just("pass");
    const candidates = rows.filter((row) => row.name.protocol === protocol).flatMap((row) => row.destinations);
    const last = candidates.find(({ kind, port: number }) => kind === "nodePort" && number === port)?.rules.at(-1);
    return just(last?.to === "reject" || last?.to === "drop" ? last.to : "pass");
  }
  const kinds = new Set(rows.flatMap((row) => row.destinations.filter(({ address }) => address === destination).map(({ kind }) => kind)));
  if (kinds.has("clusterIP")) return just(variants.undefinedClusterIPPort);
  if (kinds.size > 0) return just(variants.undefinedExternalPort);
  return just(isWithin(destination, node.serviceCIDRs) ? variants.unallocatedClusterIP : "pass");
}

function isFromPod({ detector, podCIDRs }: NodeContext, { source, link }: Packet, seesLinks: boolean): boolean {
  if (detector === undefined) throw new Error("a rule asks for pods where they can't be told");
  if (detector.by === "cidr") return isWithin(source, detector.cidrs);
  if (!seesLinks) return isWithin(source, podCIDRs.slice(0, 1));
  return detector.by === "interface" ? link === detector.name : link.startsWith(detector.prefix);
}

function isWithin(address: string, cidrs: readonly string[]): boolean {
  const ip = parseIP(address);
  return cidrs.map((text) => parseCIDR(text)).some((cidr) => ip !== undefined && cidr !== undefined && cidrContains(cidr, ip));
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.");
}

function just(is: "reject" | "drop" | "pass"): RowsVerdict {
  return { is, answers: [] };
}
