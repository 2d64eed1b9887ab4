import { ProxyError } from "@turnout/core/backend";
import { createFakeNetlink } from "@turnout/host/testing";
import { describe, expect, it } from "vitest";
import { canCount, counterMetrics, COUNTERS } from "./counters.ts";
import { explainPlan, planDelta } from "./plan.ts";
import { renderSkeleton } from "./skeleton.ts";
import { FACTS, stateOf } from "./test-support/states.ts";

it("counters are made before the rules that name them", () => {
  const { node } = stateOf([], "IPv4");
  const objects = renderSkeleton({ node, host: { ...FACTS, canCount: true } }, { localhostNodePorts: true });
  const text = explainPlan(planDelta({ put: objects.map((after) => ({ after })), remove: [], lingering: [], nowMs: 0 }));
  for (const name of Object.values(COUNTERS)) expect(text).toContain(`# nfacct add ${name}\n`);
  expect(text.lastIndexOf("# nfacct add")).toBeLessThan(text.indexOf("*filter"));
});

describe("metrics of counters", () => {
  it("are kube-proxy's, of the whole host; a counter that is not there is not told", async () => {
    const counterPackets = (name: string) => Promise.resolve(name === COUNTERS.invalid ? 7 : undefined);
    expect(await counterMetrics({ counterPackets })).toEqual([
      {
        name: "kubeproxy_iptables_ct_state_invalid_dropped_packets_total",
        help: "[ALPHA] packets dropped by iptables to work around conntrack problems",
        kind: "counter",
        isOfHost: true,
        value: 7,
      },
    ]);
  });

  it("are not there where the kernel can't count, and other trouble is told", async () => {
    expect([await canCount(createFakeNetlink()), await counterMetrics(createFakeNetlink())]).toEqual([false, []]);
    const counterPackets = () => Promise.reject(new ProxyError("tool_failed", "the socket broke"));
    await expect(canCount({ counterPackets })).rejects.toMatchObject({ code: "tool_failed" });
  });
});
