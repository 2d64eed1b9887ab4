import { describe, expect, it } from "vitest";
import { iptablesMetrics } from "./metrics.ts";

describe("iptablesMetrics", () => {
  it("names kube-proxy's numbers as kube-proxy does, and tells waiting in seconds", () => {
    const reported = iptablesMetrics(
      { failures: 3, partialFailures: 1, total: { filter: 20, nat: 40 }, last: { filter: 2, nat: 4 } },
      { count: 2, totalMs: 1_500 },
    );
    const values = reported.map(({ name, labels = {}, kind, value }) => [name, labels["table"] ?? "", kind, value].join(" "));
    expect(values).toEqual([
      "kubeproxy_sync_proxy_rules_iptables_restore_failures_total  counter 3",
      "kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total  counter 1",
      "kubeproxy_sync_proxy_rules_iptables_total filter gauge 20",
      "kubeproxy_sync_proxy_rules_iptables_total nat gauge 40",
      "kubeproxy_sync_proxy_rules_iptables_last filter gauge 2",
      "kubeproxy_sync_proxy_rules_iptables_last nat gauge 4",
      "turnout_iptables_lock_waits_total  counter 2",
      "turnout_iptables_lock_wait_seconds_total  counter 1.5",
    ]);
  });
});
