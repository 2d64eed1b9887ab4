import type { EndpointSettings, LoadBalancerSettings } from "./documents.ts";
import type { HnsHost } from "./host.ts";
import { readEndpoint, readLoadBalancer, readNetwork, readVersion } from "./replies.ts";
import type { HnsEndpoint, HnsLoadBalancer, HnsNetwork, HnsVersion } from "./replies.ts";

/** HNS with its objects typed; whatever is read is checked against its schema. */
export class HnsClient {
  readonly #host: HnsHost;

  constructor(host: HnsHost) {
    this.#host = host;
  }

  /** @throws {HnsError | ProxyError} */
  async version(signal: AbortSignal): Promise<HnsVersion> {
    return readVersion(await this.#host.version(signal));
  }

  /** @throws {HnsError | ProxyError} */
  async networks(signal: AbortSignal): Promise<readonly HnsNetwork[]> {
    return (await this.#host.list("network", signal)).map(readNetwork);
  }

  /** Those of all networks. @throws {HnsError | ProxyError} */
  async endpoints(signal: AbortSignal): Promise<readonly HnsEndpoint[]> {
    return (await this.#host.list("endpoint", signal)).map(readEndpoint);
  }

  /** @throws {HnsError | ProxyError} */
  async loadBalancers(signal: AbortSignal): Promise<readonly HnsLoadBalancer[]> {
    return (await this.#host.list("loadBalancer", signal)).map(readLoadBalancer);
  }

  /** @throws {HnsError | ProxyError} */
  async createEndpoint(settings: EndpointSettings, signal: AbortSignal): Promise<HnsEndpoint> {
    return readEndpoint(await this.#host.createEndpoint(settings.HostComputeNetwork, JSON.stringify(settings), signal));
  }

  /** @throws {HnsError | ProxyError} */
  async removeEndpoint(id: string, signal: AbortSignal): Promise<void> {
    await this.#host.remove("endpoint", id, signal);
  }

  /** @throws {HnsError | ProxyError} */
  async createLoadBalancer(settings: LoadBalancerSettings, signal: AbortSignal): Promise<HnsLoadBalancer> {
    return readLoadBalancer(await this.#host.createLoadBalancer(JSON.stringify(settings), signal));
  }

  /** @throws {HnsError | ProxyError} */
  async modifyLoadBalancer(id: string, settings: LoadBalancerSettings, signal: AbortSignal): Promise<HnsLoadBalancer> {
    return readLoadBalancer(await this.#host.modifyLoadBalancer(id, JSON.stringify(settings), signal));
  }

  /** @throws {HnsError | ProxyError} */
  async removeLoadBalancer(id: string, signal: AbortSignal): Promise<void> {
    await this.#host.remove("loadBalancer", id, signal);
  }
}
