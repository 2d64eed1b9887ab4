import { BREAKAGES, describeBackend } from "@turnout/conformance";
import { buildBpf } from "@turnout/house/bpf";
import { expectWritten } from "@turnout/house/expect-written";
import { needs } from "@turnout/house/needs";
import { someOf } from "@turnout/house/some-of";
import { beforeAll, describe, it } from "vitest";
import { ebpfModule } from "./module.ts";
import { createFakeHost } from "./testing/index.ts";

/** Its host in memory counts no connections. */
const SHOWN = BREAKAGES.filter((breakage) => breakage.needs !== "counted");

/** Defects that can't be told here from what is declared, with the reason. */
const NOT_SEEN: Readonly<Record<string, string>> = {
  "leaves undefined ports alone": "it declares that it does",
  "leaves unallocated addresses alone": "it declares that it does",
  "serves one family with the other's hands":
    "both families are in the same maps, and rows tell theirs, so packets go where they should: what shows is that a new process would write all again",
  "knows the host by its first address alone": "at sockets the host is known by its network namespace",
  "uses another mark bit": "nothing is marked to be masqueraded",
  "applies everything twice": "each step may be repeated",
  "trusts its memory after a failed apply": "each step may be repeated: what is there already is written over, and what is gone is gone",
};

// What is left out is SCTP alone: README's table of backends says so, and is checked against the kit.
describe("the eBPF backend on its host in memory, whose kernel runs the compiled programs", needs("bpf"), () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  describeBackend(ebpfModule, createFakeHost, {
    it,
    onReport: expectWritten,
    steps: 1_000,
    breakages: someOf(SHOWN, { oneOf: 2 }),
    notSeen: NOT_SEEN,
  });
});
