import { ProxyError, type ServicePort } from "@turnout/core";
import { describe, expect, test } from "vitest";
import { toyEndpoint, toyRow } from "../../test-support/toys.ts";
import type { FamilyView } from "./proxy-view.ts";
import { listRows, type ListedRow } from "./service-list.ts";

function viewOf(rows: readonly ServicePort[], family: "IPv4" | "IPv6" = "IPv4", changes: Partial<FamilyView> = {}): FamilyView {
  const none: Partial<FamilyView> = { family, refusals: [], waitingRows: [], pendingSinceMs: undefined };
  return { ...none, rows: new Map(rows.map((row) => [row.key, row])), ...changes } as FamilyView;
}

const CART = toyRow("cart", {
  endpoints: [
    toyEndpoint("10.1.0.5", { isLocal: true, nodeName: "node1" }),
    toyEndpoint("10.1.0.6", { ready: false, serving: true, terminating: true, nodeName: "node2" }),
    toyEndpoint("10.1.0.7", { ready: false }),
  ],
  cluster: [0],
  local: [0],
  affinitySeconds: 600,
  externalLocal: true,
  destinations: [
    {
      kind: "clusterIP",
      address: "10.96.0.10",
      port: 80,
      rules: [
        { from: "offCluster", to: "cluster", masquerade: true },
        { from: "anyone", to: "cluster", masquerade: false },
      ],
    },
    { kind: "nodePort", address: "", port: 30_080, rules: [{ from: "anyone", to: "local", masquerade: false }] },
  ],
});

function keysOf(rows: readonly ListedRow[]): readonly string[] {
  return rows.map(({ key, family }) => `${key.replace("shop/", "").replace(":http/TCP", "")} ${family}`);
}

test("a row is listed with all that decides about its packets, in words", () => {
  const { rows } = listRows(
    [viewOf([CART])],
    { search: "", after: "" },
    new Map([["IPv4", [{ row: CART.key, name: CART.name, counts: { connections: 3 } }]]]),
  );
  expect(rows).toEqual([
    {
      key: "shop/cart:http/TCP",
      family: "IPv4",
      destinations: {
        count: 2,
        first: [
          { kind: "clusterIP", text: "10.96.0.10:80", rules: ["offCluster → cluster (masquerade)", "anyone → cluster"] },
          { kind: "nodePort", text: "node port 30080", rules: ["anyone → local"] },
        ],
      },
      endpoints: {
        count: 3,
        first: [
          "10.1.0.5:8080 on this node: ready",
          "10.1.0.6:8080 on node2: terminating, still serving, not used from here",
          "10.1.0.7:8080: not ready, not used from here",
        ],
        serving: 1,
      },
      policies: ["externalTrafficPolicy: Local", "sessionAffinity: ClientIP, 600 s"],
      isRefused: false,
      isWaiting: false,
      counts: { connections: 3 },
    },
  ]);
});

test("a row that the host refuses, and one that waits, are told as such", () => {
  const refusals = [{ object: undefined, rows: [CART.key], error: new ProxyError("tool_failed", "no"), sinceMs: 0 }];
  const view = viewOf([CART, toyRow("web")], "IPv4", { refusals, waitingRows: ["shop/web:http/TCP"], pendingSinceMs: 5 });
  const { rows } = listRows([view], { search: "", after: "" }, new Map());
  expect(rows.map(({ isRefused, isWaiting }) => [isRefused, isWaiting])).toEqual([
    [true, false],
    [false, true],
  ]);
});

describe("a search", () => {
  const families = [viewOf([CART, toyRow("web"), toyRow("till")]), viewOf([toyRow("web", { family: "IPv6" })], "IPv6")];
  test.each([
    ["", ["cart IPv4", "till IPv4", "web IPv4", "web IPv6"]],
    ["WEB", ["web IPv4", "web IPv6"]],
    ["web ipv6", ["web IPv6"]],
    ["node port 30080", ["cart IPv4"]],
    ["30080", ["cart IPv4"]],
    ["10.1.0.7", ["cart IPv4"]],
    ["10.1.0.7:8080 shop", ["cart IPv4"]],
    ["nothing", []],
  ])("for %j finds %j", (search, expected) => {
    const { rows, count, next } = listRows(families, { search, after: "" }, new Map());
    expect([keysOf(rows), count, next]).toEqual([expected, expected.length, undefined]);
  });
});

test("pages follow one another without a gap, also when rows come and go in between", () => {
  const rows = Array.from({ length: 120 }, (_, n) => toyRow(`s${String(n).padStart(3, "0")}`));
  const first = listRows([viewOf(rows)], { search: "", after: "" }, new Map());
  expect([first.count, first.rows.length, first.next]).toEqual([120, 50, "shop/s049:http/TCP IPv4"]);
  const second = listRows([viewOf(rows.filter((_, n) => n !== 49))], { search: "", after: first.next ?? "" }, new Map());
  expect(second.rows[0]?.key).toBe("shop/s050:http/TCP");
  const third = listRows([viewOf(rows)], { search: "", after: second.next ?? "" }, new Map());
  expect([third.rows.length, third.next]).toEqual([20, undefined]);
  expect(listRows([viewOf(rows)], { search: "", after: "zzz" }, new Map()).rows).toEqual([]);
});
