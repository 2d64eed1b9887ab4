import { Store, createFeed, OBJECT_KINDS, type Issue } from "@turnout/core";
import { RecordingLog, flushPromises, TestClock } from "@turnout/core/testing";
import { describe, expect, it } from "vitest";
import { IssueLog } from "./issue-log.ts";

function setUp() {
  const log = new RecordingLog();
  const clock = new TestClock();
  const counted: string[] = [];
  const issues = new IssueLog({ log, clock, count: (object) => void counted.push(object) });
  const warnings = (): readonly string[] => log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);
  const leftOut = (): readonly unknown[] => log.lines.flatMap(({ fields }) => fields["leftOut"] ?? []);
  return { log, clock, counted, issues, warnings, leftOut };
}

function issue(number: number, kind: string = "bad port"): Issue {
  return { object: `Service shop/s${number}`, what: `${kind}: ${number}`, hint: "use 1 to 65535" };
}

const MORE = "more reports of this kind are left out of the log for now";
const LEFT_OUT = "reports of this kind were left out of the log";

describe("a log of issues", () => {
  it("has the first ones at once, then how many were left out, each minute; all are counted, and logged for debugging", async () => {
    const { log, clock, counted, issues, warnings, leftOut } = setUp();
    // 26,000 in 9 s, as from one claim that is toggled among 2,000 Services.
    for (let second = 0; second < 9; second++) {
      for (let number = 0; number < 2_889; number++) issues.report(issue(number));
      await clock.advance(1_000);
    }
    expect(warnings()).toEqual([...Array.from({ length: 20 }, (_, number) => `bad port: ${number}`), MORE]);
    await clock.advance(60_000);
    expect(warnings().slice(21)).toEqual([LEFT_OUT]);
    expect(leftOut()).toEqual([9 * 2_889 - 20]);
    expect(counted).toHaveLength(9 * 2_889);
    expect(log.lines.filter(({ level }) => level === "debug")).toHaveLength(9 * 2_889 - 20);
    issues.report(issue(1));
    expect(warnings().at(-1)).toBe("bad port: 1");
  });

  it("limits each kind by itself: what is behind the colon is a value", () => {
    const { issues, warnings } = setUp();
    for (let number = 0; number < 1_000; number++) issues.report(issue(number));
    issues.report(issue(7, "no usable name"));
    expect(warnings().slice(20)).toEqual([MORE, "no usable name: 7"]);
  });

  it("says nothing of a kind of which nothing was left out", async () => {
    const { clock, issues, warnings } = setUp();
    for (let number = 0; number < 20; number++) issues.report(issue(number));
    await clock.advance(600_000);
    expect(warnings()).toHaveLength(20);
    expect(clock.sleeping).toBe(0);
  });

  it("says at its end what was left out, and holds nobody up", async () => {
    const { clock, issues, warnings, leftOut } = setUp();
    for (let number = 0; number < 50; number++) issues.report(issue(number));
    issues.close();
    await flushPromises();
    expect(leftOut()).toEqual([30]);
    expect(clock.sleeping).toBe(0);
    for (let number = 0; number < 50; number++) issues.report(issue(number));
    expect(warnings()).toHaveLength(22 + 50);
  });

  it("takes kinds without number for one", async () => {
    const { clock, issues, warnings } = setUp();
    for (let number = 0; number < 10_000; number++) issues.report(issue(number, `kind ${number}`));
    await clock.advance(60_000);
    expect(warnings()).toHaveLength(100 + 20 + 2);
  });

  it("is told little when one of 2,000 Services that want an address takes it and lets it go", async () => {
    const { clock, counted, issues, warnings } = setUp();
    const store = new Store({ report: issues.report });
    const settings = {
      masqueradeAll: false,
      masqueradeBit: 14,
      detectLocal: { mode: "ClusterCIDR", clusterCIDRs: [] },
      nodePortAddresses: undefined,
    } as const;
    const feed = createFeed(store, { nodeName: "node1", family: "IPv4", settings, report: issues.report });
    const put = (number: number, externalIPs: readonly string[]): void =>
      store.upsert("Service", {
        metadata: { namespace: "shop", name: `s${number}`, creationTimestamp: new Date(number * 1_000).toISOString() },
        spec: { clusterIP: `10.96.${number >> 8}.${number & 255}`, externalIPs, ports: [{ port: 80 }] },
      });
    for (let number = 1; number <= 2_000; number++) put(number, ["198.51.100.1"]);
    for (const kind of OBJECT_KINDS) store.markSynced(kind);
    const { signal } = new AbortController();
    await feed.next(signal);
    expect([counted.length, warnings().length]).toEqual([1_999, 21]);
    await clock.advance(60_000);
    for (let toggle = 0; toggle < 26; toggle++) {
      put(1, toggle % 2 === 0 ? [] : ["198.51.100.1"]);
      expect((await feed.next(signal)).set).toHaveLength(2);
    }
    // The one that had it meanwhile was reported before.
    expect(counted).toHaveLength(1_999);
    expect(warnings().length).toBeLessThan(40);
  });
});
