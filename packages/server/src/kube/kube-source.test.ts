import { createApiServer, type ApiServer, type ApiServerOptions } from "@turnout/lab";
import { beforeEach, describe, expect, it } from "vitest";
import type { KubeSourceOptions, KubeTimings } from "./kube-source.ts";
import { asked, cidr, KubeRun, node, service, slice, watching } from "../test-support/kube.ts";
import { eventually, ManualClock, TestClock, type RecordingLog, type RecordingSink, untilTestEnds } from "../test-support/world.ts";

let api: ApiServer;
let run: KubeRun;
let sink: RecordingSink;
let log: RecordingLog;

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

describe("what is delivered", () => {
  it("is what kube-proxy selects, and says so to the server", async () => {
    const hidden = { "service.kubernetes.io/service-proxy-name": "" };
    const headless = { "service.kubernetes.io/headless": "" };
    await start({}, [
      service("cart"),
      service("other-proxy", {}, hidden),
      service("none", { clusterIP: "None" }),
      service("labelled-headless", {}, headless),
      slice("cart-1"),
      slice("cart-2", hidden),
      slice("cart-3", headless),
      node("node-1"),
      node("node-2"),
      cidr("kubernetes", hidden),
    ]);
    await run.follow(api);
    expect([...sink.objects.keys()].sort()).toEqual([
      "EndpointSlice shop/cart-1",
      "EndpointSlice shop/cart-2",
      "Node /node-1",
      "Service shop/cart",
      "Service shop/labelled-headless",
      "ServiceCIDR /kubernetes",
    ]);
    const selectors = (plural: string): unknown => ["labelSelector", "fieldSelector"].map((name) => asked(api, plural)[0]?.get(name));
    expect(selectors("services")).toEqual(["!service.kubernetes.io/service-proxy-name", "spec.clusterIP!=None"]);
    expect(selectors("endpointslices")).toEqual(["!service.kubernetes.io/headless", null]);
    expect(selectors("servicecidrs")).toEqual([null, null]);
    expect(selectors("nodes")).toEqual([null, "metadata.name=node-1"]);
  });

  it("follows writes, deletes, and objects that enter or leave the selection", async () => {
    await follow([service("cart")]);
    sink.drain();
    api.apply(service("till"));
    api.apply(service("cart", { type: "NodePort" }));
    api.apply(service("till", {}, { "service.kubernetes.io/service-proxy-name": "other" }));
    api.apply(service("till"));
    api.delete("Service", "shop", "cart");
    await sink.until(({ calls }) => calls.length >= 5);
    expect(sink.drain()).toEqual([
      "+Service shop/till",
      "+Service shop/cart",
      "-Service shop/till",
      "+Service shop/till",
      "-Service shop/cart",
    ]);
  });

  it("is synced, and empty, on an empty cluster", async () => {
    await start();
    await run.follow(api);
    expect(sink.calls.sort()).toEqual(["=EndpointSlice", "=Node", "=Service", "=ServiceCIDR"]);
  });

  it("shares a few kept connections: one for each watch", async () => {
    await follow([service("cart")]);
    expect(api.connectionCount).toBe(4);
  });
});

describe("the first list", () => {
  it("comes by watch-list where that is served", async () => {
    await start({}, [service("cart")]);
    await run.follow(api);
    const [first] = asked(api, "services");
    expect(first?.get("sendInitialEvents")).toBe("true");
    expect(first?.get("resourceVersionMatch")).toBe("NotOlderThan");
    expect(asked(api, "services")).toHaveLength(1);
  });

  it("comes by list from the cache where it isn't, and the watch begins at its revision", async () => {
    await start({}, [service("cart"), node("node-1")]);
    api.misbehave({ watchList: 422 });
    const { revision } = api;
    await run.follow(api);
    await watching(api);
    const [refused, list, watch, ...more] = asked(api, "services");
    expect(refused?.get("sendInitialEvents")).toBe("true");
    expect([list?.get("resourceVersion"), list?.get("limit")]).toEqual(["0", "500"]);
    expect([watch?.get("watch"), watch?.get("resourceVersion")]).toEqual(["true", String(revision)]);
    expect(more).toEqual([]);
  });

  it("is not believed complete when it breaks off, by list or by watch-list", async () => {
    await start({}, [service("cart")]);
    api.misbehave({ only: { kind: "Service", verb: "watch" }, watchList: 422 });
    api.misbehave({ only: { kind: "Service", verb: "list" }, truncateLists: true, times: 2 });
    api.misbehave({ only: { kind: "EndpointSlice" }, hang: true, times: 1 });
    await run.follow(api, { answerTimeoutMs: 100 });
    expect(asked(api, "services").filter((query) => query.get("resourceVersion") === "0")).toHaveLength(3);
    expect(sink.calls.filter((call) => call === "=Service")).toHaveLength(1);
    expect(asked(api, "endpointslices").length).toBeGreaterThan(1);
  });

  it("is paged by 500 when it must be current, and whole when the continue token expired", async () => {
    await start(
      {},
      Array.from({ length: 1_203 }, (_, index) => service(`s${index}`)),
    );
    api.misbehave({ watchList: 422 });
    await run.follow(api);
    await watching(api);
    api.compact();
    sink.drain();
    api.dropWatches();
    await eventually(() => asked(api, "services").filter((query) => query.has("continue")).length === 2);
    await watching(api);
    api.misbehave({ expireContinue: true, times: 1 });
    api.compact();
    const before = asked(api, "services").length;
    api.dropWatches();
    await eventually(() => asked(api, "services").length >= before + 4 && api.watchCount === 4);
    const [, first, next, whole] = asked(api, "services").slice(before);
    expect([first?.get("limit"), next?.has("continue")]).toEqual(["500", true]);
    expect([whole?.has("limit"), whole?.has("continue"), whole?.has("resourceVersion")]).toEqual([false, false, false]);
    // Nothing changed, so nothing was handed on, by three lists.
    expect(sink.drain().filter((call) => !call.startsWith("="))).toEqual([]);
  });
});

describe("a lost watch", () => {
  it("resumes after the last event, without a list, and misses nothing", async () => {
    await follow([service("cart")]);
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    const { revision } = api;
    sink.drain();
    api.dropWatches();
    api.apply(service("meanwhile"));
    await sink.until(({ objects }) => objects.has("Service shop/meanwhile"));
    expect(sink.drain()).toEqual(["+Service shop/meanwhile"]);
    expect(asked(api, "services").at(-1)?.get("resourceVersion")).toBe(String(revision));
    expect(asked(api, "services")).toHaveLength(2);
  });

  it("resumes from a bookmark when nothing of its kind happened for long", async () => {
    await follow([service("cart")]);
    for (let round = 0; round < 10; round++) api.apply(service("cart", { sessionAffinity: `${round}` }));
    api.bookmark();
    api.compact();
    const { revision } = api;
    api.bookmark();
    api.apply(slice("after"));
    await sink.until(({ objects }) => objects.has("EndpointSlice shop/after"));
    await sink.until(({ calls }) => calls.filter((call) => call === "+Service shop/cart").length === 11);
    api.dropWatches();
    await eventually(() => asked(api, "nodes").length === 2);
    expect(asked(api, "nodes").at(-1)?.get("resourceVersion")).toBe(String(revision));
  });

  it("is opened again at once when the server ends it after its time", async () => {
    await start({}, [service("cart")]);
    await run.follow(api, { watchSeconds: 1 });
    await eventually(() => asked(api, "services").length >= 2);
    expect(asked(api, "services")[0]?.get("timeoutSeconds")).toBe("2");
    expect(log.of("warn")).toEqual([]);
    expect(asked(api, "services")[1]?.has("sendInitialEvents")).toBe(false);
  });

  it("does not spin when the server ends each watch at once", async () => {
    await start();
    const clock = new TestClock(1);
    await run.follow(api, { backoffBaseMs: 800, backoffMaxMs: 30_000, steadyMs: 5_000 }, { clock });
    for (let round = 0; round < 6; round++) {
      await watching(api);
      const before = api.requests.length;
      api.dropWatches("end");
      await eventually(() => api.requests.length >= before + 4);
    }
    // random 0.5 makes the spread 100 %.
    for (const expected of [800, 1_600, 3_200, 6_400, 12_800, 25_600]) expect(clock.sleeps).toContain(expected);
  });

  it("is given up when it is silent for too long", async () => {
    await follow([service("cart")], { watchIdleMs: 150 });
    api.misbehave({ hang: true });
    await eventually(() => log.of("warn").length > 0);
    api.behave();
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    expect(log.lines.some(({ fields }) => String(fields["error"]).includes("went silent"))).toBe(true);
  });

  it("is kept as long as something comes, and given up when nothing does", async () => {
    await start({}, [service("cart"), node("node-1")]);
    const clock = new ManualClock();
    await run.follow(api, { watchIdleMs: 150_000 }, { clock });
    await watching(api);
    for (let round = 0; round < 4; round++) {
      clock.advance(100_000);
      // Whatever was due at that time has been done once these have come.
      for (const object of [service(`s${round}`), slice(`e${round}`), cidr(`c${round}`)]) api.apply(object);
      api.apply({ ...(node("node-1") as object), spec: { round } });
      await sink.until(({ objects }) => objects.has(`Service shop/s${round}`) && objects.has(`ServiceCIDR /c${round}`));
      await sink.until(({ calls }) => calls.filter((call) => call === "+Node /node-1").length === round + 2);
      await sink.until(({ objects }) => objects.has(`EndpointSlice shop/e${round}`));
    }
    expect(api.requests).toHaveLength(4);
    clock.advance(151_000);
    await eventually(() => log.failing().size === 4);
    expect(log.lines.filter(({ fields }) => String(fields["error"]).includes("went silent"))).toHaveLength(4);
  });

  it("survives an event that is cut in half, and events that come twice", async () => {
    await follow([service("cart")]);
    api.misbehave({ truncateEvents: true, times: 1 });
    api.misbehave({ duplicateEvents: true });
    sink.drain();
    api.apply(service("till"));
    await sink.until(({ objects }) => objects.has("Service shop/till"));
    api.delete("Service", "shop", "till");
    api.apply(service("last"));
    await sink.until(({ objects }) => objects.has("Service shop/last"));
    expect(sink.drain()).toEqual(["+Service shop/till", "-Service shop/till", "+Service shop/last"]);
    expect(asked(api, "services").every((query) => query.has("watch"))).toBe(true);
  });
});
