import { BREAKAGES, describeBackend } from "@turnout/conformance";
import { expectWritten } from "@turnout/house/expect-written";
import { isFullRun, someOf } from "@turnout/house/some-of";
import { describe, it } from "vitest";
import { nftModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

/** Its host in memory counts no connections. */
const SHOWN = BREAKAGES.filter((breakage) => breakage.needs !== "counted");

/** Defects that can't be seen here, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "clears the host when it can't read it": "reading its host in memory never fails",
};

describe("the nft backend on its host in memory", () => {
  describeBackend(nftModule, createFakeHost, {
    it,
    onReport: expectWritten,
    steps: isFullRun() ? 20_000 : 5_000,
    skipsNothing: true,
    breakages: someOf(SHOWN, { oneOf: 2 }),
    notSeen: NOT_SEEN,
  });
});
