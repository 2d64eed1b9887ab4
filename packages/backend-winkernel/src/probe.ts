import { ProxyError } from "@turnout/core/backend";
import type { Capabilities, HostReport, IPFamily } from "@turnout/core/backend";
import type { NetworkKind, WinkernelFacts } from "./facts.ts";
import { HnsClient } from "./hns/client.ts";
import { reported } from "./hns/error.ts";
import type { HnsNetwork, HnsVersion } from "./hns/replies.ts";
import { hasFeature } from "./hns/version.ts";
import type { WinkernelOptions } from "./options.ts";
import { familyOfAddress } from "./objects.ts";
import type { WinkernelWorld } from "./world.ts";

const KINDS: ReadonlyMap<string, NetworkKind> = new Map([
  ["l2bridge", "l2bridge"],
  ["l2tunnel", "l2bridge"],
  ["overlay", "overlay"],
]);

/** The kind of a network; undefined: this backend doesn't work in it. */
export function kindOf({ type }: HnsNetwork): NetworkKind | undefined {
  return KINDS.get(type);
}

/** The name of the CNI's network, as somebody told it; "": nobody did. */
export function wantedNetwork({ networkName }: WinkernelOptions, world: Pick<WinkernelWorld, "networkName">): string {
  return networkName || world.networkName;
}

/** Find the CNI's network. @throws {ProxyError} `not_found`, or what HNS failed with. */
export async function findNetwork(client: HnsClient, name: string, signal: AbortSignal): Promise<HnsNetwork> {
  const networks = await asked(() => client.networks(signal), "networks");
  const found = networks.find((network) => network.name === name);
  if (found !== undefined) return found;
  const hint = `the CNI makes it, sometimes with the first pod; there are ${networks.map((one) => one.name).join(", ") || "none"}; name it with networkName or KUBE_NETWORK`;
  throw new ProxyError("not_found", "HNS has no such network", { object: `network ${JSON.stringify(name)}`, hint });
}

async function asked<T>(ask: () => Promise<T>, what: string): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw reported(error, "HNS can't be asked", what);
  }
}

/** Look at HNS, the network and this host's addresses. */
export async function probeWinkernel(
  options: WinkernelOptions,
  world: WinkernelWorld,
  signal: AbortSignal,
): Promise<HostReport<WinkernelFacts>> {
  const client = new HnsClient(world.hns);
  const problems: ProxyError[] = [];
  const attempt = async <T>(work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      problems.push(error);
      return undefined;
    }
  };
  const version = await attempt(() => asked(() => client.version(signal), "its version"));
  if (version === undefined) return { facts: factsOf(undefined, undefined, world), versions: {}, problems };
  const versions = { hns: `${version.major}.${version.minor}` };
  if (!hasFeature(version, "v2"))
    problems.push(
      new ProxyError("host_unsupported", "this HNS has no V2 schema", {
        object: `version ${versions.hns}`,
        hint: "needs Windows Server 2019 with updates (9.2) or newer",
      }),
    );
  const network = await attempt(() => findNetwork(client, wantedNetwork(options, world), signal));
  const kind = network === undefined ? undefined : kindOf(network);
  if (network !== undefined) problems.push(...networkProblems(network, kind, options));
  return {
    facts: factsOf(network, version, world),
    versions,
    problems,
    capabilities: missing(version, kind, options),
  };
}

function networkProblems(
  { name, type }: HnsNetwork,
  kind: NetworkKind | undefined,
  { sourceVip }: WinkernelOptions,
): readonly ProxyError[] {
  const object = `network ${name}`;
  if (kind === undefined)
    return [
      new ProxyError("host_unsupported", `a network of type ${type || "NAT"} has no load balancers for Services`, {
        object,
        hint: "use a CNI with L2Bridge or Overlay",
      }),
    ];
  if (kind !== "overlay" || sourceVip !== "") return [];
  const hint = "pass sourceVip: Flannel's sourceVip.json has it, or the address of Calico's endpoint Calico_ep";
  return [new ProxyError("invalid_object", "an overlay needs a source address", { object, hint })];
}

/** What this version and network lack. */
function missing(version: HnsVersion, kind: NetworkKind | undefined, { enableDSR }: WinkernelOptions): Partial<Capabilities> {
  const at = `HNS ${version.major}.${version.minor}`;
  return {
    ...(kind === "overlay" ? { IPv6: "Windows has overlays for IPv4 alone" } : {}),
    ...(hasFeature(version, "dualStack") ? {} : { IPv6: `${at} has no dual stack, which came with 11.10` }),
    ...(hasFeature(version, "sessionAffinity") ? {} : { sessionAffinity: `${at} has no affinity, which came with 12.0` }),
    ...(enableDSR ? {} : { clientAddress: "enableDSR is off: endpoints see this node, but under the Local external policy" }),
    ...(hasFeature(version, "dsr") ? {} : { clientAddress: `${at} has no direct server return, so endpoints see this node` }),
  };
}

/** Read the facts again. @throws {ProxyError} */
export async function readFacts(options: WinkernelOptions, world: WinkernelWorld, signal: AbortSignal): Promise<WinkernelFacts> {
  const client = new HnsClient(world.hns);
  const version = await asked(() => client.version(signal), "its version");
  return factsOf(await findNetwork(client, wantedNetwork(options, world), signal), version, world);
}

/** Undefined: it couldn't be found out, and the backend can't run. */
function factsOf(
  network: HnsNetwork | undefined,
  version: HnsVersion | undefined,
  world: Pick<WinkernelWorld, "addresses">,
): WinkernelFacts {
  const links = world.addresses();
  const of = (family: IPFamily): readonly string[] => links.map(({ ip }) => ip).filter((ip) => familyOfAddress(ip) === family);
  return {
    network: (network === undefined ? undefined : kindOf(network)) ?? "l2bridge",
    remoteSubnets: network?.remoteSubnets ?? [],
    addresses: { IPv4: of("IPv4"), IPv6: of("IPv6") },
    macs: Object.fromEntries(links.map(({ ip, mac }) => [ip, mac])),
    hasDSR: version !== undefined && hasFeature(version, "dsr"),
  };
}
