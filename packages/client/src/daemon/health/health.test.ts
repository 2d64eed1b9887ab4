import type { IPFamily, Node } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { ToyLog } from "../../test-support/toys.ts";
import { eligibilityOf } from "../../api/eligibility.ts";
import { healthReply, judge, probe, serviceHealthReply, unhealthyReason, type SyncProgress } from "./health.ts";

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 6);
const CLOCK = { nowMs: () => NOW };
const PERIOD = 30_000;

function node(overrides: Partial<Node> = {}): Node {
  return { name: "node1", addresses: [], podCIDRs: [], zone: "", isDeleting: false, isLeaving: false, ...overrides };
}

function progress(overrides: Partial<SyncProgress> = {}): SyncProgress {
  return { startedMs: NOW - 100_000, lastSuccessMs: NOW - 1_000, pendingSinceMs: undefined, unready: "", ...overrides };
}

function families(entries: Partial<Record<IPFamily, SyncProgress>>): ReadonlyMap<IPFamily, SyncProgress> {
  return new Map(Object.entries(entries) as [IPFamily, SyncProgress][]);
}

test("why: waiting changes with their families, and what the node says", () => {
  const late = progress({ pendingSinceMs: NOW - 2 * PERIOD });
  const leaving = { isEligible: false, reason: "the node is being deleted" };
  const one = judge(families({ IPv4: late, IPv6: progress() }), PERIOD, NOW);
  expect(unhealthyReason(one, undefined)).toBe("a change has waited for two sync periods (IPv4)");
  expect(unhealthyReason(one, leaving)).toBe("a change has waited for two sync periods (IPv4); the node is being deleted");
  expect(unhealthyReason(judge(families({ IPv4: progress() }), PERIOD, NOW), { isEligible: true, reason: "" })).toBe("");
});

test("an answer that turns is logged with its reason, one that stays is not", () => {
  const log = new ToyLog();
  const statuses = [200, 503, 503, 200, 200].values();
  const answer = probe("/healthz", log, () => ({ reply: { status: statuses.next().value ?? 0, headers: {}, body: "" }, reason: "late" }));
  for (let asked = 0; asked < 5; asked += 1) answer();
  expect(log.lines).toEqual(["warn /healthz answers 503 reason=late", "info /healthz answers 200 again"]);
});

describe("eligibilityOf", () => {
  test.each([
    ["an ordinary node", node(), true],
    ["an unknown node", undefined, false],
    ["a node being deleted", node({ isDeleting: true }), false],
    ["a node the autoscaler removes", node({ isLeaving: true }), false],
  ])("%s", (_name, given, expected) => {
    const { isEligible, reason } = eligibilityOf(given);
    expect(isEligible).toBe(expected);
    expect(reason === "").toBe(expected);
  });
});

describe("judge", () => {
  test.each([
    ["nothing pending", undefined, true],
    ["pending just short of two periods", NOW - 2 * PERIOD + 1, true],
    ["pending for two periods", NOW - 2 * PERIOD, false],
  ])("%s", (_name, pendingSinceMs, expected) => {
    expect(judge(families({ IPv4: progress({ pendingSinceMs }) }), PERIOD, NOW).isHealthy).toBe(expected);
  });

  test("one unhealthy family is enough, families that never started count for nothing", () => {
    const stuck = progress({ pendingSinceMs: NOW - 3 * PERIOD });
    const report = judge(families({ IPv4: progress(), IPv6: stuck }), PERIOD, NOW);
    expect(report.isHealthy).toBe(false);
    expect([...report.families.values()].map((family) => family.isHealthy)).toEqual([true, false]);
    expect(judge(families({}), PERIOD, NOW).isHealthy).toBe(true);
  });

  test("before the first sync the start counts as the last update", () => {
    const report = judge(families({ IPv4: progress({ lastSuccessMs: undefined }) }), PERIOD, NOW);
    expect(report).toMatchObject({ isHealthy: true, lastUpdatedMs: NOW - 100_000 });
  });
});

describe("healthReply", () => {
  const good = judge(families({ IPv4: progress() }), PERIOD, NOW);
  const bad = judge(families({ IPv4: progress({ pendingSinceMs: NOW - 3 * PERIOD }) }), PERIOD, NOW);
  const eligible = { isEligible: true, reason: "" };
  const leaving = { isEligible: false, reason: "leaving" };

  test.each([
    ["/healthz, all well", good, eligible, 200, { healthy: true, nodeEligible: true }],
    ["/healthz, the node is leaving", good, leaving, 503, { healthy: true, nodeEligible: false }],
    ["/healthz, syncing is stuck", bad, eligible, 503, { healthy: false, nodeEligible: true }],
    ["/livez, all well", good, undefined, 200, { healthy: true }],
    ["/livez, syncing is stuck", bad, undefined, 503, { healthy: false }],
  ])("%s", (_name, report, eligibility, status, body) => {
    const reply = healthReply(report, eligibility, CLOCK);
    const parsed = JSON.parse(reply.body) as Record<string, unknown>;
    expect(reply.status).toBe(status);
    expect(parsed).toMatchObject(body);
    expect("nodeEligible" in parsed).toBe(eligibility !== undefined);
    expect(reply.headers).toEqual({ "Content-Type": "application/json", "X-Content-Type-Options": "nosniff" });
  });

  test("times are as the wall clock is set now", () => {
    const ahead = { nowMs: () => NOW, aheadMs: () => 7_200_000 };
    expect(JSON.parse(healthReply(good, leaving, ahead).body)).toMatchObject({
      currentTime: new Date(NOW + 7_200_000).toISOString(),
      lastUpdated: new Date(NOW + 7_199_000).toISOString(),
      status: { IPv4: { lastUpdated: new Date(NOW + 7_199_000).toISOString() } },
    });
  });

  test("with 200 lastUpdated is now, with 503 the newest sync", () => {
    const now = new Date(NOW).toISOString();
    const synced = new Date(NOW - 1_000).toISOString();
    expect(JSON.parse(healthReply(good, eligible, CLOCK).body)).toMatchObject({ lastUpdated: now, currentTime: now });
    expect(JSON.parse(healthReply(good, leaving, CLOCK).body)).toMatchObject({
      lastUpdated: synced,
      status: { IPv4: { lastUpdated: synced, healthy: true } },
    });
  });
});

describe("serviceHealthReply", () => {
  test("is upstream's body to the byte", () => {
    const reply = serviceHealthReply("shop", "cart", 2, true);
    expect(reply.body).toBe(
      '{\n\t"service": {\n\t\t"namespace": "shop",\n\t\t"name": "cart"\n\t},\n\t"localEndpoints": 2,\n\t"serviceProxyHealthy": true\n}',
    );
    expect(reply.headers).toEqual({
      "Content-Type": "application/json",
      "X-Content-Type-Options": "nosniff",
      "X-Load-Balancing-Endpoint-Weight": "2",
    });
  });

  test.each([
    ["endpoints and a healthy proxy", 1, true, 200],
    ["no endpoint here", 0, true, 503],
    ["an unhealthy proxy", 1, false, 503],
  ])("%s", (_name, count, isHealthy, status) => {
    expect(serviceHealthReply("a", "b", count, isHealthy).status).toBe(status);
  });
});
