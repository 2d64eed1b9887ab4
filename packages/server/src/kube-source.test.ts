import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProxyError } from "@turnout/core";
import { createApiServer, type ApiServer, type ApiServerOptions } from "@turnout/lab";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createKubeSource, type KubeSourceOptions, type KubeTimings } from "./kube-source.ts";
import { eventually, RecordingLog, RecordingSink, TestClock } from "./test-world.ts";

const QUICK: Partial<KubeTimings> = {
  backoffBaseMs: 10,
  backoffMaxMs: 50,
  steadyMs: 50,
  watchIdleMs: 5_000,
  listIdleMs: 5_000,
  missingApiMs: 20,
  answerTimeoutMs: 5_000,
};

const service = (name: string, extra: Record<string, unknown> = {}, labels: Record<string, string> = {}): unknown => ({
  kind: "Service",
  metadata: { name, namespace: "shop", labels },
  spec: { clusterIP: "10.96.0.10", ports: [{ port: 80 }], ...extra },
});
const slice = (name: string, labels: Record<string, string> = {}): unknown => ({
  kind: "EndpointSlice",
  metadata: { name, namespace: "shop", labels: { "kubernetes.io/service-name": "cart", ...labels } },
  addressType: "IPv4",
  endpoints: [],
  ports: [],
});
const node = (name: string): unknown => ({ kind: "Node", metadata: { name } });
const cidr = (name: string): unknown => ({ kind: "ServiceCIDR", metadata: { name }, spec: { cidrs: ["10.96.0.0/16"] } });

let directory: string;
let sink: RecordingSink;
let log: RecordingLog;
let api: ApiServer;
let stop: AbortController;
let running: Promise<void> | undefined;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "turnout-kube-"));
  sink = new RecordingSink();
  log = new RecordingLog();
  stop = new AbortController();
  running = undefined;
});

afterEach(async () => {
  stop.abort();
  await running;
  await api.close();
  await rm(directory, { recursive: true, force: true });
});

async function start(options: ApiServerOptions = {}, objects: readonly unknown[] = []): Promise<void> {
  api = await createApiServer(options);
  for (const object of objects) api.apply(object);
}

async function follow(timings: Partial<KubeTimings> = {}, rest: Partial<KubeSourceOptions> = {}): Promise<void> {
  const kubeconfig = rest.kubeconfig ?? join(directory, "kubeconfig");
  if (rest.kubeconfig === undefined) await writeFile(kubeconfig, api.kubeconfig());
  const source = createKubeSource({
    nodeName: "node-1",
    clock: new TestClock(),
    random: () => 0.5,
    log,
    env: {},
    timings: { ...QUICK, ...timings },
    ...rest,
    kubeconfig,
  });
  running = source.run(sink, stop.signal);
  await sink.until((seen) => seen.isSynced);
}

/** Queries of the requests for a resource, in order. */
function asked(plural: string): readonly URLSearchParams[] {
  return api.requests
    .map(({ url }) => new URL(url, "http://api"))
    .filter(({ pathname }) => pathname.endsWith(`/${plural}`))
    .map(({ searchParams }) => searchParams);
}

async function watching(): Promise<void> {
  await eventually(() => api.watchCount === 4);
}

describe("what is delivered", () => {
  it("is what kube-proxy selects, and says so to the server", async () => {
    const hidden = { "service.kubernetes.io/service-proxy-name": "" };
    const headless = { "service.kubernetes.io/headless": "" };
    await start({}, [
      ...[service("cart"), service("other-proxy", {}, hidden), service("none", { clusterIP: "None" })],
      ...[slice("cart-1"), slice("cart-2", hidden), slice("cart-3", headless)],
      ...[node("node-1"), node("node-2"), cidr("kubernetes")],
    ]);
    await follow();
    expect([...sink.objects.keys()].sort()).toEqual([
      "EndpointSlice shop/cart-1",
      "Node /node-1",
      "Service shop/cart",
      "ServiceCIDR /kubernetes",
    ]);
    const labels = "!service.kubernetes.io/service-proxy-name,!service.kubernetes.io/headless";
    expect(asked("services")[0]?.get("labelSelector")).toBe(labels);
    expect(asked("services")[0]?.get("fieldSelector")).toBe("spec.clusterIP!=None");
    expect(asked("endpointslices")[0]?.get("labelSelector")).toBe(labels);
    expect(asked("endpointslices")[0]?.has("fieldSelector")).toBe(false);
    expect(asked("servicecidrs")[0]?.get("labelSelector")).toBe(labels);
    expect(asked("nodes")[0]?.get("fieldSelector")).toBe("metadata.name=node-1");
  });

  it("follows writes, deletes, and objects that enter or leave the selection", async () => {
    await start({}, [service("cart")]);
    await follow();
    await watching();
    sink.take();
    api.apply(service("till"));
    api.apply(service("cart", { type: "NodePort" }));
    api.apply(service("till", {}, { "service.kubernetes.io/service-proxy-name": "other" }));
    api.apply(service("till"));
    api.delete("Service", "shop", "cart");
    await sink.until(({ calls }) => calls.length >= 5);
    expect(sink.take()).toEqual([
      "+Service shop/till",
      "+Service shop/cart",
      "-Service shop/till",
      "+Service shop/till",
      "-Service shop/cart",
    ]);
  });

  it("is synced, and empty, on an empty cluster", async () => {
    await start();
    await follow();
    expect(sink.calls.sort()).toEqual(["=EndpointSlice", "=Node", "=Service", "=ServiceCIDR"]);
  });

  it("shares a few kept connections: one for each watch", async () => {
    await start({}, [service("cart")]);
    await follow();
    await watching();
    expect(api.connectionCount).toBe(4);
  });
});

describe("the first list", () => {
  it("comes by watch-list where that is served", async () => {
    await start({}, [service("cart")]);
    await follow();
    const [first] = asked("services");
    expect(first?.get("sendInitialEvents")).toBe("true");
    expect(first?.get("resourceVersionMatch")).toBe("NotOlderThan");
    expect(asked("services")).toHaveLength(1);
  });

  it("comes by list from the cache where it isn't, and the watch begins at its revision", async () => {
    await start({}, [service("cart"), node("node-1")]);
    api.misbehave({ disableWatchList: true });
    const { revision } = api;
    await follow();
    await watching();
    const [refused, list, watch, ...more] = asked("services");
    expect(refused?.get("sendInitialEvents")).toBe("true");
    expect([list?.get("resourceVersion"), list?.get("limit")]).toEqual(["0", "500"]);
    expect([watch?.get("watch"), watch?.get("resourceVersion")]).toEqual(["true", String(revision)]);
    expect(more).toEqual([]);
  });

  it("is not believed complete when it breaks off, by list or by watch-list", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ only: { kind: "Service", verb: "watch" }, disableWatchList: true });
    api.misbehave({ only: { kind: "Service", verb: "list" }, truncateLists: true, times: 2 });
    api.misbehave({ only: { kind: "EndpointSlice" }, hang: true, times: 1 });
    await follow({ answerTimeoutMs: 100 });
    expect(asked("services").filter((query) => query.get("resourceVersion") === "0")).toHaveLength(3);
    expect(sink.calls.filter((call) => call === "=Service")).toHaveLength(1);
    expect(asked("endpointslices").length).toBeGreaterThan(1);
  });

  it("is paged by 500 when it must be current, and whole when the continue token expired", async () => {
    await start(
      {},
      Array.from({ length: 1_203 }, (_, index) => service(`s${index}`)),
    );
    api.misbehave({ disableWatchList: true });
    await follow();
    await watching();
    api.compact();
    sink.take();
    api.dropWatches();
    await eventually(() => asked("services").filter((query) => query.has("continue")).length === 2);
    await watching();
    api.misbehave({ expireContinue: true, times: 1 });
    api.compact();
    const before = asked("services").length;
    api.dropWatches();
    await eventually(() => asked("services").length >= before + 4 && api.watchCount === 4);
    const [, first, next, whole] = asked("services").slice(before);
    expect([first?.get("limit"), next?.has("continue")]).toEqual(["500", true]);
    expect([whole?.has("limit"), whole?.has("continue"), whole?.has("resourceVersion")]).toEqual([false, false, false]);
    // Nothing changed, so nothing was handed on, by three lists.
    expect(sink.take().filter((call) => !call.startsWith("="))).toEqual([]);
  });
});

describe("a lost watch", () => {
  it("resumes after the last event, without a list, and misses nothing", async () => {
    await start({}, [service("cart")]);
    await follow();
    await watching();
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    const { revision } = api;
    sink.take();
    api.dropWatches();
    api.apply(service("meanwhile"));
    await sink.until(({ objects }) => objects.has("Service shop/meanwhile"));
    expect(sink.take()).toEqual(["+Service shop/meanwhile"]);
    expect(asked("services").at(-1)?.get("resourceVersion")).toBe(String(revision));
    expect(asked("services")).toHaveLength(2);
  });

  it("resumes from a bookmark when nothing of its kind happened for long", async () => {
    await start({}, [service("cart")]);
    await follow();
    await watching();
    for (let round = 0; round < 10; round++) api.apply(service("cart", { sessionAffinity: `${round}` }));
    api.bookmark();
    api.compact();
    const { revision } = api;
    api.bookmark();
    api.apply(slice("after"));
    await sink.until(({ objects }) => objects.has("EndpointSlice shop/after"));
    await sink.until(({ calls }) => calls.filter((call) => call === "+Service shop/cart").length === 11);
    api.dropWatches();
    await eventually(() => asked("nodes").length === 2);
    expect(asked("nodes").at(-1)?.get("resourceVersion")).toBe(String(revision));
  });

  it("is opened again at once when the server ends it after its time", async () => {
    await start({}, [service("cart")]);
    await follow({ watchSeconds: 1 });
    await eventually(() => asked("services").length >= 2);
    expect(asked("services")[0]?.get("timeoutSeconds")).toBe("2");
    expect(log.of("warn")).toEqual([]);
    expect(asked("services")[1]?.has("sendInitialEvents")).toBe(false);
  });

  it("does not spin when the server ends each watch at once", async () => {
    await start();
    const clock = new TestClock(1);
    await follow({ backoffBaseMs: 800, backoffMaxMs: 30_000, steadyMs: 5_000 }, { clock });
    for (let round = 0; round < 6; round++) {
      await watching();
      const before = api.requests.length;
      api.dropWatches("end");
      await eventually(() => api.requests.length >= before + 4);
    }
    // random 0.5 makes the spread 100 %.
    for (const expected of [800, 1_600, 3_200, 6_400, 12_800, 25_600]) expect(clock.sleeps).toContain(expected);
  });

  it("is given up when it is silent for too long", async () => {
    await start({}, [service("cart")]);
    await follow({ watchIdleMs: 150 });
    await watching();
    api.misbehave({ hang: true });
    await eventually(() => log.of("warn").length > 0);
    api.behave();
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    expect(log.lines.some(({ fields }) => String(fields["error"]).includes("went silent"))).toBe(true);
  });

  it("survives an event that is cut in half, and events that come twice", async () => {
    await start({}, [service("cart")]);
    await follow();
    await watching();
    api.misbehave({ truncateEvents: true, times: 1 });
    api.misbehave({ duplicateEvents: true });
    sink.take();
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    api.delete("Service", "shop", "till");
    api.apply(service("last"));
    await sink.until(({ objects }) => objects.has("Service shop/last"));
    expect(sink.take()).toEqual(["+Service shop/till", "-Service shop/till", "+Service shop/last"]);
    expect(asked("services").every((query) => query.has("watch"))).toBe(true);
  });
});

describe("410", () => {
  for (const form of ["an ERROR event", "an HTTP status"]) {
    it(`as ${form} leads to a list that is compared: only what changed is handed on, what vanished goes`, async () => {
      await start({}, [service("same"), service("changed"), service("vanished")]);
      if (form === "an HTTP status") api.misbehave({ expiredAsStatus: true });
      api.misbehave({ disableWatchList: true });
      await follow();
      await watching();
      sink.take();
      await api.pause();
      api.apply(service("changed", { type: "NodePort" }));
      api.delete("Service", "shop", "vanished");
      api.apply(service("new"));
      api.compact();
      await api.resume();
      await sink.until(({ calls }) => calls.includes("=Service"));
      expect(sink.take().filter((call) => call.includes("Service shop"))).toEqual([
        "+Service shop/changed",
        "+Service shop/new",
        "-Service shop/vanished",
      ]);
      expect(asked("services").some((query) => !query.has("watch") && !query.has("resourceVersion"))).toBe(true);
    });
  }

  it("does the same by watch-list", async () => {
    await start({}, [service("same"), service("vanished")]);
    await follow();
    await watching();
    sink.take();
    await api.pause();
    api.delete("Service", "shop", "vanished");
    api.compact();
    await api.resume();
    await sink.until(({ calls }) => calls.includes("=Service"));
    expect(sink.take().filter((call) => call.includes("Service shop"))).toEqual(["-Service shop/vanished"]);
  });

  it("has its like in a revision from the future: the API server was restored from a backup", async () => {
    await start({}, [service("cart"), service("till"), service("gone")]);
    await follow();
    await watching();
    const { url } = api;
    await api.close();
    sink.take();
    await start({ port: Number(new URL(url).port) }, [service("cart")]);
    await sink.until(({ objects }) => !objects.has("Service shop/gone") && !objects.has("Service shop/till"));
    expect(sink.objects.has("Service shop/cart")).toBe(true);
  });
});

describe("a bad server", () => {
  it("that is away takes nothing away, and is found again", async () => {
    await start({}, [service("cart"), node("node-1")]);
    await follow();
    await watching();
    sink.take();
    await api.pause();
    await eventually(() => log.of("debug").filter((line) => line.includes("still failing")).length > 8);
    expect(sink.take()).toEqual([]);
    api.apply(service("till"));
    await api.resume();
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    expect(sink.take()).toEqual(["+Service shop/till"]);
    await watching();
    // One warning and one recovery for each kind, however many tries it took.
    expect(log.of("warn")).toHaveLength(4);
    expect(log.of("info").filter((line) => line.includes("works again"))).toHaveLength(4);
  });

  it("is asked again when Retry-After is over, not before", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ only: { kind: "Service" }, status: 429, retryAfterSeconds: 7, times: 1 });
    const clock = new TestClock(20);
    await follow({}, { clock });
    // random 0.5 adds a quarter.
    expect(clock.sleeps).toContain(8_750);
  });

  it("that answers 500 for a while is asked with growing pauses", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ only: { kind: "Service" }, status: 500, times: 4 });
    const clock = new TestClock(5);
    await follow({ backoffBaseMs: 100, backoffMaxMs: 500 }, { clock });
    for (const expected of [100, 200, 400, 500]) expect(clock.sleeps).toContain(expected);
  });

  it("that takes the request and never answers is given up", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ hang: true, times: 4 });
    await follow({ answerTimeoutMs: 100 });
    expect(sink.objects.has("Service shop/cart")).toBe(true);
    expect(log.lines.some(({ fields }) => String(fields["error"]).includes("no answer in time"))).toBe(true);
  });

  it("that is slow is waited for", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ delayMs: 150 });
    await follow();
    expect(log.of("warn")).toEqual([]);
  });
});

describe("an API that isn't there", () => {
  it("counts as an empty list for ServiceCIDR, and is asked for again", async () => {
    await start({ without: ["ServiceCIDR"] }, [service("cart")]);
    await follow();
    await eventually(() => asked("servicecidrs").length >= 3);
    expect(log.of("warn")).toEqual([]);
    expect(log.of("info").filter((line) => line.includes("ServiceCIDR"))).toHaveLength(1);
  });

  it("counts as empty, too, where the rights are missing", async () => {
    await start({}, [service("cart"), cidr("kubernetes")]);
    const heal = api.misbehave({ only: { kind: "ServiceCIDR" }, status: 403 });
    await follow();
    expect(sink.objects.has("ServiceCIDR /kubernetes")).toBe(false);
    heal();
    await sink.until(({ objects }) => objects.has("ServiceCIDR /kubernetes"));
  });

  it("is an error for Services: nothing is synced without them", async () => {
    await start({ without: ["Service"] });
    void follow();
    await eventually(() => log.of("warn").some((line) => line.startsWith("warn Service:")));
    expect(sink.isSynced).toBe(false);
    stop.abort();
    sink.markSynced("Service");
  });
});

describe("credentials", () => {
  it("are read again after a 401, and tried at once, but only once", async () => {
    await start({ token: "first" }, [service("cart")]);
    const clock = new TestClock(20);
    await follow({ backoffBaseMs: 11_000, backoffMaxMs: 11_000, steadyMs: 0 }, { clock });
    await watching();
    api.misbehave({ only: { kind: "Service" }, status: 401, times: 1 });
    api.dropWatches("end");
    await eventually(() => asked("services").length === 3 && api.watchCount === 4);
    expect(clock.sleeps).not.toContain(11_000);
    api.misbehave({ only: { kind: "Service" }, status: 401, times: 2 });
    api.dropWatches("end");
    await eventually(() => asked("services").length === 6 && api.watchCount === 4);
    expect(clock.sleeps).toContain(11_000);
  });

  it("come from a kubeconfig that is read again when it changes", async () => {
    await start({ token: "first" }, [service("cart")]);
    await follow();
    await watching();
    api.requireToken("second");
    await writeFile(join(directory, "kubeconfig"), api.kubeconfig());
    api.dropWatches();
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    expect(log.lines.some(({ fields }) => String(fields["error"]).includes("401"))).toBe(false);
  });

  it("that rotate on disk are used for the next request, before any 401", async () => {
    await start({ token: "first" }, [service("cart")]);
    const token = join(directory, "token");
    const kubeconfig = join(directory, "config");
    await writeFile(token, "first\n");
    await writeFile(kubeconfig, api.kubeconfig({ token: undefined }).replace("user: {}", `user: { tokenFile: token }`));
    await follow({}, { kubeconfig });
    await watching();
    await writeFile(token, "second, and longer\n");
    api.requireToken("second, and longer");
    api.dropWatches();
    await eventually(() => api.requests.length >= 8 && api.watchCount === 4);
    expect(api.requests.slice(4).map(({ authorization }) => authorization)).toEqual(Array(4).fill("Bearer second, and longer"));
  });

  it("that can't work as configured end the run with one clear line", async () => {
    await start();
    const source = createKubeSource({ clock: new TestClock(), random: () => 0.5, log, env: { HOME: directory } });
    const error: unknown = await source.run(sink, stop.signal).catch((thrown: unknown) => thrown);
    expect(ProxyError.is(error, "not_found")).toBe(true);
    const missing = createKubeSource({ clock: new TestClock(), random: () => 0.5, log, env: {}, kubeconfig: join(directory, "nope") });
    await expect(missing.run(sink, stop.signal)).rejects.toThrow(`[not_found] the kubeconfig can't be read`);
  });
});

it("ends the run when the sink throws: that is a programmer's error", async () => {
  await start({}, [service("cart")]);
  const kubeconfig = join(directory, "kubeconfig");
  await writeFile(kubeconfig, api.kubeconfig());
  const broken = Object.assign(new RecordingSink(), {
    upsert: () => {
      throw new RangeError("defect");
    },
  });
  const source = createKubeSource({ clock: new TestClock(), random: () => 0.5, log, env: {}, kubeconfig, timings: QUICK });
  await expect(source.run(broken, stop.signal)).rejects.toThrow("defect");
  await eventually(() => api.watchCount === 0);
});
