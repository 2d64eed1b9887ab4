import { expect, it } from "vitest";
import { ProxyError, type Plan } from "@turnout/core/backend";
import { SHOWCASE } from "@turnout/core/testing";
import type { NftSession } from "@turnout/host/nft";
import { createFakeLog } from "@turnout/host/testing";
import { Applier } from "./apply.ts";
import { nftMetrics } from "./metrics.ts";
import type { ChainObject } from "./objects.ts";
import type { Transaction } from "./plan.ts";
import { openProxy } from "./test-support/states.ts";
import { createFakeHost } from "./testing/index.ts";

const { signal } = new AbortController();

it("a plan of which a transaction fails is counted, by kube-proxy's name", async () => {
  const host = createFakeHost();
  const proxy = await openProxy(host.world);
  const { backend } = proxy;
  const name = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total";
  const failures = async (): Promise<readonly unknown[]> =>
    ((await backend.metrics?.()) ?? []).filter((reported) => reported.name === name).map(({ kind, value }) => [name, kind, value]);
  expect(await failures()).toEqual([[name, "counter", 0]]);
  host.setFault({ when: "before", afterChanges: 0 });
  await expect(proxy.apply(SHOWCASE)).rejects.toMatchObject({ code: "tool_failed" });
  expect(await failures()).toEqual([[name, "counter", 1]]);
  await proxy.apply();
  expect(await failures()).toEqual([[name, "counter", 1]]);
});

it("an idle chain that something still uses is counted at each try, by kube-proxy's name, and fails no sync", async () => {
  const chain = { kind: "chain", key: "pick-tcp-4", value: "" } as unknown as ChainObject;
  let isUsed = true;
  const commit = (): Promise<void> =>
    isUsed ? Promise.reject(new ProxyError("tool_failed", "Device or resource busy")) : Promise.resolve();
  const applier = new Applier({ commit } as unknown as NftSession, { log: createFakeLog() });
  const step = { statements: [], emptied: [], deleted: [{ chain, statement: "delete chain ip turnout pick-tcp-4" }] };
  const plan = { steps: [step] } as unknown as Plan<Transaction>;
  expect(await applier.apply(plan, signal)).toMatchObject({ lingering: [{ object: chain }] });
  isUsed = false;
  expect(await applier.apply(plan, signal)).toEqual({});
  expect(nftMetrics(0, applier.cleanupFailures).map(({ name, value }) => [name, value])).toEqual([
    ["kubeproxy_sync_proxy_rules_nftables_sync_failures_total", 0],
    ["kubeproxy_sync_proxy_rules_nftables_cleanup_failures_total", 1],
  ]);
});
