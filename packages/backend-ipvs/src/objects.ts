import type { Protocol } from "@turnout/core/backend";
import { hostPort } from "@turnout/core/backend";
import type { RulesObject } from "@turnout/host/iptables/text";
import type { IpvsTimeouts } from "@turnout/host/ipvs/model";

/** A set that is there, whatever is in it. Key: its name; value: its type and options in ipset's words. */
export interface SetObject {
  readonly kind: "set";
  readonly key: string;
  readonly value: string;
}

/** One member of a set. Key: `KUBE-CLUSTER-IP 10.96.0.1,tcp:80`, as `ipset save` prints it, addresses in canonical form. */
export interface EntryObject {
  readonly kind: "entry";
  readonly key: string;
  readonly value: true;
}

/** A virtual server. Key: `TCP 10.96.0.1:80`. */
export interface ServiceObject {
  readonly kind: "service";
  readonly key: string;
  readonly value: {
    readonly scheduler: string;
    /** Session affinity in seconds; 0: none. */
    readonly persistentSeconds: number;
    /** A flag says that it is ours: it is an inner one, or at an address of the host, which the host may lose. */
    readonly isMarked: boolean;
  };
}

/** A real server of a virtual server, and its weight. Key: `TCP 10.96.0.1:80 10.1.1.5:8080`. */
export interface ServerObject {
  readonly kind: "server";
  readonly key: string;
  readonly value: number;
}

/** A service address on the dummy device. Key: the address. */
export interface AddressObject {
  readonly kind: "address";
  readonly key: string;
  readonly value: true;
}

/** A kernel parameter. Key: its dotted name. */
export interface SysctlObject {
  readonly kind: "sysctl";
  readonly key: string;
  readonly value: string;
}

/** How long IPVS remembers idle connections of one sort, in seconds. */
export interface TimeoutObject {
  readonly kind: "timeout";
  readonly key: keyof IpvsTimeouts;
  readonly value: number;
}

/** Everything this backend keeps in the kernel. */
export type IpvsObject =
  RulesObject | SetObject | EntryObject | ServiceObject | ServerObject | AddressObject | SysctlObject | TimeoutObject;

/** An address and port in one protocol. */
export interface VirtualAddress {
  readonly protocol: Protocol;
  readonly address: string;
  readonly port: number;
}

/** Write the key of a virtual server. */
export function serviceKey({ protocol, address, port }: VirtualAddress): string {
  return `${protocol} ${hostPort(address, port)}`;
}

/** Read the key of a virtual server or of a real one. */
export function readKey(key: string): VirtualAddress & { readonly server: { readonly ip: string; readonly port: number } | undefined } {
  const [protocol = "", virtual = "", real] = key.split(" ");
  const { ip: address, port } = readHostPort(virtual);
  return { protocol: protocol as Protocol, address, port, server: real === undefined ? undefined : readHostPort(real) };
}

function readHostPort(text: string): { readonly ip: string; readonly port: number } {
  const colon = text.lastIndexOf(":");
  return { ip: text.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(text.slice(colon + 1)) };
}
