import { ProxyError } from "@turnout/core";
import type { Clock } from "@turnout/core";
import { EventQueue } from "../queue/event-queue.ts";
import { messagesOf } from "./message.ts";
import type { NetlinkMessage } from "./message.ts";
import type { MulticastSocket } from "./multicast-socket.ts";

/** How often a watch looks at a socket that can't tell when something has come, in ms. */
export const POLL_EVERY_MS = 100;
/** How often it looks at one that can: in case a signal was lost. */
export const REST_MS = 10_000;
/** From a signal to the look, in ms: what comes together is taken together. */
export const GATHER_MS = 20;
/** Datagrams taken in one go before others get their turn. */
const MAX_DATAGRAMS_PER_LOOK = 500;

/** What a watch makes of notifications. */
export interface WatchHandlers<T> {
  readonly onMessage: (message: NetlinkMessage, put: (event: T) => void) => void;
  /** The kernel dropped notifications; from here on they are whole again. */
  readonly onLost: (put: (event: T) => void) => void;
  /** Events kept for a slow reader; more are replaced by `overflow`. */
  readonly limit: number;
  readonly overflow: T;
}

/**
 * Turn a multicast socket into events until the signal aborts; then, and when the reader breaks off, it is closed.
 *
 * Edges: the socket is open when this returns, so state read afterwards misses nothing. An open watch keeps the
 * process alive. A reader that is late gets `overflow` instead of what it missed.
 * @throws {ProxyError} what `open` throws.
 */
export function watch<T>(open: () => MulticastSocket, handlers: WatchHandlers<T>, clock: Clock, signal: AbortSignal): AsyncIterable<T> {
  const returned = new AbortController();
  const ended = AbortSignal.any([signal, returned.signal]);
  const queue = new EventQueue<T>(handlers.limit, handlers.overflow, () => returned.abort());
  if (ended.aborted) {
    queue.end();
    return queue;
  }
  const socket = open();
  const close = (): void => {
    socket.close();
    queue.end();
  };
  ended.addEventListener("abort", close, { once: true });
  follow(socket, handlers, queue, clock, ended).catch((error: unknown) => {
    queue.fail(ProxyError.from(error, "tool_failed", "netlink notifications can't be read"));
    socket.close();
  });
  return queue;
}

async function follow<T>(
  socket: MulticastSocket,
  handlers: WatchHandlers<T>,
  queue: EventQueue<T>,
  clock: Clock,
  ended: AbortSignal,
): Promise<void> {
  const put = (event: T): void => queue.put(event);
  let bell = new AbortController();
  // A large commit rings thousands of times, and each abort makes an error, even a second one.
  const ring = (): void => {
    if (!bell.signal.aborted) bell.abort();
  };
  const restMs = socket.onArrival(ring) ? REST_MS : POLL_EVERY_MS;
  ended.addEventListener("abort", ring, { once: true });
  let hasLost = false;
  while (!ended.aborted) {
    // Before the look: what comes during it rings the new one.
    bell = new AbortController();
    const { isEmpty, hasOverrun } = look(socket, (message) => {
      if (!hasLost) handlers.onMessage(message, put);
    });
    hasLost ||= hasOverrun;
    // Only now: until the socket is empty the kernel drops more without another word, and what still comes is in pieces.
    if (hasLost && isEmpty) {
      handlers.onLost(put);
      hasLost = false;
    }
    if (isEmpty) await clock.sleep(restMs, bell.signal);
    if (!isEmpty || bell.signal.aborted) await clock.sleep(isEmpty ? GATHER_MS : 1, ended);
  }
}

/** Take what is there, up to a bound. */
function look(
  socket: MulticastSocket,
  onMessage: (message: NetlinkMessage) => void,
): { readonly isEmpty: boolean; readonly hasOverrun: boolean } {
  let hasOverrun = false;
  for (let taken = 0; taken < MAX_DATAGRAMS_PER_LOOK; taken++) {
    const received = socket.receive();
    if (received === "nothing") return { isEmpty: true, hasOverrun };
    if (received === "lost") hasOverrun = true;
    else if (!hasOverrun) for (const message of messagesOf(received)) onMessage(message);
  }
  return { isEmpty: false, hasOverrun };
}
