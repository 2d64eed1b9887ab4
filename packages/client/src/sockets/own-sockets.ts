import { hostPort } from "@turnout/core";
import type { Transport } from "./listeners.ts";
import type { SocketAddress } from "./sockets.ts";

/** The sockets on which this process answers the clients of Services: it never connects to one of them, as its clients would come back to it for ever. */
export class OwnSockets {
  readonly #keys = new Set<string>();

  /** A socket is being opened. */
  add(transport: Transport, at: SocketAddress): void {
    this.#keys.add(keyOf(transport, at));
  }

  /** It is closed. */
  delete(transport: Transport, at: SocketAddress): void {
    this.#keys.delete(keyOf(transport, at));
  }

  /** Whether a connection to an address would come to one of them. A socket on all addresses counts for those that the host has, which `isLocal` tells. */
  has(transport: Transport, to: SocketAddress, isLocal: (to: SocketAddress) => boolean): boolean {
    if (this.#keys.has(keyOf(transport, to))) return true;
    const any = to.ip.includes(":") ? "::" : "0.0.0.0";
    return this.#keys.has(keyOf(transport, { ip: any, port: to.port })) && isLocal(to);
  }
}

function keyOf(transport: Transport, { ip, port }: SocketAddress): string {
  return `${transport} ${hostPort(ip, port)}`;
}
