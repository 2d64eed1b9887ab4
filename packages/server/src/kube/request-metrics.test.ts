import { Metrics } from "@turnout/client/daemon";
import { createApiServer, type ApiServer } from "@turnout/lab";
import { beforeEach, expect, it } from "vitest";
import { KubeRun, service, watching } from "../test-support/kube.ts";
import { eventually, TestClock, untilTestEnds } from "../test-support/world.ts";
import { EventQueue } from "./events/event-queue.ts";

let api: ApiServer;
let run: KubeRun;
let metrics: Metrics;

beforeEach(async () => {
  run = await KubeRun.create();
  api = untilTestEnds(await createApiServer());
  api.apply(service("cart"));
  metrics = untilTestEnds(new Metrics({ clock: { nowMs: () => Date.now() }, version: "0.1.0" }));
});

/** Samples of a metric by what is in its braces, the host left out. */
async function samples(name: string): Promise<Readonly<Record<string, number>>> {
  const { body } = await metrics.reply();
  const host = new URL(api.url).host;
  const lines = body.split("\n").filter((line) => line.startsWith(`${name}{`));
  return Object.fromEntries(
    lines.map((line) => {
      expect(line).toContain(`host="${host}"`);
      const [, labels = "", value] = /\{(.*)\} (\S+)$/.exec(line) ?? [];
      return [labels.replace(`,host="${host}"`, ""), Number(value)];
    }),
  );
}

it("counts lists, watches and what is posted as client-go does", async () => {
  api.misbehave({ watchList: 422 });
  api.misbehave({ only: { kind: "Service", verb: "list" }, status: 500, times: 1 });
  const clock = new TestClock(20);
  const events = new EventQueue({ nodeName: "node-1", hostname: "host-1" }, clock, () => undefined);
  events.put({ reason: "Starting", action: "StartKubeProxy", note: "", type: "Normal" });
  await run.follow(api, {}, { requestMetrics: metrics.restClient, events, clock });
  await watching(api);
  await eventually(() => api.objects("Event").length === 1);
  await expect
    .poll(() => samples("rest_client_requests_total"))
    .toEqual({
      // Four lists and four watches.
      'code="200",method="GET"': 8,
      'code="201",method="POST"': 1,
      'code="422",method="GET"': 4,
      'code="500",method="GET"': 1,
    });
  // The watches that were refused, and those that live, are none of these.
  expect(await samples("rest_client_request_duration_seconds_count")).toEqual({ 'verb="GET"': 5, 'verb="POST"': 1 });
  expect(await samples("rest_client_rate_limiter_duration_seconds_sum")).toEqual({ 'verb="GET"': 0, 'verb="POST"': 0 });
  const sent = await samples("rest_client_request_size_bytes_sum");
  expect([sent['verb="GET"'], (sent['verb="POST"'] ?? 0) > 300]).toEqual([0, true]);
  const received = await samples("rest_client_response_size_bytes_sum");
  expect([(received['verb="GET"'] ?? 0) > 500, (received['verb="POST"'] ?? 0) > 300]).toEqual([true, true]);
});

it("tells when the API server was last heard of for each kind, bookmarks too", async () => {
  await run.follow(api, {}, { onHeard: metrics.heard });
  await watching(api);
  const heard = async (): Promise<Readonly<Record<string, number>>> => {
    const { body } = await metrics.reply();
    const found = body.matchAll(/^turnout_source_last_heard_timestamp_seconds\{kind="(\w+)"\} (\S+)$/gm);
    return Object.fromEntries([...found].map(([, kind = "", value]) => [kind, Number(value)]));
  };
  const before = await heard();
  expect(Object.keys(before).sort()).toEqual(["EndpointSlice", "Node", "Service", "ServiceCIDR"]);
  await expect.poll(() => Date.now() / 1000).toBeGreaterThan(before["Node"] ?? 0);
  api.bookmark();
  await expect.poll(async () => (await heard())["Node"]).toBeGreaterThan(before["Node"] ?? 0);
});

it("counts requests that got no answer as errors", async () => {
  await run.follow(api, {}, { requestMetrics: metrics.restClient });
  await watching(api);
  await api.pause();
  await expect.poll(async () => (await samples("rest_client_requests_total"))['code="<error>",method="GET"'] ?? 0).toBeGreaterThan(4);
  const { body } = await metrics.reply();
  expect(body).toContain('rest_client_transport_create_calls_total{result="miss"} 1');
  await api.resume();
});

it("counts a login program that is not there", async () => {
  const exec = "user: { exec: { apiVersion: client.authentication.k8s.io/v1, command: ./nobody } }";
  const kubeconfig = (): string => api.kubeconfig({ token: undefined }).replace("user: {}", exec);
  await run.start({ kubeconfig }, {}, { requestMetrics: metrics.restClient });
  await expect
    .poll(async () => (await metrics.reply()).body)
    .toMatch(/rest_client_exec_plugin_call_total\{code="1",call_status="plugin_not_found_error"\} \d/);
});
