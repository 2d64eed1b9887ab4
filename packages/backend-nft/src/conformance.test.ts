import { checkBackend, describeBackend, service, slices } from "@turnout/conformance";
import type { Scenario } from "@turnout/conformance";
import { describe, expect, it } from "vitest";
import { nftModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

describe("the nft backend on its host in memory", () => {
  describeBackend(nftModule, createFakeHost, { it, steps: 50_000, skipsNothing: true });

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
    expect((await checkBackend(nftModule, createFakeHost, [scenario])).findings).toEqual([]);
  });
});
