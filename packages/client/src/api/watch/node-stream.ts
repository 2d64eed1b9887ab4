import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import { ProxyError, type ErrorCode } from "@turnout/core";
import type { ServiceError, VerifyOptions } from "@grpc/grpc-js";
import { WatchRequest, WatchResponse } from "../../gen/turnout/node/v1/node.ts";
import { parseApiTarget, type ApiTarget, type TlsFiles } from "./target.ts";

/** The method's name on the wire. */
export const WATCH_PATH = "/turnout.node.v1.NodeState/Watch";
/** One message holds at most so many bytes: a part of a change set, or a single row that is larger than a part. */
export const MESSAGE_BYTES_MAX = 67_108_864;

/** A stream to a node-state server of some protocol; messages are bytes. */
export interface ByteStream {
  send(bytes: Uint8Array): void;
  /** Break it off; {@link ByteStream.ended} resolves soon after. */
  cancel(): void;
  /** Resolves, never rejects, when the stream is over: to why. */
  readonly ended: Promise<ProxyError>;
}

/** A stream to a node-state server. */
export interface NodeStream extends Omit<ByteStream, "send"> {
  send(request: WatchRequest): void;
}

/** What a stream is opened with. */
export interface ByteStreamOptions {
  /** The method on the wire. */
  readonly path: string;
  readonly tls: TlsFiles | undefined;
  /** An idle connection is tried out so often. */
  readonly keepaliveMs: number;
  /** Who does not answer that in time is gone; default 10 s. */
  readonly keepaliveTimeoutMs?: number;
  /** May throw a ProxyError, which ends the stream with it; any other error is the peer's nonsense. */
  readonly onMessage: (bytes: Buffer) => void;
}

/** Sent for a target without a name: one that nobody has (RFC 2606). */
const NO_SERVER_NAME = "address.invalid";
const KEEPALIVE_MS = 30_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;

/** gRPC's numbers for what a node-state server refuses. Everything else may be mended by trying again. */
const CODES: Readonly<Record<number, ErrorCode>> = {
  3: "invalid_object",
  7: "permission_denied",
  12: "host_unsupported",
  16: "permission_denied",
};
const UNIMPLEMENTED = 12;
/** What to try when no connection comes about, by what the system says. */
const CONNECT_HINTS: Readonly<Record<string, string>> = {
  EACCES: "see --socket-mode and --socket-owner of turnout serve, and who may enter the directories above",
  ENOENT: "is a node-state server (turnout serve) running there?",
  ECONNREFUSED: "no process listens there: is a node-state server (turnout serve) running?",
  "Failed to connect": "the process that listens there closes the connection; over TLS it may refuse our certificate, and its log says why",
};

/** The target as gRPC writes it. */
function addressOf(target: ApiTarget): string {
  if (target.kind === "unix") return `unix:${target.path}`;
  return `dns:${target.host.includes(":") ? `[${target.host}]` : target.host}:${target.port}`;
}

async function readPems({ ca, cert, key }: TlsFiles): Promise<Readonly<Record<keyof TlsFiles, Buffer>>> {
  try {
    const [caPem, certPem, keyPem] = await Promise.all([readFile(ca), readFile(cert), readFile(key)]);
    return { ca: caPem, cert: certPem, key: keyPem };
  } catch (error) {
    throw ProxyError.from(error, "invalid_object", "a file for TLS can't be read", { object: `${ca}, ${cert}, ${key}` });
  }
}

/** Make something of TLS files. @throws {ProxyError} `invalid_object` for files that don't fit each other, as in the middle of a rotation. */
function fitting<T>(tls: TlsFiles | undefined, make: () => T): T {
  try {
    return make();
  } catch (error) {
    const object = tls === undefined ? "" : `${tls.ca}, ${tls.cert}, ${tls.key}`;
    throw ProxyError.from(error, "invalid_object", "the certificates can't be used", { object });
  }
}

/** Say an error of gRPC in our words. */
export function streamError(error: ServiceError, target: string): ProxyError {
  const about = { object: target, cause: error };
  const details = error.details || error.message;
  const [, unconnected] = /^No connection established\. Last error: (?:Error: )?(.*?)\.? Resolution note:/s.exec(details) ?? [];
  if (unconnected !== undefined) {
    const [word = ""] = /\b(?:EACCES|ENOENT|ECONNREFUSED|Failed to connect)\b/.exec(unconnected) ?? [];
    const hint = CONNECT_HINTS[word];
    // Trying again does not help who has no right to the socket.
    const code = word === "EACCES" ? "permission_denied" : "feed_lost";
    return new ProxyError(code, `no connection comes about (${unconnected})`, hint === undefined ? about : { ...about, hint });
  }
  const hint =
    Number(error.code) === UNIMPLEMENTED ? "is it a turnout? this one speaks turnout.node.v1, and kpng's globalv1 and localv1" : undefined;
  const what = `the node-state API ended the stream (${details})`;
  return new ProxyError(CODES[error.code] ?? "feed_lost", what, hint === undefined ? about : { ...about, hint });
}

/**
 * Open a stream of its own connection; gRPC is loaded when this is first called.
 *
 * Edges: `onResponse` may throw a ProxyError, which ends the stream with it. TLS files are read for each stream, so rotated
 * ones count from the next one on.
 * @throws {ProxyError} `invalid_object` for a target that is none, or files that can't be read; being unable to connect
 * shows in `ended`.
 */
export async function openNodeStream(target: string, onResponse: (response: WatchResponse) => void, tls?: TlsFiles): Promise<NodeStream> {
  const { send, cancel, ended } = await openByteStream(target, {
    path: WATCH_PATH,
    tls,
    keepaliveMs: KEEPALIVE_MS,
    onMessage: (bytes) => onResponse(WatchResponse.decode(bytes)),
  });
  return { send: (request) => send(WatchRequest.encode(request).finish()), cancel, ended };
}

/** Open a stream as {@link openNodeStream} does, of any protocol. @throws {ProxyError} as that. */
export async function openByteStream(target: string, options: ByteStreamOptions): Promise<ByteStream> {
  const { path, tls, keepaliveMs, keepaliveTimeoutMs = KEEPALIVE_TIMEOUT_MS, onMessage } = options;
  const parsed = parseApiTarget(target, tls);
  const { Client, credentials, Metadata } = await import("@grpc/grpc-js");
  const pems = parsed.kind === "tls" && tls !== undefined ? await readPems(tls) : undefined;
  // A TLS server name may not be an address (RFC 6066), and gRPC sends none only when there is another one to send.
  const address = parsed.kind === "tls" && isIP(parsed.host) !== 0 ? parsed.host : undefined;
  const identity: VerifyOptions =
    address === undefined ? {} : { checkServerIdentity: (_name, certificate) => checkServerIdentity(address, certificate) };
  const channel = fitting(tls, () => {
    if (pems === undefined) return credentials.createInsecure();
    // Nobody else minds an authority that is none, and then nobody is trusted.
    void new X509Certificate(pems.ca);
    return credentials.createSsl(pems.ca, pems.key, pems.cert, identity);
  });
  const client = new Client(addressOf(parsed), channel, {
    "grpc.keepalive_time_ms": keepaliveMs,
    "grpc.keepalive_timeout_ms": keepaliveTimeoutMs,
    "grpc.max_receive_message_length": MESSAGE_BYTES_MAX,
    // Retries would keep what was sent, for ever on a stream that never ends; the link has its own.
    "grpc.enable_retries": 0,
    // A connection of our own: a shared one would wait out another stream's failures.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_http_proxy": 0,
    ...(address === undefined ? {} : { "grpc.ssl_target_name_override": NO_SERVER_NAME }),
  });
  const same = (bytes: Buffer): Buffer => bytes;
  const call = client.makeBidiStreamRequest<Buffer, Buffer>(path, same, same, new Metadata());
  const { promise: ended, resolve } = Promise.withResolvers<ProxyError>();
  const end = (reason: ProxyError): void => {
    resolve(reason);
    call.cancel();
    client.close();
  };
  call.on("data", (bytes: Buffer) => {
    try {
      onMessage(bytes);
    } catch (error) {
      end(ProxyError.from(error, "feed_lost", "what the other side sent is no message of the node-state API", { object: target }));
    }
  });
  call.on("error", (error: ServiceError) => end(streamError(error, target)));
  call.on("end", () => end(new ProxyError("feed_lost", "the node-state API ended the stream", { object: target })));
  return {
    send: (bytes) => void call.write(Buffer.from(bytes)),
    cancel: () => end(new ProxyError("canceled", "the stream was given up", { object: target })),
    ended,
  };
}
