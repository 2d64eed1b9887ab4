import type { Origin, Protocol } from "@turnout/core";

/** What is answered with sockets: Node has none of SCTP. */
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
