import type { RestClientMetrics, RestRequest } from "@turnout/client/daemon";

/** What of a request is known before it is sent. */
export interface MeteredRequest extends RestRequest {
  readonly isWatch: boolean;
  /** Of the body; 0 without one. */
  readonly requestBytes: number;
}

/**
 * Tells metrics of one request at the moments at which client-go does.
 *
 * Edges: a watch is told of when it is answered, and not again when it ends. Without metrics nothing happens.
 * @source client-go v0.36.3 rest/request.go request, Watch
 */
export class RequestMeter {
  readonly #metrics: RestClientMetrics | undefined;
  readonly #request: MeteredRequest;
  readonly #nowMs: () => number;
  readonly #startMs: number;
  #responseBytes: number | undefined;

  /** The request begins now. */
  constructor(metrics: RestClientMetrics | undefined, request: MeteredRequest, nowMs: () => number) {
    this.#metrics = metrics;
    this.#request = request;
    this.#nowMs = nowMs;
    this.#startMs = nowMs();
    // There is no limit of requests that one could wait for.
    if (!request.isWatch) metrics?.throttled(request, 0);
  }

  /** The connection was a stale one, and the request is sent again. */
  retried(): void {
    this.#metrics?.retried(this.#request, undefined);
  }

  /** The last attempt got this status. */
  answered(status: number): void {
    this.#metrics?.answered(this.#request, status);
    this.#responseBytes = 0;
  }

  /** The last attempt got no status. */
  failed(): void {
    this.#metrics?.answered(this.#request, undefined);
    this.finished();
  }

  /** Some of the answer's body came. */
  received(bytes: number): void {
    this.#responseBytes = (this.#responseBytes ?? 0) + bytes;
  }

  /** Nothing comes any more; once. */
  finished(): void {
    const { isWatch, requestBytes } = this.#request;
    if (!isWatch) this.#metrics?.finished(this.#request, this.#nowMs() - this.#startMs, requestBytes, this.#responseBytes);
  }
}
