import { RecordingLog, TestClock } from "@turnout/core/testing";
import { familyOf, hostPort } from "@turnout/core";
import type { IPFamily } from "@turnout/core/backend";
import { PLACES, STAGE_ADDRESSES, STAGE_NODE } from "@turnout/conformance";
import type { FakeHost, Fault, Flow, HostAddress, Packet, Trace } from "@turnout/conformance";
import { SCHEMA_VERSION } from "../hns/documents.ts";
import type { LoadBalancerSettings } from "../hns/documents.ts";
import { DISTRIBUTION, LB_FLAG, PROTOCOL_NUMBER, REMOTE_ENDPOINT } from "../hns/flags.ts";
import type { WinkernelWorld } from "../world.ts";
import { SOURCE_VIP_NAME } from "../view.ts";
import { FakeHns, identityOf } from "./fake-hns.ts";
import type { FakeEndpoint, FakeHnsOptions, FakeLoadBalancer, FakeNetwork } from "./fake-hns.ts";
import { tamperWith } from "./tamper.ts";

const START_MS = 1_000_000;
const NETWORK_ID = "0b9f2a1c-6d53-4a0e-9a57-2f5f0c1d7e11";
const OTHER_ID = "7c1e4f3a-1b2d-4c5e-8f90-a1b2c3d4e5f6";
const NODE_MAC = "00-15-5d-01-02-03";

/** The winkernel backend's host in memory, with more to look at than the kit needs. */
export interface WinkernelFakeHost extends FakeHost {
  readonly world: WinkernelWorld;
  readonly hns: FakeHns;
  /** The id of the CNI's network. */
  readonly networkId: string;
  onChange(look: () => void): void;
  /** What was logged. */
  readonly log: RecordingLog;
}

/** What kind of host it is. */
export interface FakeHostOptions extends FakeHnsOptions {
  /** Default l2bridge. */
  readonly network?: "l2bridge" | "overlay";
}

/**
 * Make a Windows node with an HNS that exists in memory: for the conformance kit, and for tests of this backend.
 *
 * Shape: it begins as node1 of the stage: the CNI's network `cbr0` with an endpoint for each of its pods and one for the host, and another
 * network with an endpoint, a remote endpoint and a load balancer of others.
 * Edges: UDP flows don't time out, and nobody can make them be forgotten.
 */
export function createFakeHost(options: FakeHostOptions = {}): WinkernelFakeHost {
  return new FakeWinkernelHost(options);
}

class FakeWinkernelHost implements WinkernelFakeHost {
  readonly world: WinkernelWorld;
  readonly hns: FakeHns;
  readonly networkId = NETWORK_ID;
  readonly log = new RecordingLog();
  readonly #clock = new TestClock(START_MS);
  #addresses: readonly HostAddress[] = STAGE_ADDRESSES;
  readonly #flows: Flow[] = [];

  constructor({ network = "l2bridge", ...options }: FakeHostOptions) {
    this.hns = new FakeHns(options);
    this.world = {
      exec: { run: noProgram, open: noProgram },
      clock: this.#clock,
      log: this.log,
      hns: this.hns,
      addresses: () => this.#addresses.map(({ ip }) => ({ ip, mac: NODE_MAC })),
      networkName: "cbr0",
    };
    addNetworks(this.hns, network);
  }

  get flows(): readonly Flow[] {
    return this.#flows;
  }

  advance(ms: number): Promise<void> {
    return this.#clock.advance(ms);
  }

  setAddresses(addresses: readonly HostAddress[]): void {
    this.#addresses = addresses;
  }

  trace(packet: Packet, random: () => number): Trace {
    const hostAddresses = this.#addresses.filter(({ link }) => link !== "lo").map(({ ip }) => ip);
    return follow(packet, { hns: this.hns, hostAddresses, random });
  }

  connect(packet: Packet, random: () => number): Trace {
    const trace = this.trace(packet, random);
    const { family, protocol, source, destination, port } = packet;
    if (protocol === "UDP" && trace.endpoint !== undefined)
      this.#flows.push({ family, source, destination, port, endpoint: trace.endpoint });
    return trace;
  }

  setFault(fault: Fault | undefined): void {
    this.hns.faults.setFault(fault);
  }

  refuse(addresses: readonly string[]): void {
    this.hns.faults.refuse(addresses);
  }

  tamper(random: () => number): string | undefined {
    return tamperWith(this.hns, NETWORK_ID, random);
  }

  own(): readonly string[] {
    const endpoints = [...this.hns.endpoints.values()].filter(isOwnEndpoint).map(endpointLine);
    return [...endpoints, ...this.#balancerLines((one) => this.#isOwn(one))].toSorted();
  }

  external(): readonly string[] {
    const endpoints = [...this.hns.endpoints.values()].filter((one) => !isOwnEndpoint(one)).map(endpointLine);
    const networks = this.hns.networks.map(({ name, type }) => `network ${name} ${type}`);
    return [...networks, ...endpoints, ...this.#balancerLines((one) => !this.#isOwn(one))].toSorted();
  }

  onChange(look: () => void): void {
    this.hns.onChange = look;
  }

  written(): number {
    return this.hns.written;
  }

  #isOwn({ settings }: FakeLoadBalancer): boolean {
    return settings.HostComputeEndpoints.every((id) => this.hns.endpoints.get(id)?.settings.HostComputeNetwork !== OTHER_ID);
  }

  /** Without ids, which no two hosts share. */
  #balancerLines(isWanted: (one: FakeLoadBalancer) => boolean): readonly string[] {
    return [...this.hns.balancers.values()].filter(isWanted).map(({ settings }) => {
      const { HostComputeEndpoints: ids, PortMappings: ports, Flags: flags = 0, SourceVIP: source = "none" } = settings;
      const endpoints = ids.map((id) => {
        const endpoint = this.hns.endpoints.get(id);
        return endpoint === undefined
          ? "gone"
          : `${endpoint.settings.IpConfigurations[0]?.IpAddress}${endpoint.settings.Flags === undefined ? "" : "*"}`;
      });
      return `loadbalancer ${identityOf(settings)} to ${endpoints.toSorted().join(" ")} flags ${flags} source ${source} ${JSON.stringify(ports)}`;
    });
  }
}

function isOwnEndpoint({ settings }: FakeEndpoint): boolean {
  const isOurs = settings.Flags === REMOTE_ENDPOINT || settings.Name === SOURCE_VIP_NAME;
  return isOurs && settings.HostComputeNetwork === NETWORK_ID;
}

function endpointLine({ settings }: FakeEndpoint): string {
  const { IpConfigurations: addresses, MacAddress: mac, Flags: flags, Policies: policies, Name: name = "" } = settings;
  const ip = addresses[0]?.IpAddress ?? "";
  const provider = policies?.[0]?.Settings.ProviderAddress ?? "none";
  return `${familyOf(ip)} ${flags === REMOTE_ENDPOINT ? "remote" : "local"} endpoint ${ip} ${mac} provider ${provider} ${name}`;
}

function addNetworks(hns: FakeHns, type: "l2bridge" | "overlay"): void {
  const network: FakeNetwork = {
    id: NETWORK_ID,
    name: "cbr0",
    type: type === "overlay" ? "Overlay" : "L2Bridge",
    subnets: ["10.1.1.0/24", "fd00:1:1::/64"],
    ...(type === "overlay" ? { remoteSubnets: [{ prefix: "10.1.2.0/24", provider: "172.18.0.2" }] } : {}),
  };
  hns.networks.push(network, { id: OTHER_ID, name: "nat", type: "NAT", subnets: ["172.29.0.0/16"] });
  for (const { node, kind, name, addresses } of PLACES)
    if (node === STAGE_NODE && kind === "pod") hns.addEndpoint(local(NETWORK_ID, name, ...Object.values(addresses)));
  hns.addEndpoint(local(NETWORK_ID, "cbr0", "10.1.1.254", "fd00:1:1::254"));
  const theirs = hns.addEndpoint(local(OTHER_ID, "docker", "172.29.0.2"));
  hns.addEndpoint({ ...local(OTHER_ID, "", "172.29.9.9"), Flags: REMOTE_ENDPOINT });
  hns.addBalancer({
    HostComputeEndpoints: [theirs],
    FrontendVIPs: ["192.0.2.80"],
    PortMappings: [{ Protocol: 6, InternalPort: 80, ExternalPort: 80 }],
    SchemaVersion: SCHEMA_VERSION,
    Flags: LB_FLAG.dsr,
  });
}

/** An endpoint as a CNI makes it: one for both families. */
function local(networkId: string, name: string, ...addresses: readonly string[]): FakeEndpoint["settings"] {
  return {
    ...(name === "" ? {} : { Name: name }),
    HostComputeNetwork: networkId,
    IpConfigurations: addresses.map((ip) => ({ IpAddress: ip })),
    MacAddress: "00-15-5d-aa-bb-cc",
    SchemaVersion: SCHEMA_VERSION,
  };
}

function noProgram(): never {
  throw new Error("no program is run on Windows");
}

/** What is balanced with, besides HNS's objects. */
interface SwitchPort {
  readonly hns: FakeHns;
  /** Addresses of the host, but for loopback ones. */
  readonly hostAddresses: readonly string[];
  /** In [0, 1). */
  readonly random: () => number;
}

/**
 * Follow a packet through the load balancers that the virtual switch has from HNS.
 *
 * Shape: the host's own packets don't come by. A load balancer for the address goes before one for node ports. By source IP the same client gets
 * the same endpoint as long as the list is the same; otherwise any. With direct server return the endpoint sees the client, else this node.
 * Edges: none of it was seen on a real Windows node; docs/backends/winkernel.md says what it stands on.
 */
function follow(packet: Packet, { hns, hostAddresses, random }: SwitchPort): Trace {
  const { destination, port, protocol, link, source, family } = packet;
  const where = `${protocol} ${hostPort(destination, port)}`;
  if (link === "") return { is: "pass", path: ["the host's own packets don't come by the switch ports"] };
  const isWanted = (one: FakeLoadBalancer): boolean => isFor(one.settings, packet);
  const candidates = [...hns.balancers.values()].filter(isWanted);
  const balancer =
    candidates.find(({ settings }) => settings.FrontendVIPs?.[0] === destination) ??
    candidates.find(({ settings }) => settings.FrontendVIPs === undefined && hostAddresses.includes(destination));
  if (balancer === undefined) return { is: "pass", path: [`no load balancer for ${where}`] };
  const { HostComputeEndpoints: ids, PortMappings: ports, Flags: flags = 0 } = balancer.settings;
  const [mapping] = ports;
  const isFixed = mapping?.DistributionType === DISTRIBUTION.client;
  const chosen = ids[isFixed ? hashOf(source) % ids.length : Math.floor(random() * ids.length)] ?? "";
  const addresses = hns.endpoints.get(chosen)?.settings.IpConfigurations.map(({ IpAddress }) => IpAddress) ?? [];
  const endpoint = addresses.find((ip) => familyOf(ip) === family);
  const path = [`load balancer ${balancer.id} for ${where}`, `endpoint ${chosen} of ${ids.length}`];
  if (endpoint === undefined) return { is: "drop", path: [...path, "which is gone"] };
  return { is: "forward", endpoint: hostPort(endpoint, mapping?.InternalPort ?? 0), masquerade: (flags & LB_FLAG.dsr) === 0, path };
}

function isFor({ PortMappings: [mapping], Flags: flags = 0 }: LoadBalancerSettings, { protocol, port, family }: Packet): boolean {
  const own: IPFamily = (flags & LB_FLAG.ipv6) === 0 ? "IPv4" : "IPv6";
  return mapping?.Protocol === PROTOCOL_NUMBER[protocol] && mapping.ExternalPort === port && own === family;
}

/** Any that spreads will do: which one VFP has is not known. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0;
  return hash >>> 8;
}
