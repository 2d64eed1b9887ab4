import type { ProxyEvent } from "@turnout/client/daemon";
import type { ServiceIdentity } from "@turnout/core";
import { createApiServer, type ApiServer } from "@turnout/lab";
import { beforeEach, expect, it } from "vitest";
import { KubeRun, service, watching } from "../test-support/kube.ts";
import { eventually, ManualClock, TestClock, untilTestEnds } from "../test-support/world.ts";
import { EventQueue } from "./events/event-queue.ts";

const STARTING: ProxyEvent = { reason: "Starting", action: "StartKubeProxy", note: "it is Turnout", type: "Normal" };
const WARNING: ProxyEvent = { ...STARTING, reason: "RulesChangedByOthers", action: "RepairRules", type: "Warning" };
/** Longer than any name of an event may be together with the rest of it. */
const LONG_NAME = Array.from({ length: 5 }, () => "n".repeat(48)).join(".");

const IDENTITY: ServiceIdentity = { uid: "6c1b", version: "3" };

/** Something about a Service that all nodes report. */
function ofCluster(note: string, namespace = "shop", matter = note): ProxyEvent {
  const common = { reason: "ServiceProblem", action: "ReadService", type: "Warning" } as const;
  return { ...common, note, matter, service: { namespace, name: "cart" }, isOfCluster: true };
}

let api: ApiServer;
let run: KubeRun;
let clock: TestClock;

beforeEach(async () => {
  run = await KubeRun.create();
  api = untilTestEnds(await createApiServer());
  clock = new TestClock(20);
  api.apply(service("cart"));
});

function queueWith(event: ProxyEvent = STARTING, by: TestClock | ManualClock = clock, nodeName = "node-1"): EventQueue {
  const events = new EventQueue({ nodeName, hostname: "host-1" }, by, () => IDENTITY);
  events.put(event);
  return events;
}

/** Lines about events that were not written. */
const reported = (level: "info" | "debug" = "info"): RecordedLines =>
  run.log.lines.filter(({ line }) => line.startsWith(level) && line.includes("was not written"));
type RecordedLines = KubeRun["log"]["lines"];
const notes = (): readonly unknown[] => api.objects("Event").map(({ note }) => note);

it("tells of the start in the words of kube-proxy, once", async () => {
  const nowMs = Date.now();
  await run.follow(api, {}, { events: queueWith(), clock });
  await eventually(() => api.objects("Event").length === 1);
  await watching(api);
  api.dropWatches();
  await eventually(() => api.watchCount === 4);
  const [event, ...more] = api.objects("Event");
  expect(more).toEqual([]);
  expect(event).toMatchObject({
    apiVersion: "events.k8s.io/v1",
    metadata: { namespace: "default" },
    reportingController: "kube-proxy",
    reportingInstance: "kube-proxy-host-1",
    action: "StartKubeProxy",
    reason: "Starting",
    regarding: { apiVersion: "v1", kind: "Node", name: "node-1" },
    type: "Normal",
  });
  // Exactly six digits, or a real API server refuses it.
  expect(event?.["eventTime"]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  const [, name, nanoseconds = ""] = /^(node-1)\.([0-9a-f]{16})$/.exec(event?.metadata.name ?? "") ?? [];
  expect(name).toBe("node-1");
  expect(Number(BigInt(`0x${nanoseconds}`) / 1_000_000n)).toBeGreaterThanOrEqual(nowMs);
});

it("an event about a Service is in its namespace", async () => {
  await run.follow(api, {}, { events: queueWith({ ...WARNING, service: { namespace: "shop", name: "cart" } }), clock });
  await eventually(() => api.objects("Event").length === 1);
  expect(api.objects("Event")[0]).toMatchObject({
    metadata: { namespace: "shop" },
    regarding: { apiVersion: "v1", kind: "Service", namespace: "shop", name: "cart" },
  });
  expect(api.objects("Event")[0]?.metadata.name).toMatch(/^cart\.[0-9a-f]{16}$/);
});

it("what happens in one moment has different names, and one that no object may have is replaced", async () => {
  const still = new ManualClock();
  const events = queueWith(STARTING, still, LONG_NAME);
  events.put(WARNING);
  events.put({ ...WARNING, service: { namespace: "shop", name: "cart" } });
  events.put({ ...WARNING, service: { namespace: "shop", name: "cart" }, matter: "IPv6" });
  const done = run.follow(api, {}, { events, clock: still });
  await eventually(() => (still.advance(200), api.objects("Event").length === 4));
  await done;
  const names = api.objects("Event").map(({ metadata }) => metadata.name);
  expect(new Set(names).size).toBe(4);
  expect(names.filter((name) => name.startsWith("cart."))).toHaveLength(2);
  for (const name of names) expect(name.length).toBeLessThanOrEqual(253);
});

it("an event's time is as the wall clock is set when it is sent: it may have been set since", async () => {
  const still = new ManualClock();
  const events = queueWith({ ...WARNING, note: "before" }, still);
  still.advance(1_000);
  still.wallAheadMs = Date.UTC(2026, 10, 27, 12);
  await run.follow(api, {}, { events, clock: still });
  await eventually(() => api.objects("Event").length === 1);
  expect(api.objects("Event")[0]?.["eventTime"]).toBe("2026-11-27T12:00:00.000000Z");
});

it("one event about a matter is sent each minute, the last of more; other matters don't wait for it", async () => {
  const still = new ManualClock();
  const events = queueWith({ ...WARNING, note: "nft (pid 7)" }, still);
  const done = run.follow(api, {}, { events, clock: still });
  await eventually(() => api.objects("Event").length === 1);
  await done;
  events.put({ ...WARNING, note: "nft (pid 8)" });
  events.put({ ...WARNING, note: "nft (pid 9)" });
  events.put({ ...STARTING, note: "another matter" });
  await eventually(() => (still.advance(200), api.objects("Event").length === 2));
  still.advance(55_000);
  expect(notes()).toEqual(["nft (pid 7)", "another matter"]);
  await eventually(() => (still.advance(200), api.objects("Event").length === 3));
  expect(notes()).toContain("2 of these since the last event, the last one: nft (pid 9)");
});

it("a note is cut after the bytes that the API takes, and no character is", async () => {
  await run.follow(api, {}, { events: queueWith({ ...STARTING, note: `a${"é".repeat(2_000)}` }), clock });
  await eventually(() => api.objects("Event").length === 1);
  expect(notes()).toEqual([`a${"é".repeat(511)}`]);
});

it("of more than a thousand at once the rest is left out, with a line", async () => {
  const events = queueWith();
  for (let port = 0; port < 1_010; port++) events.put({ ...WARNING, matter: String(port) });
  await run.follow(api, {}, { events, clock });
  await eventually(() => run.log.lines.some(({ line }) => /some were left out/.test(line)));
  expect(run.log.lines.filter(({ line }) => line.includes("left out"))).toHaveLength(1);
});

it("nothing is told unless asked to", async () => {
  await run.follow(api, {}, { clock });
  await watching(api);
  expect(api.requests.filter(({ method }) => method !== "GET")).toEqual([]);
});

it("a refusal is one line for all events, until one is written, and everything else goes on", async () => {
  const behave = api.misbehave({ only: { kind: "Event" }, status: 403 });
  const events = queueWith();
  await run.follow(api, {}, { events, clock });
  events.put(WARNING);
  await eventually(() => reported("debug").length === 1);
  await watching(api);
  expect(reported().map(({ line }) => line)).toEqual([
    expect.stringContaining("the event Starting was not written; nothing depends on it"),
  ]);
  expect(run.log.of("warn")).toEqual([]);
  expect(api.requests.filter(({ method }) => method === "POST")).toHaveLength(2);
  expect(run.sink.objects.has("Service shop/cart")).toBe(true);
  behave();
  events.put({ ...WARNING, matter: "IPv4" });
  await eventually(() => api.objects("Event").length === 1);
  api.misbehave({ only: { kind: "Event" }, status: 403 });
  events.put({ ...WARNING, matter: "IPv6" });
  await eventually(() => reported().length === 2);
});

it("an event is sent when the API server is there, and given up after twelve tries", async () => {
  api.misbehave({ only: { kind: "Event" }, status: 503, times: 3 });
  await run.follow(api, {}, { events: queueWith(), clock });
  await eventually(() => api.objects("Event").length === 1);
  // 10 s, and an eighth more by chance.
  expect(clock.sleeps.filter((ms) => ms === 11_250)).toHaveLength(3);
  expect(reported()).toEqual([]);
  await run.end();
  run = await KubeRun.create();
  api.misbehave({ only: { kind: "Event" }, status: 503 });
  const before = api.requests.length;
  await run.follow(api, {}, { events: queueWith(), clock });
  await eventually(() => reported().length === 1);
  expect(api.requests.slice(before).filter(({ method }) => method === "POST")).toHaveLength(12);
});

/** Let time go by in which all that may be sent is sent, and requests are answered. */
async function rest(by: ManualClock): Promise<void> {
  for (let turn = 0; turn < 100; turn++) {
    by.advance(200);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

const posted = (): number => api.requests.filter(({ method }) => method === "POST").length;

it("an event of the cluster is one object for each version of a Service, whichever nodes send it and however often", async () => {
  const still = new ManualClock();
  let identity: ServiceIdentity | undefined = IDENTITY;
  const [one, other] = ["host-1", "host-2"].map((hostname) => new EventQueue({ nodeName: hostname, hostname }, still, () => identity));
  const second = await KubeRun.create();
  const runs = [run.follow(api, {}, { events: one, clock: still }), second.follow(api, {}, { events: other, clock: still })];
  // Each says it in its own words.
  for (let turn = 0; turn < 3; turn++) one?.put(ofCluster("node-1 refuses it", "shop", ""));
  other?.put(ofCluster("node-2 refuses it", "shop", ""));
  await eventually(() => (still.advance(200), posted() === 2));
  expect(notes()).toHaveLength(1);
  expect(api.objects("Event")[0]).toMatchObject({ regarding: { kind: "Service", name: "cart", namespace: "shop", uid: "6c1b" } });
  // What is said again is there already, for an hour.
  still.advance(60_000);
  one?.put(ofCluster("node-1 refuses it", "shop", ""));
  one?.put(WARNING);
  await eventually(() => (still.advance(200), notes().length === 2));
  await rest(still);
  expect(posted()).toBe(3);
  still.advance(3_600_000);
  one?.put(ofCluster("node-1 refuses it", "shop", ""));
  await eventually(() => (still.advance(200), posted() === 4));
  expect(notes()).toHaveLength(2);
  expect(run.log.lines.filter(({ line }) => line.includes("was not written"))).toEqual([]);
  // A new version, a new Service of that name, and none at all.
  for (const [count, changed] of [[3, { ...IDENTITY, version: "4" }] as const, [4, { uid: "77ff", version: "1" }] as const]) {
    identity = changed;
    still.advance(60_000);
    one?.put(ofCluster("node-1 refuses it", "shop", ""));
    await eventually(() => (still.advance(200), notes().length === count));
  }
  identity = undefined;
  still.advance(60_000);
  one?.put(ofCluster("node-1 refuses it", "shop", ""));
  one?.put(STARTING);
  await eventually(() => (still.advance(200), notes().length === 5));
  await rest(still);
  expect(notes()).toHaveLength(5);
  await Promise.all(runs);
  await second.end();
});

it("a namespace with many events of the cluster delays another namespace's by one, and 20 a minute are sent", async () => {
  const still = new ManualClock();
  const events = new EventQueue({ nodeName: "node-1", hostname: "host-1" }, still, () => IDENTITY);
  for (let number = 0; number < 30; number++) events.put(ofCluster(`n${number}`, "noisy"));
  events.put(ofCluster("quiet"));
  still.advance(10_000);
  const done = run.follow(api, {}, { events, clock: still });
  await eventually(() => (still.advance(200), notes().length === 2));
  expect(notes()).toContain("quiet");
  await eventually(() => (still.advance(200), notes().length === 20));
  await rest(still);
  expect(notes()).toHaveLength(20);
  await eventually(() => (still.advance(1_000), notes().length === 31));
  await done;
});

it("a node whose events of the cluster are written by another sends two a minute", async () => {
  const still = new ManualClock();
  const [one, other] = ["host-1", "host-2"].map((hostname) => new EventQueue({ nodeName: hostname, hostname }, still, () => IDENTITY));
  for (let number = 0; number < 10; number++) for (const events of [one, other]) events?.put(ofCluster(`n${number}`));
  still.advance(10_000);
  const done = run.follow(api, {}, { events: one, clock: still });
  await eventually(() => (still.advance(200), notes().length === 10));
  await done;
  await run.end();
  const second = await KubeRun.create();
  await second.follow(api, {}, { events: other, clock: still });
  await eventually(() => (still.advance(200), posted() === 12));
  await rest(still);
  expect(posted()).toBe(12);
  await second.end();
});

it("where a thousand events wait, the namespace goes without that has most", async () => {
  const still = new ManualClock();
  const events = new EventQueue({ nodeName: "node-1", hostname: "host-1" }, still, () => IDENTITY);
  for (let number = 0; number < 1_010; number++) events.put(ofCluster(`n${number}`, "noisy"));
  for (let number = 0; number < 3; number++) events.put(ofCluster(`q${number}`));
  still.advance(10_000);
  const done = run.follow(api, {}, { events, clock: still });
  await eventually(() => (still.advance(200), notes().length === 8));
  expect(notes().map(String).toSorted()).toEqual(["n0", "n1", "n2", "n3", "n4", "q0", "q1", "q2"]);
  await done;
});

it("whoever ends can wait for what was put, for a while", async () => {
  clock = new TestClock();
  const events = queueWith();
  // Nobody sends yet.
  await events.flushed(60_000);
  await run.follow(api, {}, { events, clock });
  events.put(WARNING);
  await events.flushed(60_000);
  expect(api.objects("Event")).toHaveLength(2);
  api.misbehave({ only: { kind: "Event" }, hang: true });
  events.put({ ...WARNING, matter: "IPv6" });
  await events.flushed(20);
  expect(api.objects("Event")).toHaveLength(2);
});
