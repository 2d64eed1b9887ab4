import { expect, test } from "vitest";
import { nftModule } from "./module.ts";
import { openProxy } from "./test-support/states.ts";
import { createFakeHost } from "./testing/index.ts";

test.each<readonly [name: string, tables: readonly string[], isInUse: boolean, expected: readonly string[]]>([
  ["nothing is there", [], true, []],
  ["kube-proxy's, beside ours in use", ["turnout", "kube-proxy", "nat"], true, ["table ip kube-proxy"]],
  ["both, once another backend has taken our place", ["nat", "kube-proxy", "turnout"], false, ["table ip turnout", "table ip kube-proxy"]],
  ["names that only begin like one", ["turnout2", "kube-proxy-old", "my-turnout"], false, []],
])("%s", async (_name, tables, isInUse, expected) => {
  const host = createFakeHost();
  for (const table of tables) host.nft({ add: { table: { family: "ip", name: table } } });
  // What nft itself lists costs what there is of chains, whoever's.
  const exec = { ...host.world.exec, run: () => Promise.reject(new Error("nft is not asked")) };
  const { signal } = new AbortController();
  const backend = (await nftModule.open(nftModule.parseOptions({}), { ...host.world, exec }, signal)).family("IPv4");
  expect(((await backend.leftovers?.(isInUse, signal)) ?? []).map(({ what }) => what)).toEqual(expected);
});

test("what somebody does after kube-proxy's table was removed is told, also the first time", async () => {
  const host = createFakeHost();
  const stop = new AbortController();
  host.nft({ add: { table: { family: "ip", name: "kube-proxy" } } });
  const proxy = await openProxy(host.world);
  const { backend } = proxy;
  await proxy.adopt();
  await proxy.sync([]);
  const reported: string[] = [];
  const watching = (async (): Promise<void> => {
    for await (const event of backend.watch?.(stop.signal) ?? []) if (event.kind === "drift") reported.push(event.what);
  })();
  await host.advance(1_000);
  for (const { remove } of (await backend.leftovers?.(true, stop.signal)) ?? []) await remove(stop.signal);
  await host.advance(1_000);
  expect(reported).toEqual([]);
  expect(host.nft({ flush: { chain: { family: "ip", table: "turnout", name: "nat-prerouting" } } })).toMatchObject({ isDone: true });
  await host.advance(1_000);
  expect(reported).toHaveLength(1);
  stop.abort();
  await watching;
});
