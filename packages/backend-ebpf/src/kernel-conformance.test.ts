import { fileURLToPath } from "node:url";
import { SCENARIOS } from "@turnout/conformance";
import type { Finding } from "@turnout/conformance";
import { buildBpf } from "@turnout/house/bpf";
import { needs } from "@turnout/house/needs";
import { someOf } from "@turnout/house/some-of";
import { beforeAll, describe, expect, it } from "vitest";
import type { RunResult } from "./test-support/kernel/run-result.ts";
import { MISTAKES, withMistake } from "./test-support/mistakes.ts";
import { PACKET_MISTAKES } from "./test-support/packet-mistakes.ts";
import { onStage } from "./test-support/stage.ts";

const OBJECT = fileURLToPath(new URL("../dist/programs/packets.bpf.o", import.meta.url));
const NEEDS = needs("root", "netns", "bpf", "cgroup2", "ip", "kernel>=6.7");

/** Scenarios are dealt to so many processes, which play at once: attaching a program is mostly waiting for the kernel. Every second one plays in the normal run. */
const PARTS = 6;
/** An upper bound for a machine that is busy with other things, too. */
const TIMEOUT_MS = 600_000;

async function execute(which: string, objectFile: string = OBJECT): Promise<RunResult> {
  return (await onStage(which, objectFile, { program: "conformance-child.ts", timeoutMs: TIMEOUT_MS })) as RunResult;
}

function lineOf({ kind, scenario, step, family, what, expected, got, details }: Finding): string {
  return [`${kind} ${family} in ${scenario}, ${step}: ${what}: expected ${expected}, got ${got}`, ...details].join("\n  ");
}

const ANY_CLIENT = "a cluster IP is served by every ready endpoint, whoever asks";

/** Mistakes in the programs, each with a scenario in which the kit finds it, and what it finds. */
const FOUND: readonly (readonly [mistake: string, scenario: string, kind: Finding["kind"]])[] = [
  ["the port stays", ANY_CLIENT, "verdict"],
  ["turnout_send4 does nothing", ANY_CLIENT, "verdict"],
  ["any protocol is asked as TCP", "a cluster IP that only serves other protocols refuses UDP", "verdict"],
  ["the host gets what pods get", "where pods can't be told at all nobody's address is rewritten", "verdict"],
  ["affinity is forgotten", "an affine client stays with its endpoint, through whichever address it comes", "affinity"],
  // What a socket is shown is no matter of a rule's: the host of the kit asks for it each time.
  ["turnout_peer4 does nothing", ANY_CLIENT, "error"],
  ["turnout_recv6 does nothing", ANY_CLIENT, "error"],
  ["nobody is masqueraded", "a pod of another node that asks a node port here sees the service with the node's address", "verdict"],
  ["pods are outside", "under the Local external policy another node is outside, and pods elsewhere are pods", "verdict"],
  ["turnout_out lets all go", "a cluster IP under the Local internal policy is served by this node alone", "verdict"],
  ["source ranges let all in", "source ranges hold for load-balancer IPs and for nothing else", "verdict"],
  ["refusals go on unmarked", "a service that goes away serves to the end, and refuses afterwards", "verdict"],
];

describe("the conformance kit's packets on this kernel", NEEDS, () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it(
    "meet the programs where the module attached them, and the fate that the rules say",
    async () => {
      const chosen = someOf(
        Array.from({ length: PARTS }, (_, index) => index),
        { oneOf: 3 },
      );
      const parts = await Promise.all(chosen.map((index) => execute(`${index + 1}/${PARTS}`)));
      expect(parts.flatMap(({ findings }) => findings.map(lineOf))).toEqual([]);
      expect(parts.flatMap(({ scenarios }) => scenarios).toSorted()).toEqual(
        SCENARIOS.filter((_, index) => chosen.includes(index % PARTS))
          .map(({ name }) => name)
          .toSorted(),
      );
      // Each scenario asks hundreds of times.
      expect(parts.reduce((sum, { packets }) => sum + packets, 0)).toBeGreaterThan(30_000 * chosen.length);
    },
    TIMEOUT_MS,
  );
});

describe("deliberate mistakes in the programs", NEEDS, () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it.concurrent.each(someOf(FOUND, { oneOf: 4 }))(
    "are found by the conformance kit: %s",
    async (what, scenario, kind) => {
      const ofSockets = MISTAKES.find((mistake) => mistake.what === what);
      const mistake = ofSockets ?? PACKET_MISTAKES.find((other) => other.what === what);
      if (mistake === undefined) throw new Error("there is no such mistake");
      const ran = await withMistake(mistake, (file) => execute(scenario, file), ofSockets === undefined ? "packets" : "sockets");
      expect(ran.scenarios.length).toBeGreaterThan(0);
      expect(ran.findings.map((finding) => finding.kind)).toContain(kind);
    },
    TIMEOUT_MS,
  );
});
