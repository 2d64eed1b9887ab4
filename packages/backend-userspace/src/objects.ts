import type { Origin, Protocol } from "@turnout/core/backend";

/** What this backend answers with: SCTP is left to the kernel. */
export type Transport = Exclude<Protocol, "SCTP">;

/** One line of a listener's policy: the first whose origin fits a client decides. */
export type ListenerRule = { readonly from: Origin; readonly to: "cluster" | "local" | "reject" | "drop" };

/** Everything a listener needs to decide by itself. Endpoints are `ip:port`. */
export type ListenerValue = {
  /** Key of the row it serves. */
  readonly row: string;
  readonly transport: Transport;
  /** Where its socket is. */
  readonly ip: string;
  readonly port: number;
  /** The row's destination it stands for: another than the socket's where it is mapped; address "" is a node port. */
  readonly asked: { readonly address: string; readonly port: number };
  readonly rules: readonly ListenerRule[];
  /** The pools its rules use; empty when none does. */
  readonly cluster: readonly string[];
  readonly local: readonly string[];
  readonly sourceRanges?: readonly string[];
  readonly affinitySeconds?: number;
  /** Tell endpoints by this version of the PROXY protocol who the client is. */
  readonly proxyProtocol?: "v1" | "v2";
};

/** How clients are told apart: one object a family. */
export interface HostObject {
  readonly kind: "host";
  readonly key: "self";
  /** The host's addresses without ours, and the ranges of pods that count as this node's own. */
  readonly value: { readonly addresses: readonly string[]; readonly pods: readonly string[] };
}

/** An address on our own device, so that a socket can be bound to it. */
export interface AddressObject {
  readonly kind: "address";
  readonly key: string;
  readonly value: { readonly device: string };
}

/**
 * One destination of a row, answered at one address and port. Key: `TCP 10.96.0.10:80`.
 *
 * Edges: an address that a row has as its own beats node ports on it, so the two are of different kinds and share a socket.
 */
export interface ListenerObject {
  readonly kind: "listener" | "node-port";
  readonly key: string;
  readonly value: ListenerValue;
}

/** What of a row can't be answered here: nothing on the host, but said once when it comes into force. Key: the row. */
export interface LeftOutObject {
  readonly kind: "left-out";
  readonly key: string;
  readonly value: { readonly addresses: readonly string[]; readonly why: string };
}

/** Whatever this backend keeps. */
export type UserspaceObject = HostObject | AddressObject | ListenerObject | LeftOutObject;

/** The device that holds our addresses. What is on it is ours, and nothing else is. */
export const OWN_DEVICE = "turnout0";
