import { BREAKAGES, describeBackend } from "@turnout/conformance";
import { expectWritten } from "@turnout/house/expect-written";
import { someOf } from "@turnout/house/some-of";
import { describe, it } from "vitest";
import { winkernelModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

/** Its host in memory counts no connections. */
const SHOWN = BREAKAGES.filter((breakage) => breakage.needs !== "counted");

/** Defects that can't be told here from what is declared, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "masquerades everything": "who sends a packet decides nothing here, so what is found is filed under R-56",
  "never lets go of a client": "affinity has no time here",
  "leaves undefined ports alone": "it declares that it does",
  "cuts affinity at three hours": "affinity has no time here",
  "knows the host by its first address alone": "node ports answer on all addresses, and what the host itself sends passes",
  "trusts its memory after a failed apply": "each step may be repeated: what is there already is changed, and what is gone is gone",
  "forgets flows that should stay": "it forgets none",
  "forgets flows although it is told to stop": "it forgets none",
  "applies everything twice": "what HNS has as it is wanted is not written again",
  "clears the host after a failure": "it throws only where HNS doesn't answer; such a sync ends, and the kit asks nothing before the next",
  "takes everything back when one row is refused":
    "what HNS refuses fails by itself; where HNS doesn't answer the sync ends, and the kit asks nothing before the next",
  "clears the host when it can't read it": "the kit has no call fail that reads HNS; apply.test.ts has",
  "clears the host when its base changes": "on an L2Bridge there is nothing but what rows need",
  "uses another mark bit": "it marks nothing",
  "leaves unallocated addresses alone": "it declares that it does",
  "answers node ports on all addresses": "it declares that it does",
  "says that a foreign change left everything as it was": "its watch tells nothing of what others do",
  "takes what it saw for current when it has written since": "its watch tells nothing of what others do",
};

describe("the winkernel backend on its host in memory", () => {
  describeBackend(winkernelModule, createFakeHost, {
    it,
    onReport: expectWritten,
    steps: 4_000,
    breakages: someOf(SHOWN, { oneOf: 2 }),
    notSeen: NOT_SEEN,
  });
});
