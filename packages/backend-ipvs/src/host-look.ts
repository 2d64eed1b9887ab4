import { ProxyError } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";
import { readParameters } from "@turnout/host";
import type { OwnAddresses } from "@turnout/host";
import type { IpsetTool } from "@turnout/host/ipset";
import { hidesRules } from "@turnout/host/iptables";
import type { IptablesTool } from "@turnout/host/iptables";
import { IPVS_PARAMETER, parametersOf } from "./layout.ts";
import { DEVICE } from "./names.ts";
import type { VirtualAddress } from "./objects.ts";
import { ownSets } from "./observe.ts";
import type { Look } from "./observe.ts";
import type { IpvsOptions } from "./options.ts";
import { largerSet } from "./sets.ts";
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
  const all = await world.netlink.addresses(family);
  return {
    parameters: await readParameters(world.exec, wanted, signal),
    bound: await addresses.list(),
    hostAddresses: all.flatMap(({ ip, link }) => (link === DEVICE ? [] : [ip])),
  };
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
