import { hostPort } from "@turnout/core";
import type { IPFamily, Protocol } from "@turnout/core";

/**
 * Flags of a virtual server. What the scheduler flags mean depends on the scheduler: `schedulerFlag1` is sh's and mh's `fallback`,
 * `schedulerFlag2` their `port` (the client's port counts, too), which kube-proxy sets for mh and calls its source hash.
 * @source linux/ip_vs.h IP_VS_SVC_F_*
 */
export const SERVICE_FLAG = {
  persistent: 0x1,
  onePacket: 0x4,
  schedulerFlag1: 0x8,
  schedulerFlag2: 0x10,
  schedulerFlag3: 0x20,
} as const;

/** How packets get to a real server, by number. @source linux/ip_vs.h IP_VS_CONN_F_FWD_MASK */
export const FORWARDING = ["masquerade", "local", "tunnel", "route", "bypass"] as const;

/** What makes a virtual server that one. */
export interface VirtualServerKey {
  readonly family: IPFamily;
  readonly protocol: Protocol;
  /** Canonical. */
  readonly address: string;
  readonly port: number;
}

/** What may change of a virtual server without its real servers and connections going. */
export interface VirtualServerSettings {
  /** e.g. `rr`; up to 15 characters. The kernel loads its module. */
  readonly scheduler: string;
  /** Bits of {@link SERVICE_FLAG}, and unknown ones; without the kernel's own. */
  readonly flags: number;
  /** How long a client stays with its real server, in seconds; 0 where it isn't persistent. */
  readonly timeoutSeconds: number;
  /** Clients with this many bits in common stay together: 32 or 128 for each by itself. */
  readonly clientPrefixLength: number;
}

/** What the kernel counted for a virtual server since it was added. */
export interface VirtualServerCounts {
  /** Connections that were sent to a real server, and flows of UDP. */
  readonly connections: number;
  /** From clients. */
  readonly bytesIn: number;
  /** To clients. */
  readonly bytesOut: number;
}

/** Where a virtual server sends connections. Of the virtual server's family. */
export interface RealServerKey {
  /** Canonical. */
  readonly address: string;
  readonly port: number;
}

/** A real server as it is in the kernel. */
export interface RealServer extends RealServerKey {
  /** 0: connections it has stay, and no new ones come. */
  readonly weight: number;
  readonly forward: (typeof FORWARDING)[number];
  /** TCP connections that are established, SCTP ones; of UDP none. */
  readonly activeConnections: number;
  /** All other connections that still have an entry, e.g. those in FIN_WAIT, and UDP. */
  readonly inactiveConnections: number;
}

/** A virtual server as it is in the kernel. */
export interface VirtualServer extends VirtualServerKey, VirtualServerSettings {
  /** In no order that means something. */
  readonly realServers: readonly RealServer[];
}

/** The virtual servers of one family. */
export interface IpvsListing {
  readonly virtualServers: readonly VirtualServer[];
  /** Virtual servers by firewall mark, which are never ours: the marks. */
  readonly firewallMarks: readonly number[];
}

/** One change, in the words of ipvsadm. Real servers are always masqueraded to and have no thresholds. */
export type IpvsOperation =
  | { readonly verb: "add-service" | "edit-service"; readonly service: VirtualServerKey & VirtualServerSettings }
  | { readonly verb: "delete-service"; readonly service: VirtualServerKey }
  | {
      readonly verb: "add-server" | "edit-server";
      readonly service: VirtualServerKey;
      readonly server: RealServerKey & { readonly weight: number };
    }
  | { readonly verb: "delete-server"; readonly service: VirtualServerKey; readonly server: RealServerKey };

/** How long connections are remembered without a packet, in seconds. */
export interface IpvsTimeouts {
  readonly tcp: number;
  /** After a FIN. */
  readonly tcpFin: number;
  readonly udp: number;
}

/** Name a virtual server for people, and apart from all others: `TCP 10.96.0.1:80`. */
export function virtualServerName({ protocol, address, port }: VirtualServerKey): string {
  return `${protocol} ${hostPort(address, port)}`;
}

/** Name what an operation is about: `TCP 10.96.0.1:80`, `TCP 10.96.0.1:80 -> 10.1.0.5:8080`. */
export function operationObject(operation: IpvsOperation): string {
  const service = virtualServerName(operation.service);
  return "server" in operation ? `${service} -> ${hostPort(operation.server.address, operation.server.port)}` : service;
}
