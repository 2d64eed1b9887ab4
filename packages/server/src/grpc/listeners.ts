import type { Socket } from "node:net";
import { parseTarget, type TlsFiles } from "@turnout/client/protocol";
import { ProxyError, type Clock, type Log } from "@turnout/core";
import { listenTls, type TlsListenerOptions } from "./tls-listener.ts";
import { listenUnix, type UnixListenerOptions } from "./unix-listener.ts";

/** Something that takes connections. */
export interface Listener {
  /** Of a TLS address. */
  readonly port?: number;
  /** Why nobody new can connect; "" or undefined when they can. */
  readonly problem?: string;
  close(): void | Promise<void>;
}

/** Where to listen, and with what. */
export interface ListenOptions {
  readonly listen: readonly string[];
  readonly tls?: TlsFiles | undefined;
  readonly mode?: number | undefined;
  readonly owner?: UnixListenerOptions["owner"];
  readonly clock: Clock;
  readonly log: Log;
}

/** What becomes of connections, by the kind of address they came to. */
export interface ConnectionHandlers {
  readonly unix: (socket: Socket) => void;
  readonly tls: Pick<TlsListenerOptions, "handshakeMs" | "gate" | "shareOf" | "onConnection">;
}

const DEFAULT_MODE = 0o660;

/** Listen on every address, or on none. @throws {ProxyError} what the first one that can't be listened on fails with. */
export async function listenAll(options: ListenOptions, handlers: ConnectionHandlers): Promise<readonly Listener[]> {
  const listeners: Listener[] = [];
  try {
    for (const text of options.listen) listeners.push(await listenOn(text, options, handlers));
    return listeners;
  } catch (error) {
    for (const listener of listeners) await listener.close();
    throw error;
  }
}

async function listenOn(text: string, options: ListenOptions, handlers: ConnectionHandlers): Promise<Listener> {
  const { tls: files, mode = DEFAULT_MODE, owner, clock, log } = options;
  const target = parseTarget(text);
  if (target.kind === "unix") {
    const listener = await listenUnix({ path: target.path, mode, owner, onConnection: handlers.unix, clock, log });
    log.info("serving the node-state API", { listen: text, mode: mode.toString(8).padStart(4, "0") });
    return listener;
  }
  if (files === undefined) {
    const hint = "pass --tls-ca, --tls-cert and --tls-key";
    throw new ProxyError("invalid_object", "listening on TLS needs certificates", { object: JSON.stringify(text), hint });
  }
  const listener = await listenTls({ host: target.host, port: target.port, files, log, ...handlers.tls });
  log.info("serving the node-state API", { listen: text });
  return listener;
}
