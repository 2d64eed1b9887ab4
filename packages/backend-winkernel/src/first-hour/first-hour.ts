import { ProxyError } from "@turnout/core/backend";
import { HnsClient } from "../hns/client.ts";
import { SCHEMA_VERSION } from "../hns/documents.ts";
import type { EndpointSettings, LoadBalancerSettings } from "../hns/documents.ts";
import { HnsError } from "../hns/error.ts";
import type { HnsHost } from "../hns/host.ts";
import type { HnsEndpoint, HnsNetwork } from "../hns/replies.ts";
import { isAsSent } from "../settings.ts";

/** What was asked of HNS, and what came of it. */
export interface Finding {
  readonly what: string;
  readonly found: string;
}

/** How the first hour is played. */
export interface FirstHourOptions {
  readonly networkName: string;
  /** How many load balancers are made to see how long looking at them takes. */
  readonly count: number;
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Called with each finding as it is made. */
  readonly notify: (finding: Finding) => void;
}

// Addresses for documentation (RFC 5737): nobody's on any node.
const REMOTE_IP = "192.0.2.1";
const VIP = "198.51.100.1";
const NONE = "01234567-89ab-cdef-0123-456789abcdef";
const HTTP = { Protocol: 6, InternalPort: 8080, ExternalPort: 80 } as const;

/**
 * Try on a node what nobody has seen a real HNS do: what it tells, what it refuses with which code, and how long it takes.
 *
 * Edges: what is made is removed again; nothing that was there before is touched.
 * @throws {ProxyError} `not_found` without the network, and what HNS can't be asked for.
 */
export async function firstHour(hns: HnsHost, options: FirstHourOptions): Promise<void> {
  await new FirstHour(hns, options).execute();
}

class FirstHour {
  readonly #client: HnsClient;
  readonly #options: FirstHourOptions;
  readonly #balancers: string[] = [];
  readonly #endpoints: string[] = [];

  constructor(hns: HnsHost, options: FirstHourOptions) {
    this.#client = new HnsClient(hns);
    this.#options = options;
  }

  async execute(): Promise<void> {
    const { signal } = this.#options;
    await this.#try("version", async () => JSON.stringify(await this.#client.version(signal)));
    const network = await this.#network();
    await this.#try("endpoints that are there", async () => `${(await this.#client.endpoints(signal)).length} can be read`);
    await this.#try("load balancers that are there", async () => `${(await this.#client.loadBalancers(signal)).length} can be read`);
    try {
      const endpoint = await this.#endpointsOf(network);
      if (endpoint !== undefined) await this.#balancersOf(endpoint);
    } finally {
      await this.#removeAll();
    }
  }

  async #network(): Promise<HnsNetwork> {
    const { networkName, signal, notify } = this.#options;
    const networks = await this.#client.networks(signal);
    notify({ what: "networks", found: networks.map(({ name, type }) => `${name} (${type})`).join(", ") });
    const found = networks.find(({ name }) => name === networkName);
    if (found !== undefined) return found;
    throw new ProxyError("not_found", "HNS has no such network", { object: networkName, hint: "pass one of those that are there" });
  }

  /** Undefined: none could be made. */
  async #endpointsOf({ id: networkId }: HnsNetwork): Promise<HnsEndpoint | undefined> {
    const settings: EndpointSettings = {
      HostComputeNetwork: networkId,
      IpConfigurations: [{ IpAddress: REMOTE_IP }],
      MacAddress: "02-11-c0-00-02-01",
      Flags: 1,
      SchemaVersion: SCHEMA_VERSION,
    };
    const make = async (): Promise<HnsEndpoint> => {
      const endpoint = await this.#client.createEndpoint(settings, this.#options.signal);
      this.#endpoints.push(endpoint.id);
      return endpoint;
    };
    let first: HnsEndpoint | undefined;
    await this.#try("a remote endpoint", async () => JSON.stringify({ ...(first = await make()), id: "…", networkId: "…" }));
    await this.#try("another one at its address", async () => ((await make()).id === first?.id ? "the same one" : "made, too"));
    return first;
  }

  async #balancersOf({ id: endpointId }: HnsEndpoint): Promise<void> {
    const { signal } = this.#options;
    const settings = (vip: string, port = 80): LoadBalancerSettings => ({
      HostComputeEndpoints: [endpointId],
      FrontendVIPs: [vip],
      PortMappings: [{ ...HTTP, ExternalPort: port }],
      SchemaVersion: SCHEMA_VERSION,
    });
    let id = NONE;
    await this.#try("a load balancer", async () => (id = await this.#make(settings(VIP))) && "made");
    await this.#try("another one at its address", async () => (await this.#make(settings(VIP))) && "made, too");
    await this.#try(
      "one without endpoints",
      async () => (await this.#make({ ...settings("198.51.100.2"), HostComputeEndpoints: [] })) && "made",
    );
    await this.#try(
      "one that names an endpoint that isn't there",
      async () => (await this.#make({ ...settings("198.51.100.3"), HostComputeEndpoints: [NONE] })) && "made",
    );
    const others = settings(VIP, 8080);
    await this.#try("a change of its port", async () =>
      sameAs(isAsSent(await this.#client.modifyLoadBalancer(id, others, signal), others)),
    );
    await this.#try("the change, read back", async () => {
      const found = (await this.#client.loadBalancers(signal)).find((one) => one.id === id);
      return found === undefined ? "it is gone" : sameAs(isAsSent(found, others));
    });
    await this.#try("removing an endpoint that is in use", async () => {
      await this.#client.removeEndpoint(endpointId, signal);
      return "removed";
    });
    await this.#many(settings);
  }

  async #many(settings: (vip: string, port: number) => LoadBalancerSettings): Promise<void> {
    const { count, nowMs, signal } = this.#options;
    const startMs = nowMs();
    await this.#try(`${count} load balancers`, async () => {
      for (let index = 0; index < count; index++) await this.#make(settings("198.51.100.4", 10_000 + index));
      return `made in ${nowMs() - startMs} ms`;
    });
    const madeMs = nowMs();
    await this.#try("looking at all", async () => {
      const { length } = await this.#client.loadBalancers(signal);
      return `${length} in ${nowMs() - madeMs} ms`;
    });
  }

  async #removeAll(): Promise<void> {
    const { signal } = this.#options;
    await this.#removeEach("load balancers", this.#balancers, (id) => this.#client.removeLoadBalancer(id, signal));
    await this.#removeEach("endpoints", [...new Set(this.#endpoints)], (id) => this.#client.removeEndpoint(id, signal));
    await this.#removeEach("a load balancer that is gone", this.#balancers.slice(0, 1), (id) =>
      this.#client.removeLoadBalancer(id, signal),
    );
  }

  /** Remove all that go, and tell how many went, and why others didn't. */
  async #removeEach(what: string, ids: readonly string[], remove: (id: string) => Promise<void>): Promise<void> {
    const counts = new Map<string, number>();
    for (const id of ids) {
      const became = await outcomeOf(async () => {
        await remove(id);
        return "removed";
      });
      counts.set(became, (counts.get(became) ?? 0) + 1);
    }
    this.#options.notify({ what: `removing ${what}`, found: [...counts].map(([became, count]) => `${count} ${became}`).join(", ") });
  }

  async #make(settings: LoadBalancerSettings): Promise<string> {
    const { id } = await this.#client.createLoadBalancer(settings, this.#options.signal);
    this.#balancers.push(id);
    return id;
  }

  async #try(what: string, work: () => Promise<string>): Promise<void> {
    this.#options.notify({ what, found: await outcomeOf(work) });
  }
}

/** What HNS refuses, and an answer that can't be read, are findings; whatever else ends the hour. */
async function outcomeOf(work: () => Promise<string>): Promise<string> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof HnsError || ProxyError.is(error, "invalid_object")) return error.message;
    throw error;
  }
}

function sameAs(isSame: boolean): string {
  return isSame ? "as it was sent" : "not as it was sent";
}
