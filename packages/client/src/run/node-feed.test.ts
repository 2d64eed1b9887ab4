import type { NodeContext, ProxyError } from "@turnout/core";
import { expect, test } from "vitest";
import { ToyFeed, toyChange, toyFull, toyNode, toyRow } from "../testing/toys.ts";
import { NodeFeed, restartReason } from "./node-feed.ts";

const BY_NODE = { ...toyNode().settings, detectLocal: { mode: "NodeCIDR" } } as const;

test.each<[string, Partial<NodeContext>, Partial<NodeContext>, RegExp | undefined]>([
  ["nothing changed", {}, {}, undefined],
  ["addresses become known", { addresses: [] }, {}, undefined],
  ["the zone changed", {}, { zone: "b" }, undefined],
  ["the address changed", {}, { addresses: ["127.0.0.2"] }, /canceled.*addresses changed from 127.0.0.1 to 127.0.0.2/],
  ["another address took the first place", {}, { addresses: ["127.0.0.2", "127.0.0.1"] }, /addresses changed/],
  ["an address was added", {}, { addresses: ["127.0.0.1", "127.0.0.2"] }, undefined],
  ["an address besides the primary one went", { addresses: ["127.0.0.1", "127.0.0.2"] }, { addresses: ["127.0.0.1"] }, undefined],
  ["the node is gone", {}, { addresses: [] }, /not_found.*deleted/],
  [
    "pod CIDRs changed in mode NodeCIDR",
    { settings: BY_NODE, podCIDRs: ["10.1.0.0/24"] },
    { settings: BY_NODE, podCIDRs: ["10.2.0.0/24"] },
    /pod CIDRs changed/,
  ],
  ["pod CIDRs become known in mode NodeCIDR", { settings: BY_NODE }, { settings: BY_NODE, podCIDRs: ["10.2.0.0/24"] }, undefined],
  ["pod CIDRs changed in another mode", { podCIDRs: ["10.1.0.0/24"] }, { podCIDRs: ["10.2.0.0/24"] }, undefined],
])("restartReason: %s", (_name, before, after, expected) => {
  const reason = restartReason(toyNode(before), toyNode(after));
  expect(reason?.message ?? "no reason").toMatch(expected ?? /^no reason$/);
});

test("a feed tells once when health check node ports may have changed", async () => {
  const source = new ToyFeed();
  const reasons: ProxyError[] = [];
  const feed = new NodeFeed(source, (reason) => reasons.push(reason));
  const { signal } = new AbortController();
  const healthy = toyRow("b", { healthCheck: { port: 30_000, readyLocal: 1 } });
  const steps: [ReturnType<typeof toyChange>, boolean][] = [
    [toyFull([toyRow("a")]), false],
    [toyChange({ set: [healthy] }), true],
    [toyChange({ set: [toyRow("a")] }), false],
    [toyChange({ set: [toyRow("b")] }), true],
    [toyChange({ set: [healthy] }), true],
    [toyChange({ delete: ["shop/a:http/TCP"] }), false],
    [toyChange({ delete: [healthy.key] }), true],
    [toyChange({ set: [healthy] }), true],
    [toyFull([]), true],
  ];
  for (const [changes, expected] of steps) {
    source.push(changes);
    expect(await feed.next(signal)).toBe(changes);
    expect([feed.takeHealthTouched(), feed.takeHealthTouched()]).toEqual([expected, false]);
  }
  expect(reasons).toEqual([]);
  source.push(toyChange({ node: toyNode({ addresses: ["127.0.0.9"] }) }));
  await feed.next(signal);
  expect(reasons).toHaveLength(1);
});
