import { BREAKAGES, checkBackend, describeBackend } from "@turnout/conformance";
import { expectWritten } from "@turnout/house/expect-written";
import { someOf } from "@turnout/house/some-of";
import { describe, expect, it } from "vitest";
import { iptablesModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

/** Its host in memory counts no connections. */
const SHOWN = BREAKAGES.filter((breakage) => breakage.needs !== "counted");

/** Defects that can't be told here from what is declared, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "leaves undefined ports alone": "it leaves them alone anyway",
  "leaves unallocated addresses alone": "it leaves them alone anyway",
};

describe("the iptables backend on its host in memory", () => {
  describeBackend(iptablesModule, createFakeHost, {
    it,
    onReport: expectWritten,
    steps: 5_000,
    // The scenarios are played with the nft variant, the histories with the other.
    createHistoryHost: () => createFakeHost({ variant: "legacy" }),
    skipsNothing: true,
    breakages: someOf(SHOWN, { oneOf: 2 }),
    notSeen: NOT_SEEN,
  });

  it.each(["nft", "legacy"] as const)("finds what others do, told or not (%s variant)", async (variant) => {
    const { findings } = await checkBackend(iptablesModule, () => createFakeHost({ variant }), []);
    expect(findings.map(({ what, got }) => `${what}: ${got}`)).toEqual([]);
    const { world } = createFakeHost({ variant });
    const { signal } = new AbortController();
    const backend = (await iptablesModule.open(iptablesModule.parseOptions({}), world, signal)).family("IPv4");
    expect(backend.reportsDrift).toBe(false);
    await backend.observe(signal);
    expect(backend.reportsDrift).toBe(variant === "nft");
  });
});
