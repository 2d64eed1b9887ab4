import { checkBackend, describeBackend, service, slices } from "@turnout/conformance";
import type { Scenario } from "@turnout/conformance";
import { describe, expect, it } from "vitest";
import { iptablesModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

describe("the iptables backend on its host in memory", () => {
  describeBackend(iptablesModule, createFakeHost, {
    it,
    steps: 5_000,
    // The scenarios are played with the nft variant, the histories with the other.
    createHistoryHost: () => createFakeHost({ variant: "legacy" }),
    skipsNothing: true,
    notSeen: { "leaves unallocated addresses alone": "it leaves addresses of the service ranges alone anyway" },
  });

  it("R-36 has a pod elsewhere that reaches itself by this node see the node", async () => {
    const sees = "pod-1-1 saw pod-2-1, pod-2-1 saw node1";
    const scenario: Scenario = {
      name: "a pod elsewhere asks this node for itself",
      rules: ["R-31", "R-36"],
      steps: [
        {
          say: "the Local external policy",
          put: [
            service("web", { number: 1, ways: ["nodePort"], spec: { externalTrafficPolicy: "Local" } }),
            ...slices("web", ["pod-1-1", "pod-2-1"]),
          ],
          probes: [{ from: "pod-2-1", to: "web nodePort@node1", sees }],
        },
      ],
    };
    expect((await checkBackend(iptablesModule, createFakeHost, [scenario])).findings).toEqual([]);
  });
});
