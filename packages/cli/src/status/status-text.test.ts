import type { FamilyStatus, ProxyStatus } from "@turnout/client/daemon";
import { describe, expect, test } from "vitest";
import { ageText, timeText } from "./ages.ts";
import { statusLine, statusText } from "./status-text.ts";

const NOW = Date.UTC(2026, 10, 23, 14, 20, 0);
const FAMILY: FamilyStatus = {
  family: "IPv4",
  isHealthy: true,
  services: 10_000,
  rows: 10_002,
  rowsWithoutEndpoints: 3,
  endpoints: 100_000,
  objects: 220_413,
  appliedSinceMs: NOW - 600_000,
  changeSets: 7,
  lastSyncMs: NOW - 2_000,
  refused: { count: 0, first: [] },
  latency: { samples: 312, p50Ms: 4.14, p99Ms: 9.62, maxMs: 40 },
};
const STATUS: ProxyStatus = {
  kind: "proxy",
  version: "0.1.0",
  backend: "nft",
  residence: "kernel",
  versions: { kernel: "6.18", nft: "1.0.6" },
  node: "node1",
  source: "kube",
  sourceProblems: {},
  startedMs: NOW - 610_000,
  nowMs: NOW,
  health: { isHealthy: true, isEligible: true, reason: "" },
  families: [FAMILY],
  issues: { count: 0, first: [] },
};

describe("statusText", () => {
  test("of a proxy that has nothing to complain of is this screen", () => {
    expect(statusText(STATUS).split("\n")).toEqual([
      "node node1: healthy",
      "turnout 0.1.0, backend nft, source kube, running since 14:09:50 UTC (10m10s ago)",
      "kernel 6.18, nft 1.0.6",
      "",
      "      Services   ports  without endpoints  endpoints  objects  in force since  last sync  changes take",
      "IPv4    10,000  10,002                  3    100,000  220,413  14:10:00 UTC    2s ago     p50 4.1 ms, p99 9.6 ms (last 312)",
      "",
      "Waiting: nothing",
      "Refused by the host: nothing",
      "Changed by others: nothing",
      "Reported about API objects: nothing",
      "",
    ]);
  });

  test("says in its first line what /healthz does not: that the source is away, or has no Service", () => {
    const first = (status: Partial<ProxyStatus>): string | undefined => statusText({ ...STATUS, ...status }).split("\n")[0];
    const empty = [{ ...FAMILY, services: 0 }];
    expect(first({ sourceProblems: { files: "ENOENT" } })).toBe(
      "node node1: healthy (/healthz), BUT the source is not followed, so changes of Services don't come in",
    );
    expect(first({ families: empty })).toBe("node node1: healthy (/healthz), BUT no Service at all is known, so none is served");
    expect(first({ families: [FAMILY, ...empty] })).toBe("node node1: healthy");
    const notInForce = { services: 2, objects: 9, sources: 0 };
    expect(first({ notInForce })).toBe("node node1: healthy (/healthz), BUT the host refuses ports of 2 Services");
    expect(first({ health: { ...STATUS.health, unready: "IPv4: the host lacks table ip turnout" } })).toBe(
      "node node1: healthy (/healthz), BUT packets don't go by its rules (/readyz): IPv4: the host lacks table ip turnout",
    );
    expect(statusLine({ ...STATUS, families: empty })).toContain("healthy; no Service at all is known, so none is served; ");
  });

  const withFamily = (changes: Partial<FamilyStatus>): ProxyStatus => ({ ...STATUS, families: [{ ...FAMILY, ...changes }] });
  const { appliedSinceMs: _none, ...unsynced } = FAMILY;
  const error = { code: "tool_failed", message: "[tool_failed] no route: see ip route" };
  const row = "shop/cart:http/TCP";
  test.each<readonly [name: string, status: ProxyStatus, lines: readonly string[]]>([
    [
      "that has nothing in force yet",
      { ...STATUS, families: [unsynced] },
      ["Waiting:", "  IPv4: for its first state; see the log and the source"],
    ],
    [
      "where a change waits",
      withFamily({
        waiting: { sinceMs: NOW - 61_000, rows: { count: 9, first: ["a", "b", "c", "d"] }, error: "[timed_out] the lock is held" },
      }),
      ["  IPv4: since 14:18:59 UTC (1m1s ago): a, b, c and 6 more", "    → [timed_out] the lock is held; it is tried again by itself"],
    ],
    [
      "where the host refuses an object",
      withFamily({ refused: { count: 1, first: [{ object: "element 10.96.0.10", rows: [row], error, sinceMs: NOW }] } }),
      [`  IPv4: since 14:20:00 UTC (0s ago): element 10.96.0.10 of ${row}`, "    → [tool_failed] no route: see ip route"],
    ],
    [
      "where the host refuses more than fits",
      withFamily({ refused: { count: 70, first: Array.from({ length: 20 }, () => ({ rows: [row], error, sinceMs: NOW })) } }),
      [
        `  IPv4: since 14:20:00 UTC (0s ago): all of ${row}, kept as it was`,
        "  and 65 more; -o json shows the first twenty, the log each when it began",
      ],
    ],
    [
      "whose rules others changed",
      withFamily({ externalChange: { atMs: NOW - 3_000, who: "nft (pid 12370)", objects: 14 } }),
      ["  IPv4: 14:19:57 UTC (3s ago): nft (pid 12370): 14 objects, repaired since"],
    ],
    [
      "beside another",
      withFamily({ otherProxies: [{ backend: "iptables", what: "27 KUBE-* chains", sinceMs: NOW - 3_000 }] }),
      [
        "Another service proxy has rules in force; stop it, then restart this one:",
        "  IPv4: since 14:19:57 UTC (3s ago): 27 KUBE-* chains",
      ],
    ],
    [
      "that counts",
      withFamily({
        counted: {
          count: 1,
          first: [
            { row, name: { namespace: "shop", name: "cart", port: "http", protocol: "TCP" }, counts: { connections: 1_200, rejects: 3 } },
          ],
          readMs: NOW - 2_000,
        },
      }),
      ["Counted until 14:19:58 UTC (2s ago), the busiest first:", `  IPv4 ${row}: 1,200 connections, 3 refused (no endpoints)`],
    ],
    [
      "that counted one",
      withFamily({
        counted: {
          count: 1,
          first: [{ row, name: { namespace: "shop", name: "cart", port: "http", protocol: "TCP" }, counts: { connections: 1 } }],
          readMs: NOW - 2_000,
        },
        externalChange: { atMs: NOW - 3_000, who: "nft (pid 12370)", objects: 1 },
      }),
      [`  IPv4 ${row}: 1 connection`],
    ],
    ["that counts, and has not read anything yet", withFamily({ counted: { count: 0, first: [] } }), ["Counted (being read): nothing"]],
    [
      "that was told of a bad object, in words that a terminal would obey",
      { ...STATUS, issues: { count: 1, first: [{ object: "Service shop/cart", what: "bad \u001b[2J port", hint: "mend it" }] } },
      ["  Service shop/cart: bad  [2J port", "    → mend it"],
    ],
    [
      "whose source is away",
      { ...STATUS, sourceProblems: { Service: "connection refused" } },
      ["the source is not followed: Service: connection refused; rules stay as they are"],
    ],
    [
      "that is late",
      { ...STATUS, health: { isHealthy: false, isEligible: true, reason: "a change has waited" } },
      ["node node1: NOT HEALTHY: a change has waited"],
    ],
  ])("of a proxy %s says so", (_name, status, lines) => {
    expect(statusText(status).split("\n")).toEqual(expect.arrayContaining([...lines]));
  });

  test("never takes more than a screen", () => {
    const many = <T>(one: T) => ({ count: 1_000, first: Array.from({ length: 20 }, () => one) });
    const worst = {
      ...FAMILY,
      refused: many({ object: "o", rows: [row], error, sinceMs: 0 }),
      externalChange: { atMs: 0, who: "x", objects: 1 },
      otherProxies: ["a", "b"].map((backend) => ({ backend, what: "w", sinceMs: 0 })),
    };
    const waiting = { sinceMs: 0, rows: many(row), error: "[timed_out] late" };
    const both = [
      { ...worst, waiting },
      { ...worst, waiting, family: "IPv6" as const },
    ];
    const issues = many({ object: "o", what: "w", hint: "h" });
    expect(statusText({ ...STATUS, families: both, issues }).split("\n").length).toBeLessThan(45);
  });
});

test("of a node-state server says what it holds and who asks", () => {
  const server = {
    kind: "node-state-server",
    version: "0.1.0",
    source: "kube",
    startedMs: NOW - 60_000,
    nowMs: NOW,
    isComplete: true,
  } as const;
  const objects = { Service: 2, EndpointSlice: 3, Node: 1, ServiceCIDR: 0 };
  const common = { sourceProblems: {}, objects, watchers: 4, views: 2, issues: { count: 0, first: [] } };
  expect(statusText({ ...server, ...common }).split("\n")).toEqual([
    "node-state server: healthy",
    "turnout 0.1.0, source kube, running since 14:19:00 UTC (1m ago)",
    "",
    "API objects: Service 2, EndpointSlice 3, Node 1, ServiceCIDR 0",
    "Backends: 4 streams, for 2 nodes and settings",
    "Reported about API objects: nothing",
    "",
  ]);
  expect(statusLine({ ...server, ...common, listenProblem: "the socket is gone" })).toContain("NOT HEALTHY: new clients can't connect");
});

test("statusLine does not change as time goes by", () => {
  const later = { ...STATUS, nowMs: NOW + 5_000 };
  expect(statusLine(STATUS)).toBe(
    "healthy; IPv4: 10000 Services, 10002 ports, 220413 objects in force, change set 7, 0 refused; 0 reported",
  );
  expect(statusLine(later)).toBe(statusLine(STATUS));
  const changed = { ...STATUS, families: [{ ...FAMILY, changeSets: 8 }] };
  expect(statusLine(changed)).not.toBe(statusLine(STATUS));
});

test.each([
  [-5, "0s"],
  [999, "0s"],
  [41_000, "41s"],
  [60_000, "1m"],
  [3_601_000, "1h"],
  [11_520_000, "3h12m"],
  [90_061_000, "1d1h"],
])("ageText of %d ms is %s", (ms, text) => {
  expect(ageText(ms)).toBe(text);
});

test("timeText has the date of another day", () => {
  expect([timeText(NOW, NOW), timeText(NOW - 86_400_000, NOW)]).toEqual(["14:20:00 UTC", "2026-11-22 14:20:00 UTC"]);
});
