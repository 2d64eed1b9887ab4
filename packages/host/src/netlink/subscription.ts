import { ProxyError } from "@turnout/core";
import type { RawNetlinkSocket } from "netlink";
import { messagesOf } from "./message.ts";
import type { NetlinkMessage } from "./message.ts";
import { closeLater, openSocket } from "./socket.ts";

/** What a subscription tells its owner. Called inside a native callback: keep it short. */
export interface Subscriber {
  onMessage(message: NetlinkMessage): void;
  /** The kernel dropped notifications; from now on they come again. */
  onLost(): void;
  /** There will be no more. */
  onFailure(error: ProxyError): void;
}

/**
 * Receive a protocol's multicast notifications until closed.
 *
 * Edges: subscribed when this returns. When notifications come faster than they are read (ENOBUFS) the package closes
 * the socket; a new one takes its place, and then `onLost` is called, so that reading the state afterwards misses nothing.
 * An open subscription keeps the process alive.
 * @throws {ProxyError} what {@link openSocket} throws, and `tool_failed` when a group can't be joined.
 */
export function subscribe(protocol: number, groups: readonly number[], subscriber: Subscriber): { close(): void } {
  let isClosed = false;
  let socket = join(protocol, groups, subscriber, onBroken);
  function onBroken(): void {
    // Not inside the callback: the package is still busy with the broken socket.
    setImmediate(() => {
      if (isClosed) return;
      try {
        socket = join(protocol, groups, subscriber, onBroken);
        subscriber.onLost();
      } catch (error) {
        subscriber.onFailure(ProxyError.from(error, "tool_failed", "the notifications could not be subscribed to again"));
      }
    });
  }
  return {
    close(): void {
      if (isClosed) return;
      isClosed = true;
      closeLater(socket);
    },
  };
}

function join(protocol: number, groups: readonly number[], subscriber: Subscriber, onBroken: () => void): RawNetlinkSocket {
  const socket = openSocket(protocol);
  let isBroken = false;
  const giveUp = (): void => {
    if (isBroken) return;
    isBroken = true;
    closeLater(socket);
    onBroken();
  };
  socket.on("error", giveUp);
  socket.on("message", (datagram, info) => {
    if (isBroken || info.port !== 0) return;
    try {
      for (const message of messagesOf(datagram)) subscriber.onMessage(message);
    } catch (error) {
      // netlink 0.3.0 loses what is thrown in here.
      subscriber.onFailure(ProxyError.from(error, "tool_failed", "a netlink notification could not be read"));
    }
  });
  try {
    for (const group of groups) socket.addMembership(group);
  } catch (error) {
    closeLater(socket);
    throw ProxyError.from(error, "tool_failed", "netlink notifications can't be subscribed to");
  }
  return socket;
}
