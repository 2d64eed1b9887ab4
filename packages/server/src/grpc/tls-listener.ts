import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { createServer, type AddressInfo, type Socket } from "node:net";
import {
  createSecureContext,
  createServer as createTlsServer,
  type PeerCertificate,
  type SecureContextOptions,
  type TLSSocket,
} from "node:tls";
import type { TlsFiles } from "@turnout/client/protocol";
import { ProxyError, type Log } from "@turnout/core";
import type { ConnectionGate, ConnectionShare } from "./connection-gate.ts";

/** Where to listen, and with which certificates. */
export interface TlsListenerOptions {
  readonly host: string;
  /** 0 takes any free one. */
  readonly port: number;
  readonly files: TlsFiles;
  readonly log: Log;
  readonly handshakeMs: number;
  /** Bounds connections by address and certificate. */
  readonly gate: ConnectionGate;
  /** How many connections a certificate may have. */
  readonly shareOf: (certificate: PeerCertificate) => ConnectionShare;
  /** A connection whose certificate is good. */
  readonly onConnection: (socket: TLSSocket) => void;
}

/** A port that is listened on. */
export interface TlsListener {
  readonly port: number;
  close(): void;
}

const REFUSALS_MAX = 1_000;

/** Tells of handshakes that failed: of each peer's trouble once, for it tries again and again. */
class RefusalLog {
  readonly #log: Log;
  readonly #said = new Set<string>();

  constructor(log: Log) {
    this.#log = log;
  }

  failed(error: Error, { authorizationError, remoteAddress: from }: TLSSocket): void {
    // Who has a certificate that is no good is hung up on before this is called: the reason is left, the address is not.
    const unverified: unknown = authorizationError;
    const reason = typeof unverified === "string" ? `its certificate: ${unverified}` : String(error);
    const problem = `${from} ${reason}`;
    const fields = from === undefined ? { reason } : { from, reason };
    if (this.#said.size >= REFUSALS_MAX) this.#said.clear();
    this.#log[this.#said.has(problem) ? "debug" : "warn"]("a client is refused, its TLS handshake failed", fields);
    this.#said.add(problem);
  }
}

/** The certificates in use, read again when a file changed. */
class Certificates {
  readonly #files: TlsFiles;
  #stamp = "";

  constructor(files: TlsFiles) {
    this.#files = files;
  }

  /** What to use from now on; undefined: as before. @throws {ProxyError} `invalid_object` when they can't be used. */
  async changed(): Promise<SecureContextOptions | undefined> {
    const { ca, cert, key } = this.#files;
    try {
      const stats = await Promise.all([ca, cert, key].map((path) => stat(path)));
      const stamp = stats.map(({ mtimeMs, ino, size }) => `${mtimeMs} ${ino} ${size}`).join();
      if (stamp === this.#stamp) return undefined;
      const [caText, certText, keyText] = await Promise.all([ca, cert, key].map((path) => readFile(path, "utf8")));
      const context: SecureContextOptions = { ca: caText, cert: certText, key: keyText, minVersion: "TLSv1.2" };
      // Throws for files that do not fit each other, as in the middle of a rotation.
      createSecureContext(context);
      // It does not throw for an authority that is none, and takes the whole world's for an empty one.
      void new X509Certificate(caText ?? "");
      this.#stamp = stamp;
      return context;
    } catch (error) {
      throw ProxyError.from(error, "invalid_object", "the certificates can't be used", { object: `${ca}, ${cert}, ${key}` });
    }
  }
}

/**
 * Listen for mutual TLS: whoever has no certificate of our authority does not get as far as HTTP/2.
 *
 * Edges: connections that the gate refuses don't get as far as TLS. Files are looked at when somebody connects, so a rotated certificate counts from the next connection on; files
 * that can't be used are reported, and the last good ones stay.
 * @throws {ProxyError} `invalid_object` for files that can't be used at the start; `already_exists`, `permission_denied` for
 * an address that can't be had.
 */
export async function listenTls(options: TlsListenerOptions): Promise<TlsListener> {
  const { host, port, files, log, handshakeMs, gate, shareOf, onConnection } = options;
  const certificates = new Certificates(files);
  const first = await certificates.changed();
  const tls = createTlsServer({
    ...first,
    requestCert: true,
    // Not by us, later: without it a session that was begun without a certificate could be resumed as a good one.
    rejectUnauthorized: true,
    ALPNProtocols: ["h2"],
    handshakeTimeout: handshakeMs,
  });
  const refusals = new RefusalLog(log);
  tls.on("secureConnection", (socket) => {
    if (gate.admit(socket, shareOf(socket.getPeerCertificate()))) onConnection(socket);
  });
  tls.on("tlsClientError", (error, socket) => {
    refusals.failed(error, socket);
    // Node leaves it to this listener: without this a client that says nothing keeps its connection.
    socket.destroy();
  });
  const take = async (socket: Socket): Promise<void> => {
    try {
      const next = await certificates.changed();
      if (next !== undefined) {
        tls.setSecureContext(next);
        log.info("new certificates are in use");
      }
    } catch (error) {
      log.warn("changed certificates can't be used, the last good ones stay", { error });
    }
    tls.emit("connection", socket);
  };
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", (error) => log.debug("a connection broke", { error }));
    gate.arrive(socket, () => void take(socket));
  });
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code === "EACCES" ? "permission_denied" : "already_exists";
    throw ProxyError.from(error, code, "the port can't be listened on", { object: `${host}:${port}` });
  }
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
