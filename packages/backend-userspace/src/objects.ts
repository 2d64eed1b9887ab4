import type { ListenerObject } from "@turnout/client/sockets";

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
