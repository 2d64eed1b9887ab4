import { readFileSync } from "node:fs";
import { describeBackend, mergeReports, SCENARIOS } from "@turnout/conformance";
import type { FakeHost, Finding } from "@turnout/conformance";
import { buildBpf } from "@turnout/house/bpf";
import { expectWritten } from "@turnout/house/expect-written";
import { needs } from "@turnout/house/needs";
import { someOf } from "@turnout/house/some-of";
import { beforeAll, describe, expect, it } from "vitest";
import { ebpfModule } from "./module.ts";
import { PACKET_MISTAKES } from "./test-support/packet-mistakes.ts";
import { MISTAKES, OF_KIT, withMistake } from "./test-support/mistakes.ts";
import type { Mistake } from "./test-support/mistakes.ts";
import { runKit } from "./testing/run-kit.ts";

const NEEDS = needs("root", "netns", "bpf", "cgroup2", "ip", "nft", "kernel>=6.7");
/** An upper bound for a machine that is busy with other things, too. */
const TIMEOUT_MS = 900_000;
/** Scenarios are dealt to so many processes; one of them plays in the normal run. */
const PARTS = 6;
const STEPS = 500;

/** Defects that can't be told here, with the reason. */
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

function linesOf(findings: readonly Finding[]): readonly string[] {
  return findings.map(({ kind, scenario, step, family, what, expected, got, details }) =>
    [`${kind} ${family} in ${scenario}, ${step}: ${what}: expected ${expected}, got ${got}`, ...details].join("\n  "),
  );
}

/** The names of what describeBackend tests about defects: main.ts has the hosts. */
function defectTests(): readonly string[] {
  const names: string[] = [];
  const shown = { written: () => 0, onChange: () => undefined } as unknown as FakeHost;
  describeBackend(ebpfModule, () => shown, { it: (name) => names.push(name), notSeen: NOT_SEEN });
  return names.filter((name) => name.startsWith("is caught "));
}

// What is left out is SCTP alone: README's table of backends says so, and is checked against the kit.
describe("the eBPF backend on this kernel", NEEDS, () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it.concurrent(
    "does in every scenario what it should",
    async () => {
      const parts = someOf(
        Array.from({ length: PARTS }, (_, index) => SCENARIOS.filter((__, at) => at % PARTS === index).map(({ name }) => name)),
        { oneOf: PARTS, isKernelKit: true },
      );
      const results = await Promise.all(parts.map((names) => runKit({ part: { kind: "scenarios", names } })));
      expect(linesOf(results.flatMap(({ findings }) => findings))).toEqual([]);
      // Each scenario asks hundreds of times.
      expect(results.reduce((sum, { packets }) => sum + packets, 0)).toBeGreaterThan(30_000 * parts.length);
      const [abilities] = results.flatMap((result) => result.abilities ?? []);
      if (parts.length === PARTS && abilities !== undefined)
        expectWritten(mergeReports({ backend: ebpfModule.name, abilities, findings: [], cells: [], notAsked: [] }, results));
    },
    TIMEOUT_MS,
  );

  it.concurrent(
    "tells what somebody else did, recovers from everything that fails, and carries on where it was",
    async () => {
      const { findings, notAsked } = await runKit({ part: { kind: "checks" } });
      expect(linesOf(findings)).toEqual([]);
      expect(notAsked).toEqual(["whether counts() tell of connections: the host has no counted()"]);
    },
    TIMEOUT_MS,
  );

  it.concurrent(
    `R-58 ends where one sync from nothing ends, whatever happens: ${STEPS} changes`,
    async () => {
      const { TURNOUT_HISTORY_STEPS, TURNOUT_HISTORY_SEED } = process.env;
      const [steps, seed] = [Number(TURNOUT_HISTORY_STEPS ?? STEPS), Number(TURNOUT_HISTORY_SEED ?? 1)];
      expect(linesOf((await runKit({ part: { kind: "histories", seed, steps, lifeSteps: STEPS } })).findings)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it.concurrent.each(someOf(defectTests(), { oneOf: 24 }))(
    "%s",
    async (name) => expect(linesOf((await runKit({ part: { kind: "test", name } })).findings)).toEqual([]),
    TIMEOUT_MS,
  );
});

/** In which scenario the kit finds mistakes in the programs, and as what. What a socket is shown is no matter of a rule's: the kit's host asks for it each time. */
const BY_SCENARIO: readonly (readonly [scenario: string, kind: Finding["kind"], mistakes: readonly string[]])[] = [
  [
    "a cluster IP is served by every ready endpoint, whoever asks",
    "verdict",
    [
      ...["conn4", "send4", "send6"].map((name) => `turnout_${name} does nothing`),
      "the port stays",
      "the first endpoint gets all",
      "the last endpoint gets none",
    ],
  ],
  [
    "a cluster IP is served by every ready endpoint, whoever asks",
    "error",
    [
      ...["conn6", "recv4", "recv6", "peer4", "peer6"].map((name) => `turnout_${name} does nothing`),
      "connected sockets forget what they asked for",
    ],
  ],
  ["an endpoint that is another Service's external IP is asked as it is", "error", ["connected sockets are asked again"]],
  ["every one of many endpoints is used", "verdict", ["the first endpoint gets all packets"]],
  ["a cluster IP that only serves other protocols refuses UDP", "error", ["any protocol is asked as TCP", "refusals are dropped"]],
  [
    "a cluster IP under the Local internal policy is served by this node alone",
    "verdict",
    [
      "what is dropped is refused",
      "outside gets what pods get",
      "turnout_out lets all go",
      "turnout_out sends what sockets dropped",
      "drops go on",
    ],
  ],
  ["a cluster IP under the Local internal policy is served by this node alone", "error", ["a refusal is EPERM", "drops are refused"]],
  [
    "where pods can't be told at all nobody's address is rewritten",
    "verdict",
    ["the host gets what pods get", "pods get what the host gets"],
  ],
  [
    "source ranges hold for load-balancer IPs and for nothing else",
    "verdict",
    [
      "source ranges of pods are the host's",
      "source ranges let all in",
      "source ranges keep all out",
      "source ranges of all services are one",
      "turnout_out forgets source ranges",
    ],
  ],
  ["a service that goes away serves to the end, and refuses afterwards", "verdict", ["refusals go on unmarked"]],
  ["the Local external policy keeps the client's address and stays on the node", "verdict", ["all are masqueraded"]],
  ["under the Local external policy another node is outside, and pods elsewhere are pods", "verdict", ["pods are outside"]],
  ["a pod of another node that asks a node port here sees the service with the node's address", "verdict", ["nobody is masqueraded"]],
  ["affinity ends when a client has not come for the timeout", "affinity", ["affinity never ends", "affinity is not renewed"]],
  ["affinity lets go of an endpoint that goes", "verdict", ["affinity keeps to endpoints that are gone"]],
  [
    "an affine client stays with its endpoint, through whichever address it comes",
    "affinity",
    ["halving goes the wrong way", "affinity is forgotten"],
  ],
  ["an affine client stays with its endpoint, through whichever address it comes", "verdict", ["affinity is one for all clients"]],
];
const ALL: readonly Mistake[] = [...MISTAKES, ...PACKET_MISTAKES];
const FOUND = BY_SCENARIO.flatMap(([scenario, kind, mistakes]) => mistakes.map((what) => [what, scenario, kind] as const));

describe("deliberate mistakes in the programs", NEEDS, () => {
  beforeAll(() => buildBpf("packages/backend-ebpf"));

  it("change text that is there once", () => {
    const textOf = (file: string): string => readFileSync(new URL(`programs/${file}`, import.meta.url), "utf8");
    expect(ALL.filter(({ file, right }) => textOf(file).split(right).length !== 2).map(({ what }) => what)).toEqual([]);
  });

  it("that no other test finds are among them", () => {
    const ofKit = ALL.filter(({ scenario }) => scenario === OF_KIT);
    expect(ofKit.length).toBeGreaterThan(0);
    expect(ofKit.map(({ what }) => what).filter((what) => !FOUND.some(([found]) => found === what))).toEqual([]);
  });

  it.concurrent.each(someOf(FOUND, { oneOf: 4 }))(
    "are found by the conformance kit: %s",
    async (what, scenario, kind) => {
      const ofSockets = MISTAKES.find((mistake) => mistake.what === what);
      const mistake = ofSockets ?? PACKET_MISTAKES.find((other) => other.what === what);
      if (mistake === undefined) throw new Error("there is no such mistake");
      const file = ofSockets === undefined ? "packets" : "sockets";
      const names = SCENARIOS.map(({ name }) => name).filter((name) => name.includes(scenario));
      const { findings } = await withMistake(
        mistake,
        (path) => runKit({ part: { kind: "scenarios", names }, maxFindings: 1, objectFiles: { [file]: path } }),
        file,
      );
      expect(findings.map((finding) => finding.kind)).toContain(kind);
    },
    TIMEOUT_MS,
  );
});
