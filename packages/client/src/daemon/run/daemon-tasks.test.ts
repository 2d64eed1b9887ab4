import { afterEach, expect, test } from "vitest";
import { Metrics } from "../metrics/metrics.ts";
import { toyConfig } from "../../test-support/toy-proxy.ts";
import { eventually, freePort, toyWorld } from "../../test-support/toys.ts";
import type { RunConfig } from "../config/run-config.ts";
import { serveMetrics } from "./daemon-tasks.ts";

const stop: { abort: AbortController; done: Promise<void>; metrics: Metrics }[] = [];
afterEach(async () => {
  for (const { abort, done, metrics } of stop.splice(0)) {
    abort.abort();
    await done;
    metrics.close();
  }
});

/** Serve with this configuration; resolves to what asks it. */
async function serve(overrides: Partial<RunConfig> = {}): Promise<(path: string, init?: RequestInit) => Promise<Response>> {
  const [port, abort] = [await freePort(), new AbortController()];
  const metrics = new Metrics({ clock: { nowMs: () => 1 }, version: "0.1.0" });
  const config = toyConfig({ metricsBindAddress: { ip: "127.0.0.1", port }, ...overrides });
  const health = () => ({ isHealthy: true, lastUpdatedMs: undefined, families: new Map() });
  const world = toyWorld();
  const view = (): never => {
    throw new Error("nobody asks how this proxy is");
  };
  const options = { config, world, metrics, health, view, hostAddresses: () => [], eligibility: () => ({ isEligible: true, reason: "" }) };
  stop.push({ abort, metrics, done: serveMetrics(options, abort.signal) });
  const ask = (path: string, init?: RequestInit): Promise<Response> => fetch(`http://127.0.0.1:${port}${path}`, init);
  await eventually("the server answers", () =>
    ask("/proxyMode").then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  return ask;
}

test("/statusz and /flagz are answered unless their gates are off, and /statusz lists what is there", async () => {
  const ask = await serve();
  expect(await (await ask("/statusz")).text()).toContain(
    "\nBinary version: 0.1.0\nEmulation version: 1.37\nPaths: /configz /flagz /healthz /metrics /proxyMode /turnout\n",
  );
  expect(await (await ask("/flagz")).text()).toContain("\nmasquerade-all=false\n");
  const without = await serve({ hasStatusz: false, hasFlagz: false });
  expect([(await without("/statusz")).status, (await without("/flagz")).status]).toEqual([404, 404]);
});

test("/debug/pprof/ is answered with profiling alone", async () => {
  expect((await (await serve())("/debug/pprof/")).status).toBe(404);
  const ask = await serve({ isProfiled: true });
  expect(await (await ask("/debug/pprof")).text()).toContain("go tool pprof");
  expect(await (await ask("/statusz")).text()).toContain("Paths: /configz /debug /flagz ");
});

test("/metrics/slis counts health checks until it is reset", async () => {
  const ask = await serve();
  const slis = async (): Promise<string> => await (await ask("/metrics/slis")).text();
  expect(await slis()).not.toContain('name="ping"');
  await ask("/healthz");
  expect(await slis()).toContain('kubernetes_healthchecks_total{type="healthz",name="ping",status="success"} 1');
  expect(await (await ask("/metrics/slis", { method: "DELETE" })).text()).toBe("metrics reset\n");
  expect(await slis()).not.toContain('name="ping"');
});
