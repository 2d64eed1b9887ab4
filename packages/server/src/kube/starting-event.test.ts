import { createApiServer, type ApiServer } from "@turnout/lab";
import { afterEach, beforeEach, expect, it } from "vitest";
import { KubeRun, service, watching } from "../test-support/kube.ts";
import { eventually, TestClock } from "../test-support/world.ts";
import { NodeEventQueue } from "./event-queue.ts";

const STARTED = { nodeName: "node-1", hostname: "host-1" };

let api: ApiServer;
let run: KubeRun;
let clock: TestClock;

beforeEach(async () => {
  run = await KubeRun.create();
  api = await createApiServer();
  clock = new TestClock(20);
  api.apply(service("cart"));
});

afterEach(async () => {
  await run.end();
  await api.close();
});

/** Lines about the event. */
const told = (): RecordedLines => run.log.lines.filter(({ line }) => line.includes("the event Starting was not written"));
type RecordedLines = KubeRun["log"]["lines"];

it("tells of the start in the words of kube-proxy, once", async () => {
  const nowMs = Date.now();
  await run.follow(api, {}, { startedProxy: STARTED, clock });
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

it("tells what happens later, one event a minute, the last of more", async () => {
  const later = new NodeEventQueue();
  await run.follow(api, {}, { startedProxy: { ...STARTED, later }, clock });
  await eventually(() => api.objects("Event").length === 1);
  const put = (note: string): void => later.put({ reason: "RulesChangedByOthers", action: "RepairRules", note, type: "Warning" });
  put("nft (pid 7) changed table ip turnout");
  await eventually(() => api.objects("Event").length === 2);
  put("nft (pid 8)");
  put(`nft (pid 9) ${"x".repeat(2_000)}`);
  await eventually(() => api.objects("Event").length === 3);
  const events = api.objects("Event").map(({ note, reason, type }) => [reason, type, String(note).slice(0, 40)]);
  expect(events.slice(1)).toEqual([
    ["RulesChangedByOthers", "Warning", "nft (pid 7) changed table ip turnout"],
    ["RulesChangedByOthers", "Warning", expect.stringMatching(/^nft \(pid 9\) x+$/)],
  ]);
});

it("tells of nothing unless asked to", async () => {
  await run.follow(api, {}, { clock });
  await watching(api);
  expect(api.requests.filter(({ method }) => method !== "GET")).toEqual([]);
});

it("is refused with one line, and everything else goes on", async () => {
  api.misbehave({ only: { kind: "Event" }, status: 403 });
  await run.follow(api, {}, { startedProxy: STARTED, clock });
  await eventually(() => told().length === 1);
  await watching(api);
  expect(told()[0]?.line).toMatch(/^info /);
  expect(run.log.of("warn")).toEqual([]);
  expect(api.requests.filter(({ method }) => method === "POST")).toHaveLength(1);
  expect(run.sink.objects.has("Service shop/cart")).toBe(true);
});

it("is sent when the API server is there, and given up after twelve tries", async () => {
  api.misbehave({ only: { kind: "Event" }, status: 503, times: 3 });
  await run.follow(api, {}, { startedProxy: STARTED, clock });
  await eventually(() => api.objects("Event").length === 1);
  // 10 s, and an eighth more by chance.
  expect(clock.sleeps.filter((ms) => ms === 11_250)).toHaveLength(3);
  expect(told()).toEqual([]);
  await run.end();
  run = await KubeRun.create();
  api.misbehave({ only: { kind: "Event" }, status: 503 });
  const before = api.requests.length;
  await run.follow(api, {}, { startedProxy: STARTED, clock });
  await eventually(() => told().length === 1);
  expect(api.requests.slice(before).filter(({ method }) => method === "POST")).toHaveLength(12);
});
