import { expect, it } from "vitest";
import { FACTS, SHOWCASE, stateOf } from "./test-support/states.ts";
import { nftModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

const { signal } = new AbortController();

it("a plan of which a transaction fails is counted, by kube-proxy's name", async () => {
  const host = createFakeHost();
  const backend = (await nftModule.open(nftModule.parseOptions({}), host.world, signal)).family("IPv4");
  const { node } = stateOf(SHOWCASE, "IPv4");
  const put = backend.skeleton({ node, host: FACTS }).map((after) => ({ after }));
  const plan = backend.plan({ put, remove: [], lingering: [], nowMs: 0 });
  const failures = (): readonly unknown[] => (backend.metrics?.() ?? []).map(({ name, kind, value }) => [name, kind, value]);
  const name = "kubeproxy_sync_proxy_rules_nftables_sync_failures_total";
  expect(failures()).toEqual([[name, "counter", 0]]);
  host.setFault({ when: "before", afterChanges: 0 });
  await expect(backend.apply(plan, signal)).rejects.toMatchObject({ code: "tool_failed" });
  expect(failures()).toEqual([[name, "counter", 1]]);
  await backend.apply(plan, signal);
  expect(failures()).toEqual([[name, "counter", 1]]);
});
