import type { RunConfig, WhyHelp } from "@turnout/client/daemon";
import { knownObjects, type HiddenService, type World } from "@turnout/core";
import { createLinuxWorld, readHostAddresses } from "@turnout/host";
import type { HostAddresses, LinuxWorld } from "@turnout/host";
import { hiddenServices, parseSourceSpec } from "@turnout/server";
import type { Environment } from "../environment.ts";
import type { NodeStateSource } from "@turnout/server/node-state";
import { rulePlaces } from "../registry.ts";
import type { RulePlaces } from "../registry.ts";

/** What packets are explained with besides rows. */
export interface HelpParts {
  readonly source: string;
  readonly state: NodeStateSource;
  /** The backend's name. */
  readonly backend: string;
  readonly config: Pick<RunConfig, "kubeconfig" | "master">;
  readonly env: Environment;
  readonly world: World;
}

/** Help a running proxy to explain packets: with the API objects it reads, and with a look at this host. */
export function whyHelp(parts: HelpParts): WhyHelp {
  const { source, state, env, world, backend } = parts;
  const isOfObjects = parseSourceSpec(source).kind !== "api";
  return {
    ...(isOfObjects ? { objects: knownObjects(state.store), hidden: (signal: AbortSignal) => hiddenFrom(parts, signal) } : {}),
    ...(env.platform === "linux" ? lookAtHost(world, rulePlaces(backend)) : {}),
  };
}

/** Devices of backends, on which are the addresses of Services and none of the host's own. */
const ADDRESSES_OF_SERVICES: readonly string[] = ["kube-ipvs0", "turnout0"];

/** Read the addresses of this host, without those of Services. */
export async function ownAddresses({ netlink }: Pick<LinuxWorld, "netlink">): Promise<HostAddresses> {
  return await readHostAddresses((family) => netlink.addresses(family), ...ADDRESSES_OF_SERVICES);
}

function lookAtHost(world: World, places: RulePlaces): Pick<WhyHelp, "addresses" | "locate" | "survey"> {
  return {
    async addresses(family) {
      const linux = createLinuxWorld(world);
      try {
        return (await ownAddresses(linux))[family];
      } finally {
        linux.close();
      }
    },
    // Loaded when the first packet is asked about: most proxies are never asked.
    async locate(question, hostAddresses, signal) {
      const { locatePacket } = await import("./locate-packet.ts");
      return await locatePacket(question, undefined, hostAddresses, world.exec, signal);
    },
    async survey(packet, fate, host, signal) {
      const { surveyHost } = await import("./host-survey.ts");
      const linux = createLinuxWorld(world);
      try {
        return await surveyHost(linux, packet, fate, { ...host, ...places }, signal);
      } finally {
        linux.close();
      }
    },
  };
}

/** The Services that are left to other proxies; none where the source is another node-state server. */
export async function hiddenFrom(
  { source, config, env, world }: Omit<HelpParts, "state" | "backend">,
  signal: AbortSignal,
): Promise<readonly HiddenService[]> {
  const spec = parseSourceSpec(source);
  const { kubeconfig, master } = config;
  return spec.kind === "api" ? [] : await hiddenServices(spec, { kubeconfig, master, env: env.variables, clock: world.clock }, signal);
}
