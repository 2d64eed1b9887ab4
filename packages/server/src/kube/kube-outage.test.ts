import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { createApiServer, type ApiServer, type ApiServerOptions } from "@turnout/lab";
import { beforeEach, describe, expect, it } from "vitest";
import { createKubeSource, type KubeSourceOptions, type KubeTimings } from "./kube-source.ts";
import { asked, cidr, KubeRun, node, service, watching } from "../test-support/kube.ts";
import { eventually, RecordingSink, TestClock, type RecordingLog, untilTestEnds } from "../test-support/world.ts";

let api: ApiServer;
let run: KubeRun;
let sink: RecordingSink;
let log: RecordingLog;

/** Waits as in production; the clock cuts them short. */
const PATIENT = { backoffBaseMs: 800, backoffMaxMs: 30_000, cheapBackoffMaxMs: 5_000, credentialsMs: 10_000, steadyMs: 5_000 };

/** What was said of each try of a kind that failed. */
function retriesOf(kind: string): RecordingLog["lines"] {
  return log.lines.filter(({ line }) => line === `debug ${kind}: still failing` || line.startsWith(`warn ${kind}: the feed failed`));
}

beforeEach(async () => {
  run = await KubeRun.create();
  ({ sink, log } = run);
});

async function start(options: ApiServerOptions = {}, objects: readonly unknown[] = []): Promise<void> {
  api = untilTestEnds(await createApiServer(options));
  for (const object of objects) api.apply(object);
}

/** Follow an API server that has these objects, until all its watches are open. */
async function follow(objects: readonly unknown[], timings?: Partial<KubeTimings>, rest?: Partial<KubeSourceOptions>): Promise<void> {
  await start({}, objects);
  await run.follow(api, timings, rest);
  await watching(api);
}

describe("410", () => {
  for (const form of ["an ERROR event", "an HTTP status"]) {
    it(`as ${form} leads to a list that is compared: only what changed is handed on, what vanished goes`, async () => {
      await start({}, [service("same"), service("changed"), service("vanished")]);
      if (form === "an HTTP status") api.misbehave({ expiredAsStatus: true });
      api.misbehave({ watchList: 422 });
      await run.follow(api);
      await watching(api);
      sink.drain();
      await api.pause();
      api.apply(service("changed", { type: "NodePort" }));
      api.delete("Service", "shop", "vanished");
      api.apply(service("new"));
      api.compact();
      await api.resume();
      await sink.until(({ calls }) => calls.includes("=Service"));
      expect(sink.drain().filter((call) => call.includes("Service shop"))).toEqual([
        "+Service shop/changed",
        "+Service shop/new",
        "-Service shop/vanished",
      ]);
      expect(asked(api, "services").some((query) => !query.has("watch") && !query.has("resourceVersion"))).toBe(true);
    });
  }

  it("does the same by watch-list", async () => {
    await follow([service("same"), service("vanished")]);
    sink.drain();
    await api.pause();
    api.delete("Service", "shop", "vanished");
    api.compact();
    await api.resume();
    await sink.until(({ calls }) => calls.includes("=Service"));
    expect(sink.drain().filter((call) => call.includes("Service shop"))).toEqual(["-Service shop/vanished"]);
  });

  it("after an outage of many tries leads to a list at once, and nothing is waited for any more", async () => {
    await follow([service("cart")], PATIENT, { clock: new TestClock(5) });
    await api.pause();
    await eventually(() => retriesOf("Service").length > 12);
    api.apply(service("till"));
    api.compact();
    await api.resume();
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    const waits = retriesOf("Service").map(({ fields }) => fields["retryInMs"]);
    // The first is of the watch that broke; then no connection came about. The 410 was no failure.
    expect(waits.slice(0, 6)).toEqual([800, 800, 1_600, 3_200, 5_000, 5_000]);
    expect(new Set(waits.slice(6))).toEqual(new Set([5_000]));
    expect(retriesOf("Service").filter(({ fields }) => String(fields["error"]).includes("answered 410"))).toEqual([]);
    expect(log.of("info").filter((line) => line.startsWith("info Service: listing again"))).toHaveLength(1);
  });

  it("again and again is not answered with a list each time", async () => {
    await follow([service("cart")], PATIENT, { clock: new TestClock(5) });
    // The second of them is of the watch-list, in whose place a list comes.
    api.misbehave({ only: { kind: "Service" }, status: 410, times: 5 });
    api.dropWatches("end");
    await eventually(() => retriesOf("Service").length >= 3 && api.watchCount === 4);
    expect(retriesOf("Service").map(({ fields }) => fields["retryInMs"])).toEqual([800, 1_600, 3_200, 6_400]);
  });

  it("has its like in a revision from the future: the API server was restored from a backup", async () => {
    await follow([service("cart"), service("till"), service("gone")]);
    const { url } = api;
    await api.close();
    sink.drain();
    await start({ port: Number(new URL(url).port) }, [service("cart")]);
    await sink.until(({ objects }) => !objects.has("Service shop/gone") && !objects.has("Service shop/till"));
    expect(sink.objects.has("Service shop/cart")).toBe(true);
  });
});

describe("a bad server", () => {
  it("that is away takes nothing away, and is found again", async () => {
    await follow([service("cart"), node("node-1")]);
    sink.drain();
    await api.pause();
    await eventually(() => log.of("debug").filter((line) => line.includes("still failing")).length > 8);
    expect(sink.drain()).toEqual([]);
    api.apply(service("till"));
    await api.resume();
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    expect(sink.drain()).toEqual(["+Service shop/till"]);
    await watching(api);
    // One warning and one recovery for each trouble, however many kinds had it and however many tries it took.
    const warned = log.lines.filter(({ line }) => line.startsWith("warn "));
    expect(warned.length).toBeGreaterThan(0);
    expect(new Set(warned.map(({ fields }) => fields["error"])).size).toBe(warned.length);
    expect(log.of("info").filter((line) => line.includes("works again"))).toHaveLength(warned.length);
  });

  it("is asked again when Retry-After is over, not before", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ only: { kind: "Service" }, status: 429, retryAfterSeconds: 7, times: 1 });
    const clock = new TestClock(20);
    await run.follow(api, {}, { clock });
    // random 0.5 adds a quarter.
    expect(clock.sleeps).toContain(8_750);
  });

  it("that takes the request and never answers is given up", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ hang: true, times: 4 });
    await run.follow(api, { answerTimeoutMs: 100 });
    expect(sink.objects.has("Service shop/cart")).toBe(true);
    expect(log.lines.some(({ fields }) => String(fields["error"]).includes("no answer in time"))).toBe(true);
  });

  it("that is slow is waited for", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ delayMs: 150 });
    await run.follow(api);
    expect(log.of("warn")).toEqual([]);
  });
});

describe("an API that isn't there", () => {
  it("counts as an empty list for ServiceCIDR, and is asked for again", async () => {
    await start({ without: ["ServiceCIDR"] }, [service("cart")]);
    await run.follow(api);
    await eventually(() => asked(api, "servicecidrs").length >= 3);
    expect(log.of("warn")).toEqual([]);
    expect(log.of("info").filter((line) => line.includes("ServiceCIDR"))).toHaveLength(1);
  });

  it("counts as empty, too, where the rights are missing", async () => {
    await start({}, [service("cart"), cidr("kubernetes")]);
    const heal = api.misbehave({ only: { kind: "ServiceCIDR" }, status: 403 });
    await run.follow(api);
    expect(sink.objects.has("ServiceCIDR /kubernetes")).toBe(false);
    heal();
    await sink.until(({ objects }) => objects.has("ServiceCIDR /kubernetes"));
  });

  it("is asked for again soon, then ever more rarely: an API server that has just started forbids what it will allow", async () => {
    await start({}, [service("cart"), cidr("kubernetes")]);
    const clock = new TestClock(20);
    await run.follow(api, { backoffBaseMs: 800, missingApiMs: 600_000, steadyMs: 0 }, { clock });
    await watching(api);
    const heal = api.misbehave({ only: { kind: "ServiceCIDR" }, status: 403 });
    api.dropWatches("end");
    await eventually(() => clock.sleeps.includes(600_000));
    const waits = clock.sleeps.filter((ms) => ms >= 800 && ms <= 600_000 && Math.log2(ms / 800) % 1 === 0);
    expect(waits.slice(0, 4)).toEqual([800, 1_600, 3_200, 6_400]);
    // What it said before still holds.
    expect(sink.objects.has("ServiceCIDR /kubernetes")).toBe(true);
    heal();
    api.apply(cidr("more"));
    await sink.until(({ objects }) => objects.has("ServiceCIDR /more"));
  });

  it("is an error for Services: nothing is synced without them", async () => {
    await start({ without: ["Service"] });
    await run.start(api);
    await eventually(() => log.of("warn").some((line) => line.startsWith("warn Service:")));
    expect(sink.isSynced).toBe(false);
  });
});

describe("credentials", () => {
  it("are read again after a 401, and tried at once, but only once", async () => {
    await start({ token: "first" }, [service("cart")]);
    const clock = new TestClock(20);
    await run.follow(api, { backoffBaseMs: 11_000, cheapBackoffMaxMs: 22_000, credentialsMs: 11_000, steadyMs: 0 }, { clock });
    await watching(api);
    api.misbehave({ only: { kind: "Service" }, status: 401, times: 1 });
    api.dropWatches("end");
    await eventually(() => asked(api, "services").length === 3 && api.watchCount === 4);
    expect(clock.sleeps).not.toContain(11_000);
    api.misbehave({ only: { kind: "Service" }, status: 401, times: 2 });
    api.dropWatches("end");
    await eventually(() => asked(api, "services").length === 6 && api.watchCount === 4);
    expect(retriesOf("Service").map(({ fields }) => fields["retryInMs"])).toEqual([22_000]);
    expect(clock.sleeps.filter((ms) => ms === 11_000)).toHaveLength(2);
  });

  // Waits of days, cut short to a few ms for each look at the credentials: nothing but what changes on disk ends them in time.
  const ENDLESS = { backoffBaseMs: 1e9, backoffMaxMs: 1e9, cheapBackoffMaxMs: 1e9, credentialsMs: 500, steadyMs: 0 };

  it("that came good are tried at once, however long it was to be waited", async () => {
    await start({ token: "good" }, [service("cart")]);
    const token = join(run.directory, "token");
    const kubeconfig = join(run.directory, "config");
    await writeFile(token, "bad\n");
    await writeFile(kubeconfig, api.kubeconfig({ token: undefined }).replace("user: {}", `user: { tokenFile: token }`));
    await run.start(api, ENDLESS, { kubeconfig, clock: new TestClock(5) });
    await eventually(() => log.failing().size === 4);
    // Gone for a moment, and another bad one, as a hand may do it.
    await rm(token);
    await eventually(() => retriesOf("Service").some(({ fields }) => String(fields["error"]).includes("the token file can't be read")));
    await writeFile(token, "good\n");
    await sink.until((seen) => seen.isSynced);
    expect(sink.objects.has("Service shop/cart")).toBe(true);
  });

  it("are not looked at when the server refuses for other reasons, as they can't help", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ only: { kind: "Service" }, status: 500 });
    const clock = new TestClock(5);
    await run.start(api, { ...ENDLESS, credentialsMs: 501 }, { clock });
    await eventually(() => retriesOf("Service").length >= 3);
    expect(clock.sleeps).not.toContain(501);
  });

  it("come from a kubeconfig that is read again when it changes", async () => {
    await start({ token: "first" }, [service("cart")]);
    await run.follow(api);
    await watching(api);
    api.requireToken("second");
    await writeFile(join(run.directory, "kubeconfig"), api.kubeconfig());
    api.dropWatches();
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    expect(log.lines.some(({ fields }) => String(fields["error"]).includes("answered 401"))).toBe(false);
  });

  it("that rotate on disk are used for the next request, before any 401", async () => {
    await start({ token: "first" }, [service("cart")]);
    const token = join(run.directory, "token");
    const kubeconfig = join(run.directory, "config");
    await writeFile(token, "first\n");
    await writeFile(kubeconfig, api.kubeconfig({ token: undefined }).replace("user: {}", `user: { tokenFile: token }`));
    await run.follow(api, {}, { kubeconfig });
    await watching(api);
    await writeFile(token, "second, and longer\n");
    api.requireToken("second, and longer");
    api.dropWatches();
    await eventually(() => api.requests.length >= 8 && api.watchCount === 4);
    expect(api.requests.slice(4).map(({ authorization }) => authorization)).toEqual(Array(4).fill("Bearer second, and longer"));
  });

  it("that can't work as configured end the run with one clear line", async () => {
    await start();
    const source = createKubeSource({ clock: new TestClock(), random: () => 0.5, log, env: { HOME: run.directory } });
    const error: unknown = await source.run(sink, run.stop.signal).catch((thrown: unknown) => thrown);
    expect(ProxyError.is(error, "not_found")).toBe(true);
    const missing = createKubeSource({ clock: new TestClock(), random: () => 0.5, log, env: {}, kubeconfig: join(run.directory, "nope") });
    await expect(missing.run(sink, run.stop.signal)).rejects.toThrow(`[not_found] the kubeconfig can't be read`);
  });
});

it("ends the run when the sink throws: that is a programmer's error", async () => {
  await start({}, [service("cart")]);
  const kubeconfig = join(run.directory, "kubeconfig");
  await writeFile(kubeconfig, api.kubeconfig());
  const broken = Object.assign(new RecordingSink(), {
    upsert: () => {
      throw new RangeError("defect");
    },
  });
  const source = createKubeSource({ clock: new TestClock(), random: () => 0.5, log, env: {}, kubeconfig, timings: {} });
  await expect(source.run(broken, run.stop.signal)).rejects.toThrow("defect");
  await eventually(() => api.watchCount === 0);
});
