import { BREAKAGES, describeBackend } from "@turnout/conformance";
import { expectWritten } from "@turnout/house/expect-written";
import { describe, it } from "vitest";
import { userspaceModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

/** Defects that can't be told here from what is declared, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "never masquerades": "endpoints see the node whatever rules say",
  "masquerades everything": "endpoints see the node whatever rules say",
  "forgets the hairpin": "endpoints see the node whatever rules say; what is found is filed under R-56",
  "forgets the hairpin of pods elsewhere": "endpoints see the node whatever rules say; what is found is filed under R-56",
  "uses another mark bit": "it marks nothing",
  "refuses what it should drop": "it declares that it refuses",
  "leaves undefined ports alone": "it declares that it does",
  "leaves unallocated addresses alone": "it declares that it does",
  "serves one family with the other's hands": "found by what is left after the end, before any packet shows it",
  "clears the host at its start": "where there is nothing to clear",
  "clears the host when it can't read it": "it ends with the process, so a new one that can't read has nothing to clear",
  "writes again what is as it was": "its sockets are in the process, and its host counts no writing",
  "does not recognise what it made": "it ends with the process, so a new one finds nothing",
  "leaves something behind at cleanup": "it ends with the process, and is not cleaned up",
  "takes too much at cleanup": "it ends with the process, and is not cleaned up",
  "has a host that nobody tampers with": "its sockets are nobody else's to touch",
  "has a host where tampering does nothing": "its sockets are nobody else's to touch",
  "says that a foreign change left everything as it was": "its watch tells nothing of what others do",
  "takes what it saw for current when it has written since": "its watch tells nothing of what others do",
};

describe("the userspace backend on its host in memory", () => {
  describeBackend(userspaceModule, createFakeHost, {
    it,
    onReport: expectWritten,
    steps: 20_000,
    breakages: BREAKAGES.filter((breakage) => breakage.needs !== "counted"),
    notSeen: NOT_SEEN,
  });
});
