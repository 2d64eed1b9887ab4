/** What HNS keeps, as far as we look. Networks are the CNI's: they are only read. */
export type HnsKind = "network" | "endpoint" | "loadBalancer";

/** What we make and remove. */
export type OwnKind = Exclude<HnsKind, "network">;

/**
 * The Host Network Service of this host: everything that this backend touches of Windows, JSON in and JSON out.
 *
 * Shape: who carries it out opens and closes handles, frees what it was given, and keeps the calls in the order in which they were made.
 * Every call rejects with an `HnsError` that has HNS's own HRESULT, or with a `ProxyError` where there is no HNS to ask.
 */
export interface HnsHost {
  /** What HNSCall answers to `GET /globals/version`. */
  version(signal: AbortSignal): Promise<string>;
  /** The properties of all of one kind, one text each. One that went while it was looked at is left out. */
  list(kind: HnsKind, signal: AbortSignal): Promise<readonly string[]>;
  /** Make an endpoint in a network; resolves to its properties. */
  createEndpoint(networkId: string, settings: string, signal: AbortSignal): Promise<string>;
  /** Make a load balancer; resolves to its properties. */
  createLoadBalancer(settings: string, signal: AbortSignal): Promise<string>;
  /** Give a load balancer other settings, all of them; resolves to its properties. */
  modifyLoadBalancer(id: string, settings: string, signal: AbortSignal): Promise<string>;
  /** Delete one. */
  remove(kind: OwnKind, id: string, signal: AbortSignal): Promise<void>;
  /** Wait until the call that is under way has given back what it holds. @throws {ProxyError} `canceled` when it is aborted before. */
  close(signal: AbortSignal): Promise<void>;
}
