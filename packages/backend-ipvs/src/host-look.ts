import { ProxyError } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import { readParameters } from "@turnout/host";
import type { OwnAddresses } from "@turnout/host";
import type { IpsetTool } from "@turnout/host/ipset";
import { hidesRules } from "@turnout/host/iptables";
import type { IptablesTool } from "@turnout/host/iptables";
import type { TableName } from "@turnout/host/iptables/text";
import { partOf } from "@turnout/host/ipvs/model";
import { IPVS_PARAMETER, parametersOf } from "./layout.ts";
import { DEVICE } from "./names.ts";
import type { VirtualAddress } from "./objects.ts";
import { ownership, ownSets } from "./observe.ts";
import type { Look } from "./observe.ts";
import type { IpvsOptions } from "./options.ts";
import { largerSet } from "./sets.ts";
import type { Touched } from "./watching/fingerprints.ts";
import type { IpvsWorld } from "./world.ts";

/** One family's hands on the host. */
export interface HostParts {
  readonly family: IPFamily;
  readonly world: IpvsWorld;
  readonly options: IpvsOptions;
  readonly sets: IpsetTool;
  readonly addresses: OwnAddresses;
}

/** What iptables has where nothing of ours can be. */
export const NO_RULES: Look["saved"] = { filter: "", nat: "", mangle: "" };
/** A host on which nothing of ours is. */
export const NOTHING: Look = {
  saved: NO_RULES,
  sets: new Map(),
  listing: { virtualServers: [], firewallMarks: [] },
  bound: [],
  hostAddresses: [],
  parameters: new Map(),
  timeouts: undefined,
};

/** Look at the host, with its rules of one variant of iptables; of virtual servers at those that `only` names. @throws {ProxyError} where a tool or IPVS is missing. */
export async function lookAtHost(
  parts: HostParts,
  tool: IptablesTool,
  signal: AbortSignal,
  only?: (server: VirtualAddress) => boolean,
): Promise<Look> {
  const { family, world, sets } = parts;
  return {
    saved: await tool.saveAll(signal),
    sets: await sets.save(ownSets(family), signal),
    listing: await world.ipvs.list(family, only),
    timeouts: await world.ipvs.timeouts(),
    ...(await ofFamily(parts, signal)),
  };
}

/**
 * Look at some of it: at tables, parts of the virtual servers, sets and addresses.
 *
 * Edges: of sets without members nothing is read. All sets are, where nothing else tells whose a virtual server is.
 * @throws {ProxyError} as {@link lookAtHost}.
 */
export async function lookAtParts(
  { family, world, sets, addresses, options }: HostParts,
  tool: Pick<IptablesTool, "save">,
  touched: Touched,
  signal: AbortSignal,
): Promise<Look> {
  const { parts } = touched;
  const saved: Record<TableName, string> = { ...NO_RULES };
  for (const table of touched.tables) saved[table] = await tool.save(table, signal);
  const look: Look = {
    ...NOTHING,
    saved,
    listing: parts.size === 0 ? NOTHING.listing : await world.ipvs.list(family, (server) => parts.has(partOf(server))),
    bound: parts.size > 0 || touched.addresses ? await addresses.list() : [],
  };
  const isOurs = ownership(look, family, options.excludeCIDRs);
  const isPlain = look.listing.virtualServers.every(isOurs);
  const filled = [...touched.sets].flatMap(([name, hasMembers]) => (hasMembers === true ? [name] : []));
  const wanted = isPlain ? filled : ownSets(family);
  return {
    ...look,
    sets: wanted.length === 0 ? look.sets : await sets.save(wanted, signal),
    hostAddresses: isPlain ? [] : await othersAddresses(world, family),
  };
}

/** Look at all but the rules. What isn't installed or loaded made nothing of ours. */
export async function lookAtWhatIsLeft(parts: HostParts, signal: AbortSignal): Promise<Look> {
  const { world, family, sets } = parts;
  const rest = await ofFamily(parts, signal);
  const hasIpvs = rest.parameters.has(IPVS_PARAMETER);
  return {
    ...rest,
    saved: NO_RULES,
    sets: await unlessMissing(() => sets.save([...ownSets(family), largerSet(family)], signal), new Map()),
    listing: hasIpvs ? await world.ipvs.list(family) : NOTHING.listing,
    timeouts: hasIpvs ? await world.ipvs.timeouts() : undefined,
  };
}

async function ofFamily(
  { family, world, options, addresses }: HostParts,
  signal: AbortSignal,
): Promise<Pick<Look, "bound" | "hostAddresses" | "parameters">> {
  const wanted = Object.keys(parametersOf(family, options.strictARP, world.losesReusedPorts));
  return {
    parameters: await readParameters(world.exec, wanted, signal),
    bound: await addresses.list(),
    hostAddresses: await othersAddresses(world, family),
  };
}

/** The host's addresses but for ours. */
async function othersAddresses({ netlink }: Pick<IpvsWorld, "netlink">, family: IPFamily): Promise<readonly string[]> {
  return (await netlink.addresses(family)).flatMap(({ ip, link }) => (link === DEVICE ? [] : [ip]));
}

/** What a tool says; something else where the tool isn't installed, or the kernel has nothing that it could tell of. */
export async function unlessMissing<T>(ask: () => Promise<T>, otherwise: T): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (ProxyError.is(error, "tool_missing") || (ProxyError.is(error, "host_unsupported") && !hidesRules(error))) return otherwise;
    throw error;
  }
}
