import { wallMs, type ClockReading } from "@turnout/core";
import type { MetricSet } from "./metric-set.ts";

/** A request to the API server, as metrics name it. */
export interface RestRequest {
  /** The HTTP method in capitals, e.g. `GET`; a watch is a `GET` too. */
  readonly verb: string;
  /** The API server's host and port as the URL has them, e.g. `10.0.0.1:6443`; the port 443 of https is left out, also where the URL has it. */
  readonly host: string;
}

/** Why a credentials plugin's call ended, in client-go's words. */
export type ExecPluginCallStatus = "no_error" | "plugin_execution_error" | "plugin_not_found_error" | "client_internal_error";

/**
 * Hears what a client of the API server does. The names and the moments are client-go's, so that its dashboards read the same.
 *
 * Shape: every request ends in one `answered`; each earlier attempt of it is a `retried`; all but watches end in one `finished` too.
 * Edges: a call never throws and costs no more than a map's lookup.
 * @source client-go v0.36.3 tools/metrics/metrics.go, rest/request.go, rest/with_retry.go
 */
export interface RestClientMetrics {
  /** The last attempt of a request, also of a watch, got its status; undefined: it got none (refused, broken off, timed out). */
  answered(request: RestRequest, status: number | undefined): void;
  /** An attempt failed and the request is sent again. */
  retried(request: RestRequest, status: number | undefined): void;
  /** A request other than a watch is over, with all its attempts. `responseBytes` is the body's length before it is decoded; undefined: none came. */
  finished(request: RestRequest, durationMs: number, requestBytes: number, responseBytes: number | undefined): void;
  /** A request waited this long for the client's own limit of requests (`--kube-api-qps`), 0 included. */
  throttled(request: RestRequest, durationMs: number): void;
  /** A credentials plugin of the kubeconfig was called; `exitCode` is 0 for `no_error`, and 1 where the program gave none. */
  pluginCalled(exitCode: number, status: ExecPluginCallStatus): void;
  /** The client certificate that the plugin gave expires then; undefined: it gave none. */
  pluginCertificateExpires(atMs: number | undefined): void;
  /** The plugin's client certificate was replaced after it was valid for so long. */
  pluginCertificateRotated(ageMs: number): void;
  /** There are other certificate authorities in their file now. */
  authoritiesReloaded(): void;
  /** A new set of connections was made, because there is none yet or the credentials are others; `open` is how many there are now. */
  transportCreated(open: number): void;
}

const LATENCY_BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];
/** 64 bytes to 16 MiB. */
const SIZE_BUCKETS = [64, 256, 512, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216];
/** 10 minutes to 4 years, in seconds. */
const ROTATION_BUCKETS = [600, 1800, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000];
const HOST = ["verb", "host"] as const;

/**
 * Register what is counted of requests to the API server, and get what hears of them.
 *
 * @param clock a certificate's remaining life is asked for at each scrape
 * @source component-base v0.36.3 metrics/prometheus/restclient/metrics.go: names, HELP, labels, buckets
 */
export function registerRestClient(set: MetricSet, clock: ClockReading): RestClientMetrics {
  const results = set.counter(
    "rest_client_requests_total",
    "[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.",
    ["code", "method", "host"],
  );
  const retries = set.counter(
    "rest_client_request_retries_total",
    "[ALPHA] Number of request retries, partitioned by status code, verb, and host.",
    ["code", "verb", "host"],
  );
  const latency = set.histogram(
    "rest_client_request_duration_seconds",
    "[ALPHA] Request latency in seconds. Broken down by verb, and host.",
    HOST,
    LATENCY_BUCKETS,
  );
  const limiter = set.histogram(
    "rest_client_rate_limiter_duration_seconds",
    "[ALPHA] Client side rate limiter latency in seconds. Broken down by verb, and host.",
    HOST,
    LATENCY_BUCKETS,
  );
  const size = (what: "request" | "response", help: string) =>
    set.histogram(`rest_client_${what}_size_bytes`, `[ALPHA] ${help} size in bytes. Broken down by verb and host.`, HOST, SIZE_BUCKETS);
  const sizes = { request: size("request", "Request"), response: size("response", "Response") };
  return {
    answered: ({ verb, host }, status) => results.inc({ code: codeOf(status), method: verb, host }),
    retried: ({ verb, host }, status) => retries.inc({ code: codeOf(status), verb, host }),
    finished: ({ verb, host }, durationMs, requestBytes, responseBytes) => {
      latency.observe({ verb, host }, durationMs / 1000);
      sizes.request.observe({ verb, host }, requestBytes);
      if (responseBytes !== undefined) sizes.response.observe({ verb, host }, responseBytes);
    },
    throttled: ({ verb, host }, durationMs) => limiter.observe({ verb, host }, durationMs / 1000),
    ...registerPlugin(set, clock),
    ...registerTransport(set),
  };
}

/** Errors are arbitrary text, and a label must have few values: client-go says `<error>` for all of them. */
function codeOf(status: number | undefined): string {
  return status === undefined ? "<error>" : String(status);
}

type PluginMetrics = Pick<RestClientMetrics, "pluginCalled" | "pluginCertificateExpires" | "pluginCertificateRotated">;

function registerPlugin(set: MetricSet, clock: ClockReading): PluginMetrics {
  const calls = set.counter(
    "rest_client_exec_plugin_call_total",
    "[ALPHA] Number of calls to an exec plugin, partitioned by the type of event encountered (no_error, plugin_execution_error, plugin_not_found_error, client_internal_error) and an optional exit code. The exit code will be set to 0 if and only if the plugin call was successful.",
    ["code", "call_status"],
  );
  let expiresMs: number | undefined;
  set.computed(
    "gauge",
    "rest_client_exec_plugin_ttl_seconds",
    "[ALPHA] Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by the auth exec plugin. The value is in seconds until certificate expiry (negative if already expired). If auth exec plugins are unused or manage no TLS certificates, the value will be +INF.",
    [],
    () => [[{}, expiresMs === undefined ? Infinity : (expiresMs - wallMs(clock)) / 1000]],
  );
  const rotation = set.histogram(
    "rest_client_exec_plugin_certificate_rotation_age",
    "[ALPHA] Histogram of the number of seconds the last auth exec plugin client certificate lived before being rotated. If auth exec plugin client certificates are unused, histogram will contain no data.",
    [],
    ROTATION_BUCKETS,
  );
  return {
    pluginCalled: (exitCode, status) => calls.inc({ code: String(exitCode), call_status: status }),
    pluginCertificateExpires: (atMs) => void (expiresMs = atMs),
    pluginCertificateRotated: (ageMs) => rotation.observe(ageMs / 1000),
  };
}

function registerTransport(set: MetricSet): Pick<RestClientMetrics, "authoritiesReloaded" | "transportCreated"> {
  const reloads = set.counter(
    "rest_client_transport_ca_reload_total",
    "[ALPHA] Number of times a CA reload is attempted, partitioned by the result and reason for the reload attempt",
    ["result", "reason"],
  );
  const entries = set.gauge("rest_client_transport_cache_entries", "[ALPHA] Number of transport entries in the internal cache.", []);
  const creations = set.counter(
    "rest_client_transport_create_calls_total",
    "[ALPHA] Number of calls to get a new transport, partitioned by the result of the operation hit: obtained from the cache, miss: created and added to the cache, miss-gc: recreated and added back to the cache after being garbage collected, uncacheable: created and not cached",
    ["result"],
  );
  return {
    authoritiesReloaded: () => reloads.inc({ result: "success", reason: "updated" }),
    transportCreated: (open) => {
      entries.set(open);
      creations.inc({ result: "miss" });
    },
  };
}
