import { Metrics } from "@turnout/client/daemon";
import { ProxyError } from "@turnout/core";
import { createAuthority } from "@turnout/lab";
import { afterEach, expect, it } from "vitest";
import { AccessMeter } from "./access-meter.ts";
import { PLAIN_TLS, type KubeEndpoint } from "./kube-access.ts";

const NOW_MS = Date.now();
const metrics = new Metrics({ clock: { nowMs: () => NOW_MS }, version: "0.1.0" });

afterEach(() => metrics.close());

function endpoint(login: KubeEndpoint["login"], ca = "one"): KubeEndpoint {
  return { server: new URL("https://192.0.2.1"), headers: {}, tls: { ...PLAIN_TLS, ca }, proxyUrl: undefined, login };
}

/** Samples of metrics about the login program and authorities, buckets aside. */
async function samples(): Promise<readonly string[]> {
  const { body } = await metrics.reply();
  return body.split("\n").filter((line) => /^rest_client_(?:exec_plugin|transport_ca)/.test(line) && !line.includes("_bucket"));
}

it("counts what a login program gives once, how long its certificate lives, and what it fails with", async () => {
  const meter = new AccessMeter(metrics.restClient);
  meter.given(endpoint(undefined), NOW_MS);
  expect(await samples()).toContain("rest_client_exec_plugin_ttl_seconds +Inf");
  // From an hour ago for a day from now.
  const authority = createAuthority("ca", NOW_MS);
  const login = { authorization: undefined, ...authority.issue({ commonName: "proxy" }) };
  for (let times = 0; times < 3; times += 1) meter.given(endpoint({ ...login }), NOW_MS);
  meter.given(endpoint({ ...login, ...authority.issue({ commonName: "proxy" }) }), NOW_MS);
  meter.failed(new ProxyError("tool_failed", "the login failed", { cause: new Error("spawn ./login ENOENT") }));
  meter.failed(new ProxyError("tool_failed", "the login failed", { cause: new Error("exit 1") }));
  // What is wrong with files is no call.
  meter.failed(new ProxyError("not_found", "the kubeconfig"));
  const said = await samples();
  expect(said).toEqual(
    expect.arrayContaining([
      'rest_client_exec_plugin_call_total{code="0",call_status="no_error"} 2',
      'rest_client_exec_plugin_call_total{code="1",call_status="plugin_not_found_error"} 1',
      'rest_client_exec_plugin_call_total{code="1",call_status="plugin_execution_error"} 1',
      "rest_client_exec_plugin_certificate_rotation_age_count 1",
    ]),
  );
  const seconds = (name: string): number => Math.round(Number(said.find((line) => line.startsWith(`${name} `))?.split(" ")[1]));
  expect(seconds("rest_client_exec_plugin_ttl_seconds") / 3600).toBeCloseTo(24);
  expect(seconds("rest_client_exec_plugin_certificate_rotation_age_sum") / 3600).toBeCloseTo(1);
});

it("counts other certificate authorities, but not the first", async () => {
  const meter = new AccessMeter(metrics.restClient);
  for (const ca of ["one", "one", "two"]) meter.given(endpoint(undefined, ca), NOW_MS);
  expect(await samples()).toContain('rest_client_transport_ca_reload_total{result="success",reason="updated"} 1');
});
