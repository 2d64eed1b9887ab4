import type { NodeContext } from "@turnout/core";
import { expect, test } from "vitest";
import { ToyFeed, ToyLog, toyChange, toyFull, toyNode, toyRow } from "../../test-support/toys.ts";
import { lastingContext, NodeFeed } from "./node-feed.ts";

const PODS: Partial<NodeContext> = { podCIDRs: ["10.1.0.0/24"], detector: { by: "cidr", cidrs: ["10.1.0.0/24"] }, zone: "a" };
const UNKNOWN: Partial<NodeContext> = { addresses: [], podCIDRs: [], detector: undefined, zone: "" };

test.each<[string, Partial<NodeContext> | undefined, Partial<NodeContext>, Partial<NodeContext>]>([
  ["the first state counts as it is", undefined, UNKNOWN, UNKNOWN],
  ["a new brain knows the node not yet", PODS, UNKNOWN, { ...PODS, addresses: ["127.0.0.1"] }],
  ["a new brain knows all but the addresses", PODS, { ...PODS, addresses: [], zone: "b" }, { addresses: ["127.0.0.1"], zone: "b" }],
  ["it has another address", PODS, { addresses: ["127.0.0.2"], zone: "b" }, { addresses: ["127.0.0.2"], zone: "b" }],
  ["addresses become known", UNKNOWN, {}, { addresses: ["127.0.0.1"] }],
  ["it has none of this family", { addresses: [], zone: "a" }, { addresses: [], zone: "" }, { addresses: [], zone: "" }],
])("lastingContext: %s", (_name, before, now, expected) => {
  expect(lastingContext(before === undefined ? undefined : toyNode(before), toyNode(now))).toMatchObject(expected);
});

test("a feed tells once when health check node ports may have changed", async () => {
  const source = new ToyFeed();
  const log = new ToyLog();
  const feed = new NodeFeed(source, log);
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
    expect(await feed.next(signal)).toEqual(changes);
    expect([feed.takeHealthTouched(), feed.takeHealthTouched()]).toEqual([expected, false]);
  }
  expect(log.lines).toEqual([]);
  // They are answered on the node's own address.
  source.push(toyChange({ node: toyNode({ addresses: ["127.0.0.9"] }) }));
  await feed.next(signal);
  expect(feed.takeHealthTouched()).toBe(true);
  expect(log.lines).toEqual(["info this node has another address node=node1 family=IPv4 before=127.0.0.1 now=127.0.0.9"]);
  source.push(toyChange({ node: toyNode({ addresses: [] }) }));
  expect((await feed.next(signal)).node?.addresses).toEqual([]);
  source.push(toyChange({ node: toyNode({ addresses: ["127.0.0.9"] }) }));
  await feed.next(signal);
  // A brain that was started anew and doesn't know the node yet changes nothing of that.
  source.push(toyFull([], toyNode({ addresses: [] })));
  expect((await feed.next(signal)).node?.addresses).toEqual(["127.0.0.9"]);
});
