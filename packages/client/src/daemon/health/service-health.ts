import type { Server } from "node:http";
import { ProxyError, type Clock, type IPFamily, type Log, type ServiceHealth } from "@turnout/core";
import { serviceHealthReply } from "./health.ts";
import { closeServer, listen } from "./http.ts";

/** What the health check node ports of one family hang on. */
export interface ServiceHealthOptions {
  readonly family: IPFamily;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the proxy itself keeps up; an unhealthy one answers 503 whatever the endpoints. */
  readonly isProxyHealthy: () => boolean;
  /** Addresses to listen on, sorted; asked for at every sync. */
  readonly addresses: () => Promise<readonly string[]>;
  /** Hears, once for each failure, that the port of a Service (`namespace/name`) can't be opened. */
  readonly onListenError?: ((service: string, port: number, error: ProxyError) => void) | undefined;
}

interface OpenPort {
  readonly port: number;
  readonly addresses: string;
  readonly servers: readonly Server[];
  readyLocal: number;
}

/**
 * The HTTP servers of Services with a health check node port, one family.
 *
 * Edges: a port that can't be bound on every chosen address is closed again, reported once, and tried at the next sync;
 * one service's failure never stops the others. Syncs may overlap: the latest call wins.
 * @source rules; kube-proxy healthcheck/service_health.go
 */
export class ServiceHealthServers {
  readonly #options: ServiceHealthOptions;
  readonly #open = new Map<string, OpenPort>();
  readonly #reported = new Map<string, string>();
  #wanted: ReadonlyMap<string, ServiceHealth> = new Map();
  #isClosed = false;
  #work: Promise<void> = Promise.resolve();

  constructor(options: ServiceHealthOptions) {
    this.#options = options;
  }

  /** Some port could not be opened, so the next sync has something to do whatever changed. */
  get hasFailures(): boolean {
    return this.#reported.size > 0;
  }

  /** Open, close and update ports until they are as wished. */
  sync(wanted: ReadonlyMap<string, ServiceHealth>): Promise<void> {
    this.#wanted = wanted;
    this.#work = this.#work.then(() => this.#reconcile());
    return this.#work;
  }

  /** Close every port, for good. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.sync(new Map());
  }

  async #reconcile(): Promise<void> {
    const wanted = this.#wanted;
    const addresses = wanted.size === 0 ? [] : await this.#addresses();
    const listening = addresses.join(" ");
    for (const [key, open] of this.#open) {
      const desired = wanted.get(key);
      if (desired?.port === open.port && listening === open.addresses) {
        open.readyLocal = desired.readyLocal;
      } else {
        this.#open.delete(key);
        await Promise.all(open.servers.map(closeServer));
      }
    }
    for (const key of this.#reported.keys()) if (!wanted.has(key)) this.#reported.delete(key);
    for (const [key, desired] of wanted) if (!this.#open.has(key) && !this.#isClosed) await this.#openPort(key, desired, addresses);
  }

  async #addresses(): Promise<readonly string[]> {
    try {
      return await this.#options.addresses();
    } catch (error) {
      this.#options.log.warn("this host's addresses can't be read, health check node ports stay closed", {
        family: this.#options.family,
        error,
      });
      return [];
    }
  }

  async #openPort(key: string, desired: ServiceHealth, addresses: readonly string[]): Promise<void> {
    const open: { port: number; addresses: string; servers: Server[]; readyLocal: number } = {
      port: desired.port,
      addresses: addresses.join(" "),
      servers: [],
      readyLocal: desired.readyLocal,
    };
    const [namespace = "", name = ""] = key.split("/");
    const handler = (): ReturnType<typeof serviceHealthReply> =>
      serviceHealthReply(namespace, name, open.readyLocal, this.#options.isProxyHealthy());
    try {
      if (addresses.length === 0)
        throw new ProxyError("not_found", "no address of this host is chosen for node ports", { hint: "see --nodeport-addresses" });
      for (const ip of addresses) open.servers.push(await listen({ ip, port: desired.port }, handler, this.#options));
    } catch (error) {
      await Promise.all(open.servers.map(closeServer));
      this.#report(key, desired.port, ProxyError.from(error, "tool_failed", "can't listen"));
      return;
    }
    this.#reported.delete(key);
    this.#open.set(key, open);
  }

  #report(key: string, port: number, error: ProxyError): void {
    if (this.#reported.get(key) === error.message) return;
    this.#reported.set(key, error.message);
    this.#options.onListenError?.(key, port, error);
    this.#options.log.warn("a health check node port can't be opened, trying again at the next sync", {
      service: key,
      port,
      family: this.#options.family,
      error,
    });
  }
}
