import { BREAKAGES, describeBackend } from "@turnout/conformance";
import { expectWritten } from "@turnout/house/expect-written";
import { someOf } from "@turnout/house/some-of";
import { describe, it } from "vitest";
import { ipvsModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

/** Defects that can't be told here from what is declared, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "masquerades everything":
    "who is masqueraded is told by kube-proxy's chains, from the settings and the policy, whatever single rules say",
  "leaves undefined ports alone": "it makes cluster IPs external IPs, and this backend refuses undefined ports there, too",
  "leaves unallocated addresses alone": "it declares that it does",
  "trusts its memory after a failed apply": "each step may be repeated: what is there already is changed, and what is gone is gone",
  "clears the host when its base changes":
    "its base depends on settings and pod ranges alone, which don't change under traffic in any scenario",
};

describe("the ipvs backend on its host in memory", () => {
  describeBackend(ipvsModule, createFakeHost, {
    it,
    onReport: expectWritten,
    steps: 2_000,
    breakages: someOf(BREAKAGES, { oneOf: 2 }),
    notSeen: NOT_SEEN,
  });
});
