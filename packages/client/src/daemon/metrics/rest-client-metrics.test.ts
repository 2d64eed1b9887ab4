import { afterEach, beforeEach, expect, test } from "vitest";
import { MetricSet } from "./metric-set.ts";
import { registerRestClient, type RestClientMetrics } from "./rest-client-metrics.ts";

const GET = { verb: "GET", host: "10.0.0.1:6443" };
let set: MetricSet;
let reported: RestClientMetrics;
beforeEach(() => {
  set = new MetricSet();
  reported = registerRestClient(set, { nowMs: () => 1_000 });
});
afterEach(() => set.close());

async function lines(): Promise<readonly string[]> {
  return (await set.reply()).body.split("\n");
}

test("a request is counted at its last answer, and its earlier attempts as retries", async () => {
  reported.retried(GET, 503);
  reported.retried(GET, undefined);
  reported.answered(GET, 200);
  reported.answered(GET, undefined);
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'rest_client_requests_total{code="200",method="GET",host="10.0.0.1:6443"} 1',
      'rest_client_requests_total{code="<error>",method="GET",host="10.0.0.1:6443"} 1',
      'rest_client_request_retries_total{code="503",verb="GET",host="10.0.0.1:6443"} 1',
      'rest_client_request_retries_total{code="<error>",verb="GET",host="10.0.0.1:6443"} 1',
    ]),
  );
});

test("durations are in seconds, sizes in bytes; a request without a body has no response size", async () => {
  reported.finished(GET, 250, 0, 70_000);
  reported.finished(GET, 50, 0, undefined);
  reported.throttled(GET, 0);
  expect(await lines()).toEqual(
    expect.arrayContaining([
      'rest_client_request_duration_seconds_bucket{le="0.1",verb="GET",host="10.0.0.1:6443"} 1',
      'rest_client_request_duration_seconds_bucket{le="0.25",verb="GET",host="10.0.0.1:6443"} 2',
      'rest_client_request_size_bytes_count{verb="GET",host="10.0.0.1:6443"} 2',
      'rest_client_response_size_bytes_sum{verb="GET",host="10.0.0.1:6443"} 70000',
      'rest_client_response_size_bytes_count{verb="GET",host="10.0.0.1:6443"} 1',
      'rest_client_rate_limiter_duration_seconds_count{verb="GET",host="10.0.0.1:6443"} 1',
    ]),
  );
});

test("a plugin's certificate: +Inf without one, else the seconds it has left at the scrape", async () => {
  expect(await lines()).toContain("rest_client_exec_plugin_ttl_seconds +Inf");
  reported.pluginCalled(0, "no_error");
  reported.pluginCertificateExpires(61_000);
  reported.pluginCertificateRotated(1_200_000);
  expect(await lines()).toEqual(
    expect.arrayContaining([
      "rest_client_exec_plugin_ttl_seconds 60",
      'rest_client_exec_plugin_call_total{code="0",call_status="no_error"} 1',
      "rest_client_exec_plugin_certificate_rotation_age_sum 1200",
    ]),
  );
});

test("connections and their authorities", async () => {
  reported.transportCreated(1);
  reported.authoritiesReloaded();
  expect(await lines()).toEqual(
    expect.arrayContaining([
      "rest_client_transport_cache_entries 1",
      'rest_client_transport_create_calls_total{result="miss"} 1',
      'rest_client_transport_ca_reload_total{result="success",reason="updated"} 1',
    ]),
  );
});
