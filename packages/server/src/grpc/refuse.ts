import { status, type ServerDuplexStream } from "@grpc/grpc-js";
import { ProxyError, type Log } from "@turnout/core";
import type { PeerRights } from "./peer-rights.ts";
import type { StreamGate, StreamSlot } from "./stream-gate.ts";
import type { Traffic } from "./traffic.ts";

/** A stream as grpc-js hands it in; messages are bytes, so that bad ones can be answered. A list of them, which is not empty, is written at once. */
export type WatchCall = ServerDuplexStream<Buffer, Buffer | readonly Buffer[]>;

/** Runs a stream if there is room for one more, and refuses it otherwise. */
export type Admit = (call: WatchCall, rights: PeerRights, run: (slot: StreamSlot) => Promise<void>) => Promise<void>;

/** gRPC's status for our codes. */
const STATUS: Readonly<Partial<Record<ProxyError["code"], status>>> = {
  feed_lost: status.INVALID_ARGUMENT,
  invalid_object: status.INVALID_ARGUMENT,
  permission_denied: status.PERMISSION_DENIED,
  limit_reached: status.RESOURCE_EXHAUSTED,
  timed_out: status.DEADLINE_EXCEEDED,
  canceled: status.UNAVAILABLE,
};

/** What hears of refusals. */
export interface RefusalContext {
  readonly traffic: Traffic;
  readonly log: Log;
  /** Hears of each stream that was refused because its client has its share. */
  readonly onGreedy?: (client: string) => void;
}

/** Have a gate decide which streams run. */
export function admitBy(gate: StreamGate, context: RefusalContext): Admit {
  const slotFor = (call: WatchCall, rights: PeerRights): StreamSlot | undefined => {
    try {
      return gate.arrive(rights, (error) => refuse(call, error, context));
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      refuse(call, error, context);
      if (!rights.mayAskForAll) context.onGreedy?.(rights.client);
      return undefined;
    }
  };
  return async (call, rights, run) => {
    const slot = slotFor(call, rights);
    if (slot === undefined) return;
    try {
      await run(slot);
    } finally {
      slot.leave();
    }
  };
}

/** End a stream with an error its client can read, and count it. */
export function refuse(call: WatchCall, error: ProxyError, { traffic, log }: RefusalContext): void {
  log.debug("a watcher was refused", { error });
  endWith(call, STATUS[error.code] ?? status.INTERNAL, error.message, traffic);
}

/** End a stream with one of gRPC's codes, and count it. */
export function endWith(call: WatchCall, code: status, details: string, traffic: Traffic): void {
  traffic.refusal(code);
  call.emit("error", { code, details });
}
