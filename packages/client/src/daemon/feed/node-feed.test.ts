import { expect, test } from "vitest";
import { ToyFeed, ToyLog, toyChange, toyFull, toyNode, toyRow } from "../../test-support/toys.ts";
import { NodeFeed } from "./node-feed.ts";

test("a feed tells once when health check node ports may have changed", async () => {
  const source = new ToyFeed();
  const log = new ToyLog();
  const feed = new NodeFeed({ feed: source, family: "IPv4", log, bound: { entriesMax: 10, report: () => undefined } });
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
    expect([feed.consumeHealthTouched(), feed.consumeHealthTouched()]).toEqual([expected, false]);
  }
  expect(log.lines).toEqual([]);
  // They are answered on the node's own address.
  source.push(toyChange({ node: toyNode({ addresses: ["127.0.0.9"] }) }));
  await feed.next(signal);
  expect(feed.consumeHealthTouched()).toBe(true);
  expect(log.lines).toEqual(["info this node has another address node=node1 family=IPv4 before=127.0.0.1 now=127.0.0.9"]);
  source.push(toyChange({ node: toyNode({ addresses: [] }) }));
  expect((await feed.next(signal)).node?.addresses).toEqual([]);
  source.push(toyChange({ node: toyNode({ addresses: ["127.0.0.9"] }) }));
  await feed.next(signal);
  // A node-state server that was started anew and doesn't know the node yet changes nothing of that.
  source.push(toyFull([], toyNode({ addresses: [] })));
  expect((await feed.next(signal)).node?.addresses).toEqual(["127.0.0.9"]);
});
