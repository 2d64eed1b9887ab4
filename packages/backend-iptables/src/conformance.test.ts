import { describeBackend } from "@turnout/conformance";
import { describe, it } from "vitest";
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
});
