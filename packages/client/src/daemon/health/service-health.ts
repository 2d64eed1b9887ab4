import { ProxyError, type Clock, type IPFamily, type Log, type ServiceHealth } from "@turnout/core";
import { serviceHealthReply } from "./health.ts";
import { HttpConnections } from "./http-connections.ts";
import { listen, type HttpServer } from "./http.ts";

/** Where health check node ports answer. */
export interface HealthAddresses {
  /** The addresses that answer node ports, or the family's unspecified address for all. */
  readonly nodePorts: readonly string[];
  /** Whether this host has an address; undefined: the above are all that it has. */
  readonly isOnHost: ((ip: string) => boolean) | undefined;
}

/** What the health check node ports of one family are made with. */
export interface ServiceHealthOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the proxy itself keeps up; an unhealthy one answers 503 whatever the endpoints. */
  readonly isProxyHealthy: () => boolean;
  /** Read at every sync. */
  readonly addresses: () => HealthAddresses;
  /** Called once for each failure: the port of a Service (`namespace/name`) can't be opened. */
  readonly onListenError?: ((service: string, port: number, error: ProxyError) => void) | undefined;
}

interface OpenPort {
  readonly port: number;
  /** By address. */
  readonly servers: Map<string, HttpServer>;
  readyLocal: number;
}

/**
 * What could not be opened is tried again after this long, also without a sync: a load-balancer IP comes when another program adds it, or its link
 * comes up, or the kernel has checked it for duplicates.
 */
const RETRY_MS = 5_000;

/**
 * The HTTP servers of Services with a health check node port, one family.
 *
 * Edges: each address is opened and closed on its own, so one that can't be bound leaves the others; it is reported once and tried again. One
 * service's failure never stops the others. Syncs may overlap: the latest call wins.
 * @source rules; kube-proxy healthcheck/service_health.go
 */
export class ServiceHealthServers {
  readonly #options: ServiceHealthOptions;
  readonly #open = new Map<string, OpenPort>();
  readonly #reported = new Map<string, string>();
  readonly #closing = new AbortController();
  /** Of all ports: tenants choose how many there are. */
  readonly #connections: HttpConnections;
  #wanted: ReadonlyMap<string, ServiceHealth> = new Map();
  #isRetrying = false;
  #work: Promise<void> = Promise.resolve();

  constructor(options: ServiceHealthOptions) {
    this.#options = options;
    this.#connections = new HttpConnections(options);
  }

  /** Open, close and update ports until they are as wished. */
  sync(wanted: ReadonlyMap<string, ServiceHealth>): Promise<void> {
    this.#wanted = wanted;
    this.#work = this.#work.then(() => this.#reconcile());
    return this.#work;
  }

  /** Close every port, for good. */
  close(): Promise<void> {
    this.#closing.abort();
    return this.sync(new Map());
  }

  async #reconcile(): Promise<void> {
    const wanted = this.#closing.signal.aborted ? new Map<string, ServiceHealth>() : this.#wanted;
    for (const [key, open] of this.#open) {
      if (wanted.get(key)?.port === open.port) continue;
      this.#open.delete(key);
      await Promise.all([...open.servers.values()].map((server) => server.close()));
    }
    for (const key of this.#reported.keys()) if (!wanted.has(key)) this.#reported.delete(key);
    if (wanted.size === 0) return;
    const addresses = this.#addresses();
    let isComplete = true;
    for (const [key, desired] of wanted) isComplete = (await this.#follow(key, desired, addresses)) && isComplete;
    if (!isComplete) void this.#retryLater();
  }

  #addresses(): HealthAddresses {
    try {
      return this.#options.addresses();
    } catch (error) {
      this.#options.log.warn("this host's addresses can't be read, health check node ports stay closed", {
        family: this.#options.family,
        error,
      });
      return { nodePorts: [], isOnHost: undefined };
    }
  }

  /** Open and close the servers of one Service; tells whether it answers wherever it may have to. */
  async #follow(key: string, desired: ServiceHealth, { nodePorts, isOnHost }: HealthAddresses): Promise<boolean> {
    const { port, readyLocal } = desired;
    const balanced = isOnHost === undefined ? [] : desired.loadBalancerIPs;
    const open = this.#open.get(key) ?? { port, readyLocal, servers: new Map<string, HttpServer>() };
    open.readyLocal = readyLocal;
    this.#open.set(key, open);
    const wanted = new Set([...nodePorts, ...balanced.filter((ip) => isOnHost?.(ip))]);
    for (const [ip, server] of open.servers) {
      if (wanted.has(ip)) continue;
      open.servers.delete(ip);
      await server.close();
    }
    const [namespace = "", name = ""] = key.split("/");
    const handler = (): ReturnType<typeof serviceHealthReply> =>
      serviceHealthReply(namespace, name, open.readyLocal, this.#options.isProxyHealthy());
    const failures: ProxyError[] = wanted.size === 0 ? [NO_ADDRESS] : [];
    for (const ip of wanted) {
      if (open.servers.has(ip)) continue;
      try {
        open.servers.set(ip, await listen({ ip, port }, handler, { ...this.#options, connections: this.#connections }));
      } catch (error) {
        failures.push(ProxyError.from(error, "tool_failed", "can't listen"));
      }
    }
    this.#report(key, port, failures);
    return failures.length === 0 && balanced.every((ip) => wanted.has(ip));
  }

  #report(key: string, port: number, failures: readonly ProxyError[]): void {
    const [error] = failures;
    const text = failures.map(({ message }) => message).join("; ");
    if (error === undefined) this.#reported.delete(key);
    if (error === undefined || this.#reported.get(key) === text) return;
    this.#reported.set(key, text);
    this.#options.onListenError?.(key, port, error);
    this.#options.log.warn("a health check node port can't be opened, trying again every 5 s", {
      service: key,
      port,
      family: this.#options.family,
      error,
    });
  }

  async #retryLater(): Promise<void> {
    if (this.#isRetrying) return;
    this.#isRetrying = true;
    const { signal } = this.#closing;
    await this.#options.clock.sleep(RETRY_MS, signal);
    this.#isRetrying = false;
    if (!signal.aborted) await this.sync(this.#wanted);
  }
}

const NO_ADDRESS: ProxyError = new ProxyError("not_found", "no address of this host is chosen for node ports", {
  hint: "see --nodeport-addresses",
});
