import {
  nodePortAddresses,
  serviceHealth,
  type BackendModule,
  type IPFamily,
  type NodeContext,
  type ServicePort,
  type World,
} from "@turnout/core";
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
export class FamilyHealth {
  readonly #options: FamilyHealthOptions;
  readonly #servers: ServiceHealthServers;
  #isDue = false;

  constructor(options: FamilyHealthOptions) {
    this.#options = options;
    const { family, world, isProxyHealthy, onEvent, config } = options;
    this.#servers = new ServiceHealthServers({
      family,
      clock: world.clock,
      log: world.log,
      isProxyHealthy,
      addresses: () => this.#addresses(),
      onListenError: (service, port, error) => onEvent?.(closedHealthPortEvent(config.nodeName, { service, port, family, error })),
    });
  }

  /** Something changed that the ports depend on. */
  touch(): void {
    this.#isDue = true;
  }

  /** Answer for these rows, where something changed. */
  sync(rows: Iterable<ServicePort>): void {
    if (!this.#isDue) return;
    this.#isDue = false;
    void this.#servers.sync(serviceHealth(rows));
  }

  async close(): Promise<void> {
    await this.#servers.close();
  }

  #addresses(): HealthAddresses {
    const { config, module, family, hostAddresses, node } = this.#options;
    const wanted = config.settings.nodePortAddresses ?? module.nodePortAddressesDefault ?? [];
    const own = hostAddresses(family);
    const chosen = nodePortAddresses({ wanted, family, primary: node()?.addresses[0], hostAddresses: own });
    if (chosen === "all") return { nodePorts: [family === "IPv4" ? "0.0.0.0" : "::"], isOnHost: undefined };
    return { nodePorts: chosen, isOnHost: (ip) => own.includes(ip) };
  }
}
