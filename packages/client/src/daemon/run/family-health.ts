import { nodePortAddresses, type BackendModule, type IPFamily, type NodeContext, type World } from "@turnout/core";
import type { RunConfig } from "../config/run-config.ts";
import { closedHealthPortEvent, type ProxyEvent } from "../events/proxy-events.ts";
import { ServiceHealthServers, type HealthAddresses } from "../health/service-health.ts";

/** What a family's health check node ports follow. */
export interface FamilyHealthOptions {
  readonly module: Pick<BackendModule, "nodePortAddressesDefault">;
  readonly family: IPFamily;
  readonly config: RunConfig;
  readonly world: World;
  readonly hostAddresses: (family: IPFamily) => readonly string[];
  readonly isProxyHealthy: () => boolean;
  readonly onEvent?: ((event: ProxyEvent) => void) | undefined;
  readonly node: () => NodeContext | undefined;
}

/** The health check node ports of one family: they answer where node ports do, and at their Service's load-balancer IPs that this host has. */
export function familyHealth(options: FamilyHealthOptions): ServiceHealthServers {
  const { module, family, world, hostAddresses, isProxyHealthy, onEvent, config, node } = options;
  const addresses = (): HealthAddresses => {
    const wanted = config.settings.nodePortAddresses ?? module.nodePortAddressesDefault ?? [];
    const own = hostAddresses(family);
    const chosen = nodePortAddresses({ wanted, family, primary: node()?.addresses[0], hostAddresses: own });
    if (chosen === "all") return { nodePorts: [family === "IPv4" ? "0.0.0.0" : "::"], isOnHost: undefined };
    return { nodePorts: chosen, isOnHost: (ip) => own.includes(ip) };
  };
  return new ServiceHealthServers({
    family,
    clock: world.clock,
    log: world.log,
    isProxyHealthy,
    addresses,
    onListenError: (service, port, error) => onEvent?.(closedHealthPortEvent(config.nodeName, { service, port, family, error })),
  });
}
