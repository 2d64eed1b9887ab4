import type { RunConfig, WhyHelp } from "@turnout/client/daemon";
import { knownObjects, type HiddenService, type World } from "@turnout/core";
import { lookAtHost } from "@turnout/explain/why-help";
import { hiddenServices, parseSourceSpec } from "@turnout/server";
import type { Environment } from "../environment.ts";
import type { NodeStateSource } from "@turnout/server/node-state";
import { rulePlaces } from "../registry.ts";

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

/** The Services that are left to other proxies; none where the source is another node-state server. */
export async function hiddenFrom(
  { source, config, env, world }: Omit<HelpParts, "state" | "backend">,
  signal: AbortSignal,
): Promise<readonly HiddenService[]> {
  const spec = parseSourceSpec(source);
  const { kubeconfig, master } = config;
  return spec.kind === "api" ? [] : await hiddenServices(spec, { kubeconfig, master, env: env.variables, clock: world.clock }, signal);
}
