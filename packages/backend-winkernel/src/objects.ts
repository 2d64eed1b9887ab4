import { hostPort } from "@turnout/core/backend";
import type { IPFamily, Protocol } from "@turnout/core/backend";

/**
 * An endpoint that load balancers name. Key: its address. Rows share it, which counts its references.
 *
 * Edges: at an address that this host has, the CNI's own endpoint is it, whatever rows say of the node: then nothing is made.
 */
export interface EndpointObject {
  readonly kind: "endpoint";
  readonly key: string;
  /** Rows say that it is on this host, so nothing is ever made for it. Not compared: HNS alone knows where it is. */
  readonly isLocal?: boolean;
  /** What it has where it is on another host. */
  readonly value: {
    /** Lower case with `-`. */
    readonly mac: string;
    /** On an overlay the host that has it; "" otherwise. */
    readonly provider: string;
    /** What it has that we never give one, e.g. a second endpoint at its address. */
    readonly odd?: string;
  };
}

/** The endpoint whose address load balancers of an overlay take as source. Key: its address; value: its MAC address. */
export interface SourceVipObject {
  readonly kind: "source-vip";
  readonly key: string;
  readonly value: string;
}

/** A load balancer. Key: `TCP 10.96.0.1:80`, for a node port `TCP *:30080`. */
export interface LoadBalancerObject {
  readonly kind: "loadbalancer";
  readonly key: string;
  readonly value: {
    /** Addresses of endpoints, sorted; `@name` stands for an endpoint of this host by its name. */
    readonly endpoints: readonly string[];
    /** Of the endpoints. */
    readonly port: number;
    /** See LB_FLAG. */
    readonly flags: number;
    /** See PORT_FLAG. */
    readonly portFlags: number;
    /** See DISTRIBUTION. */
    readonly distribution: number;
    /** "": none. */
    readonly sourceVip: string;
    /** What it has that we never give one, e.g. a second port. */
    readonly odd?: string;
  };
}

/** Everything this backend keeps in HNS. */
export type WinkernelObject = EndpointObject | SourceVipObject | LoadBalancerObject;

/** Where a load balancer answers. */
export interface Frontend {
  readonly protocol: Protocol;
  /** "": a node port. */
  readonly vip: string;
  readonly port: number;
}

/** Write the key of a load balancer. */
export function frontendKey({ protocol, vip, port }: Frontend): string {
  return `${protocol} ${vip === "" ? `*:${port}` : hostPort(vip, port)}`;
}

/** Read the key of a load balancer. */
export function readFrontend(key: string): Frontend {
  const [protocol = "", address = ""] = key.split(" ");
  const colon = address.lastIndexOf(":");
  const vip = address.slice(0, colon).replace(/^\[(.*)\]$/, "$1");
  return { protocol: protocol as Protocol, vip: vip === "*" ? "" : vip, port: Number(address.slice(colon + 1)) };
}

/** Tell the family of a canonical address. */
export function familyOfAddress(address: string): IPFamily {
  return address.includes(":") ? "IPv6" : "IPv4";
}

/** Write an endpoint that is known by its name. */
export function byName(name: string): string {
  return `@${name}`;
}
