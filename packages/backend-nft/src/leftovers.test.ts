import { expect, test } from "vitest";
import { leftoverTables } from "./leftovers.ts";
import { nftModule } from "./module.ts";
import { FACTS, stateOf } from "./test-support/states.ts";
import { createFakeHost } from "./testing/index.ts";

const listed = (...names: readonly string[]): string =>
  JSON.stringify({
    nftables: [
      { metainfo: { version: "1.0.6", json_schema_version: 1 } },
      ...names.map((name) => ({ table: { family: "ip", name, handle: 1 } })),
    ],
  });

test.each([
  ["nothing is there", [], true, []],
  ["kube-proxy's, beside ours in use", ["turnout", "kube-proxy", "nat"], true, ["kube-proxy"]],
  ["both, once another backend has taken our place", ["nat", "kube-proxy", "turnout"], false, ["turnout", "kube-proxy"]],
  ["names that only begin like one", ["turnout2", "kube-proxy-old", "my-turnout"], false, []],
])("%s", (_name, tables, isInUse, expected) => {
  expect(leftoverTables(listed(...tables), isInUse)).toEqual(expected);
});

test("what somebody does after kube-proxy's table was removed is told, also the first time", async () => {
  const host = createFakeHost();
  const stop = new AbortController();
  host.nft("add table ip kube-proxy\n");
  const dataplane = await nftModule.open(nftModule.parseOptions({}), host.world, stop.signal);
  const backend = dataplane.family("IPv4");
  const put = backend.skeleton({ node: stateOf([], "IPv4").node, host: FACTS }).map((after) => ({ after }));
  await backend.observe(stop.signal);
  await backend.apply(backend.plan({ put, remove: [], lingering: [], nowMs: 0 }), stop.signal);
  const told: string[] = [];
  const watching = (async (): Promise<void> => {
    for await (const event of backend.watch?.(stop.signal) ?? []) if (event.kind === "drift") told.push(event.what);
  })();
  await host.advance(1_000);
  for (const { remove } of (await backend.leftovers?.(true, stop.signal)) ?? []) await remove(stop.signal);
  await host.advance(1_000);
  expect(told).toEqual([]);
  expect(host.nft("flush chain ip turnout nat-prerouting\n")).toMatchObject({ isDone: true });
  await host.advance(1_000);
  expect(told).toHaveLength(1);
  stop.abort();
  await watching;
});
