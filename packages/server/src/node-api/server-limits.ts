/** Bounds, and times in ms. */
export interface ServerLimits {
  /** Watch streams at a time that have said what they want; default 5,000. */
  readonly streamsMax: number;
  /** Streams of one certificate, or, of one that may ask for any node and over a socket, for one node; default 16. A certificate has twice as many connections. */
  readonly streamsOfClientMax: number;
  /** Nodes times settings that are answered at a time; default 5,000. */
  readonly requestsMax: number;
  /** Nodes, and the cluster, whose state is held whole for kpng's protocols at a time; default 64. */
  readonly kpngImagesMax: number;
  /** Bytes of a client's message; default 64 KiB. */
  readonly requestBytesMax: number;
  /** How long a view nobody watches is kept; default 2 minutes. */
  readonly lingerMs: number;
  /** A client is pinged so often, and gone when it does not answer in time; default 30 s and 10 s. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
  /** A TLS handshake is done within this time, or the connection is closed; default 10 s. */
  readonly handshakeMs: number;
}

/** The defaults. */
export const SERVER_LIMITS: ServerLimits = {
  streamsMax: 5_000,
  streamsOfClientMax: 16,
  requestsMax: 5_000,
  kpngImagesMax: 64,
  requestBytesMax: 65_536,
  lingerMs: 120_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
  handshakeMs: 10_000,
};
