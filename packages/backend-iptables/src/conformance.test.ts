import { describeBackend } from "@turnout/conformance";
import { describe, it } from "vitest";
import { iptablesModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

/** Defects that can't be told here from what is declared, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "leaves undefined ports alone": "it leaves them alone anyway",
  "leaves unallocated addresses alone": "it leaves them alone anyway",
};

describe("the iptables backend on its host in memory", () => {
  describeBackend(iptablesModule, createFakeHost, {
    it,
    steps: 5_000,
    // The scenarios are played with the nft variant, the histories with the other.
    createHistoryHost: () => createFakeHost({ variant: "legacy" }),
    skipsNothing: true,
    notSeen: NOT_SEEN,
  });
});
