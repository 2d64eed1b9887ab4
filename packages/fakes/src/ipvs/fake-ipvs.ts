import { familyOf, parseCIDR, ProxyError } from "@turnout/core";
import type { Clock, IPFamily, Protocol } from "@turnout/core";
import type { FaultSwitches } from "@turnout/conformance";
import { errno } from "@turnout/host";
import { operationError, timeoutsError } from "@turnout/host/ipvs";
import type { Ipvs, IpvsSummary } from "@turnout/host/ipvs";
import { operationObject, SERVICE_FLAG, virtualServerName, mixed, partOf, PARTS } from "@turnout/host/ipvs/model";
import type {
  IpvsListing,
  IpvsOperation,
  IpvsTimeouts,
  VirtualServerCounts,
  RealServer,
  RealServerKey,
  VirtualServer,
  VirtualServerKey,
} from "@turnout/host/ipvs/model";
import type { FakeSysctl } from "@turnout/host/testing";
import type { PacketEnds } from "../host/set-lookup.ts";
import { FakeRealServer, serverName } from "./fake-server.ts";
import type { FakeVirtualServer } from "./fake-server.ts";
import { addressFault, SCHEDULER_NAME_MAX, SCHEDULERS, settingsFault } from "./refusals.ts";
import { schedule } from "./scheduling.ts";

/** Whether real servers that take no more lose the clients that stay with them, too. */
const EXPIRE_QUIESCENT = "net/ipv4/vs/expire_quiescent_template";
const TIMEOUT_MAX = 2 ** 31 / 100;

/** What the fake shares with the rest of its host. */
export interface FakeIpvsHost {
  readonly clock: Clock;
  /** Asked before each change that the proxy makes. */
  readonly faults: FaultSwitches;
  readonly sysctl: Pick<FakeSysctl, "values">;
}

/**
 * IPVS in memory: a part of a fake host, and what {@link FakeIptables} asks where a packet goes.
 *
 * Shape: `change` and the rest are what the proxy uses, and changes fail as the switches say; {@link FakeIpvs.run} is somebody else's hand.
 * Edges: it refuses what Linux 6.1 refuses, checked against it by `ipvs-kernel.test.ts`. The first packet of a connection is always a new
 * connection. Real servers are masqueraded to, whoever made them.
 */
export class FakeIpvs implements Ipvs {
  readonly #host: FakeIpvsHost;
  readonly #schedulers: readonly string[];
  readonly #services = new Map<string, FakeVirtualServer>();
  readonly #marks: { readonly family: IPFamily; readonly mark: number }[] = [];
  #timeouts: IpvsTimeouts = { tcp: 900, tcpFin: 120, udp: 300 };
  #written = 0;
  #connected = 0;

  /** @param schedulers those that the kernel can load */
  constructor(host: FakeIpvsHost, schedulers: readonly string[] = SCHEDULERS) {
    this.#host = host;
    this.#schedulers = schedulers;
  }

  /** How many operations of the proxy are in force. */
  get written(): number {
    return this.#written;
  }

  list(family: IPFamily, only: (server: VirtualServerKey) => boolean = () => true): Promise<IpvsListing> {
    const firewallMarks = this.#marks.filter((one) => one.family === family).map(({ mark }) => mark);
    const virtualServers = this.virtualServers().filter((one) => one.family === family && only(one));
    return Promise.resolve({ virtualServers, firewallMarks });
  }

  realServers(of: readonly VirtualServerKey[]): Promise<readonly (readonly RealServer[])[]> {
    return Promise.resolve(of.map((key) => viewsOf(this.#services.get(virtualServerName(key)))));
  }

  /** Connections alone: packets have no size here. */
  counts(family: IPFamily): Promise<readonly (VirtualServerKey & VirtualServerCounts)[]> {
    const services = [...this.#services.values()].filter(({ key }) => key.family === family);
    return Promise.resolve(services.map(({ key, connections }) => ({ ...key, connections, bytesIn: 0, bytesOut: 0 })));
  }

  /** How many connections were sent to real servers since this was made. */
  get connected(): number {
    return this.#connected;
  }

  summary(): IpvsSummary {
    const all = this.virtualServers().filter(({ family }) => family === "IPv4");
    const texts = all.map(({ realServers, ...service }) => [service, JSON.stringify([service, realServers.length])] as const);
    const realServers = all.reduce((sum, one) => sum + one.realServers.length, 0);
    return { virtualServers: all.length, realServers, checksums: checksumsOf(texts) };
  }

  contents(family: IPFamily): Promise<Int32Array> {
    const all = this.virtualServers().filter((one) => one.family === family);
    return Promise.resolve(
      checksumsOf(
        all.map(({ realServers, ...service }) => {
          const settings = realServers.map(({ address, port, weight, forward }) => [address, port, weight, forward]);
          return [service, JSON.stringify([service, settings])] as const;
        }),
      ),
    );
  }

  change(operations: readonly IpvsOperation[], signal: AbortSignal): Promise<readonly (ProxyError | undefined)[]> {
    if (operations.length === 0) return Promise.resolve([]);
    if (signal.aborted) {
      const canceled = (object: string): ProxyError => new ProxyError("canceled", "a change of IPVS was given up", { object });
      return Promise.resolve(operations.map((operation) => canceled(operationObject(operation))));
    }
    // An address that is refused spoils its own operations alone.
    const when = this.#host.faults.next([]);
    const broken = new ProxyError("tool_failed", "the netlink socket broke");
    if (when === "before") return Promise.reject(broken);
    const some = when === "during" ? operations.slice(0, Math.ceil(operations.length / 2)) : operations;
    const outcomes = some.map((operation) => {
      const isRefused = this.#host.faults.isRefused(operationObject(operation));
      const value = isRefused ? errno("ENOMEM") : this.#carryOut(operation);
      if (value === 0) this.#written++;
      return operationError(operation, value);
    });
    return when === undefined ? Promise.resolve(outcomes) : Promise.reject(broken);
  }

  timeouts(): Promise<IpvsTimeouts> {
    return Promise.resolve(this.#timeouts);
  }

  setTimeouts(timeouts: IpvsTimeouts): Promise<void> {
    if (Object.values(timeouts).some((seconds) => seconds > TIMEOUT_MAX)) return Promise.reject(timeoutsError(timeouts, errno("EINVAL")));
    const { tcp, tcpFin, udp } = this.#timeouts;
    this.#timeouts = { tcp: timeouts.tcp || tcp, tcpFin: timeouts.tcpFin || tcpFin, udp: timeouts.udp || udp };
    return Promise.resolve();
  }

  version(): Promise<string> {
    return Promise.resolve("1.2.1");
  }

  close(): void {
    // Nothing is open.
  }

  /** All virtual servers of both families, as they are now. */
  virtualServers(): readonly VirtualServer[] {
    return Array.from(this.#services.values(), (service) => ({ ...service.key, ...service.settings, realServers: viewsOf(service) }));
  }

  /** Somebody else changes something; says what became of each operation. */
  run(...operations: readonly IpvsOperation[]): readonly (ProxyError | undefined)[] {
    return operations.map((operation) => operationError(operation, this.#carryOut(operation)));
  }

  /** Somebody else adds a virtual server by firewall mark. */
  addMark(family: IPFamily, mark: number): void {
    this.#marks.push({ family, mark });
  }

  /** Send a new connection somewhere, which is remembered: counted, and its client stays where the virtual server is persistent. */
  connect(packet: PacketEnds, random: () => number): RealServerKey | "reject" | undefined {
    const found = this.#choose(packet, random);
    if (found === undefined || found === "reject") return found;
    const { service, server } = found;
    const { protocol } = service.key;
    this.#connected++;
    service.connections++;
    server.connect(protocol !== "UDP", protocol === "UDP" ? this.#timeouts.udp : this.#timeouts.tcp);
    const { flags, timeoutSeconds } = service.settings;
    if ((flags & SERVICE_FLAG.persistent) !== 0)
      service.templates.set(clientOf(packet, service), { server, endMs: this.#host.clock.nowMs() + timeoutSeconds * 1_000 });
    return { address: server.address, port: server.port };
  }

  /** As {@link FakeIpvs.connect}, and nothing stays behind. */
  trace(packet: PacketEnds, random: () => number): RealServerKey | "reject" | undefined {
    const found = this.#choose(packet, random);
    return found === undefined || found === "reject" ? found : { address: found.server.address, port: found.server.port };
  }

  #choose(
    packet: PacketEnds,
    random: () => number,
  ): { readonly service: FakeVirtualServer; readonly server: FakeRealServer } | "reject" | undefined {
    const protocol = packet.protocol.toUpperCase() as Protocol;
    const key = { family: familyOf(packet.destination), protocol, address: packet.destination, port: packet.port };
    const service = this.#services.get(virtualServerName(key));
    if (service === undefined) return undefined;
    const server = this.#kept(service, packet) ?? schedule(service.settings, [...service.servers.values()], packet, random);
    return server === undefined ? "reject" : { service, server };
  }

  /** Where a client stays. A weight of 0 doesn't end it, unless a kernel parameter says so. */
  #kept(service: FakeVirtualServer, packet: PacketEnds): FakeRealServer | undefined {
    const kept = service.templates.get(clientOf(packet, service));
    if ((service.settings.flags & SERVICE_FLAG.persistent) === 0 || kept === undefined) return undefined;
    if (kept.endMs <= this.#host.clock.nowMs() || service.servers.get(serverName(kept.server)) !== kept.server) return undefined;
    const isQuiescent = kept.server.weight === 0 && this.#host.sysctl.values.get(EXPIRE_QUIESCENT) === "1";
    return isQuiescent ? undefined : kept.server;
  }

  /** Do what an operation asks; gives the kernel's error number, 0 for success. */
  #carryOut(operation: IpvsOperation): number {
    const name = virtualServerName(operation.service);
    const service = this.#services.get(name);
    if ("scheduler" in operation.service && operation.service.scheduler.length > SCHEDULER_NAME_MAX) return errno("EINVAL");
    if (operation.verb === "add-service") return this.#addService(name, operation, service);
    if (service === undefined) return errno("ESRCH");
    switch (operation.verb) {
      case "edit-service": {
        const fault = settingsFault(operation.service, this.#schedulers);
        if (fault === 0) service.settings = settingsOf(operation);
        return fault;
      }
      case "delete-service":
        this.#services.delete(name);
        return 0;
      case "add-server":
        return addServer(service, operation, this.#host.clock);
      case "edit-server": {
        const found = service.servers.get(serverName(operation.server));
        if (found === undefined) return errno("ENOENT");
        found.weight = operation.server.weight;
        return 0;
      }
      case "delete-server": {
        const found = service.servers.get(serverName(operation.server));
        if (found === undefined) return errno("ENOENT");
        service.servers.delete(serverName(found));
        service.trash.set(serverName(found), found);
        return 0;
      }
    }
  }

  #addService(name: string, operation: Extract<IpvsOperation, { readonly verb: "add-service" | "edit-service" }>, found: unknown): number {
    if (found !== undefined) return errno("EEXIST");
    const fault = settingsFault(operation.service, this.#schedulers);
    if (fault !== 0) return fault;
    const { family, protocol, address, port } = operation.service;
    const key = { family, protocol, address, port };
    this.#services.set(name, {
      key,
      settings: settingsOf(operation),
      servers: new Map(),
      trash: new Map(),
      templates: new Map(),
      connections: 0,
    });
    return 0;
  }
}

function addServer(
  service: FakeVirtualServer,
  operation: Extract<IpvsOperation, { readonly verb: "add-server" | "edit-server" }>,
  clock: Clock,
): number {
  const name = serverName(operation.server);
  const fault = addressFault(operation.service.family, operation.server.address);
  if (service.servers.has(name)) return errno("EEXIST");
  if (fault !== 0) return fault;
  const old = service.trash.get(name);
  service.trash.delete(name);
  if (old !== undefined) old.weight = operation.server.weight;
  service.servers.set(name, old ?? new FakeRealServer(clock, operation.server));
  return 0;
}

/** A digest for each part; whatever the order. */
function checksumsOf(texts: readonly (readonly [VirtualServerKey, string])[]): Int32Array {
  const checksums = new Int32Array(PARTS);
  for (const [service, text] of texts) {
    const part = partOf(service);
    let digest = 0;
    for (let at = 0; at < text.length; at += 1) digest = mixed(digest, text.charCodeAt(at));
    checksums[part] = (checksums[part] ?? 0) + digest;
  }
  return checksums;
}

function settingsOf({ service }: Extract<IpvsOperation, { readonly verb: "add-service" | "edit-service" }>): FakeVirtualServer["settings"] {
  const { scheduler, flags, timeoutSeconds, clientPrefixLength } = service;
  return { scheduler, flags, timeoutSeconds, clientPrefixLength };
}

function viewsOf(service: FakeVirtualServer | undefined): readonly RealServer[] {
  return Array.from(service?.servers.values() ?? [], (server) => server.view());
}

/** The network of a client, all of which stay together. */
function clientOf({ source }: PacketEnds, { settings }: FakeVirtualServer): string {
  return parseCIDR(`${source}/${settings.clientPrefixLength}`)?.text ?? source;
}
