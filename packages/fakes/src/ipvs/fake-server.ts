import type { Clock } from "@turnout/core";
import { hostPort } from "@turnout/core";
import type { RealServer, VirtualServerKey, VirtualServerSettings } from "@turnout/host/ipvs/model";

/** A connection's entry, until its time is over. */
interface Entry {
  readonly isActive: boolean;
  readonly endMs: number;
}

/** A real server of the fake, with the connections it has. */
export class FakeRealServer implements RealServer {
  readonly address: string;
  readonly port: number;
  readonly forward = "masquerade";
  weight: number;
  readonly #clock: Clock;
  #entries: Entry[] = [];

  constructor(clock: Clock, { address, port, weight }: Pick<RealServer, "address" | "port" | "weight">) {
    this.#clock = clock;
    this.address = address;
    this.port = port;
    this.weight = weight;
  }

  get activeConnections(): number {
    return this.#alive().filter(({ isActive }) => isActive).length;
  }

  get inactiveConnections(): number {
    return this.#alive().filter(({ isActive }) => !isActive).length;
  }

  /** It has one connection more, for a while. */
  connect(isActive: boolean, seconds: number): void {
    this.#entries.push({ isActive, endMs: this.#clock.nowMs() + seconds * 1_000 });
  }

  /** As it is now. */
  view(): RealServer {
    const { address, port, weight, forward, activeConnections, inactiveConnections } = this;
    return { address, port, weight, forward, activeConnections, inactiveConnections };
  }

  #alive(): readonly Entry[] {
    const nowMs = this.#clock.nowMs();
    this.#entries = this.#entries.filter(({ endMs }) => endMs > nowMs);
    return this.#entries;
  }
}

/** A virtual server of the fake. */
export interface FakeVirtualServer {
  readonly key: VirtualServerKey;
  settings: VirtualServerSettings;
  /** By address and port. */
  readonly servers: Map<string, FakeRealServer>;
  /** Deleted real servers, whose connections are theirs again when they come back. */
  readonly trash: Map<string, FakeRealServer>;
  /** How many connections it has had. */
  connections: number;
  /** Where clients stay, by their network. */
  readonly templates: Map<string, { readonly server: FakeRealServer; readonly endMs: number }>;
}

/** Name a real server within its virtual server. */
export function serverName({ address, port }: { readonly address: string; readonly port: number }): string {
  return hostPort(address, port);
}
