import { describe, expect, it } from "vitest";
import { FAMILIES, flowsToForget, hostPort, isEqual, walkPacket } from "@turnout/core";
import type { ExplainedState, ServicePort } from "@turnout/core";
import { createRandom } from "@turnout/core/testing";
import { affinityOf } from "./affinity-of.ts";
import { flowFate } from "./flow-fate.ts";
import type { OracleWorld } from "./oracle-world.ts";
import type { Flow, Packet } from "./packet.ts";
import { randomFlow, randomPacket } from "./test-support/random-packet.ts";
import { changedWorld, randomWorld } from "./test-support/random-world.ts";
import { rowsOfWorld } from "./test-support/rows-of-world.ts";
import { verdictOf } from "./verdict-of.ts";

const SEED = Number(process.env["ORACLE_SEED"] ?? 1);
const WORLDS = Number(process.env["ORACLE_WORLDS"] ?? 300);
const PACKETS = 40;
const FLOWS = 30;
/** Seconds on an idle machine; the rest is patience with a busy one. */
const TIMEOUT_MS = 120_000 + WORLDS * 100;

function comparePackets(seed: number, seen: Map<string, number>): readonly string[] {
  const random = createRandom(seed);
  const world = randomWorld(random);
  return FAMILIES.flatMap((family) => {
    const rows = rowsOfWorld(world, family);
    return Array.from({ length: PACKETS }, () => randomPacket(world, family, random)).flatMap((packet) =>
      comparePacket(seed, world, rows, packet, seen),
    );
  });
}

function comparePacket(
  seed: number,
  world: OracleWorld,
  rows: ExplainedState,
  packet: Packet,
  seen: Map<string, number>,
): readonly string[] {
  const { because, ...oracle } = verdictOf(world, packet);
  for (const rule of [oracle.is, ...because]) seen.set(rule, (seen.get(rule) ?? 0) + 1);
  const { fate, hit } = walkPacket(rows, { ...packet, device: packet.link });
  const endpoints = fate.is === "forward" ? fate.endpoints : [];
  const core = { is: fate.is, answers: endpoints.map(({ ip, port, masquerade }) => ({ endpoint: hostPort(ip, port), masquerade })) };
  const wanted = { is: oracle.is, answers: "answers" in oracle ? oracle.answers : [] };
  const coreAffinity = core.is === "forward" ? hit?.row.affinitySeconds : undefined;
  const affinity = affinityOf(world, packet)?.seconds;
  if (isEqual(wanted, core) && affinity === coreAffinity) return [];
  const at = `seed ${seed} ${packet.family} ${JSON.stringify(packet)} ${hit?.row.key ?? "nobody's"}`;
  return [`${at}\n  oracle ${JSON.stringify(wanted)} ${affinity} ${because.join()}\n  rows   ${JSON.stringify(core)} ${coreAffinity}`];
}

function compareFlows(seed: number, seen: Map<string, number>): readonly string[] {
  const random = createRandom(seed);
  const before = randomWorld(random);
  const after = changedWorld(before, random);
  return FAMILIES.flatMap((family) => {
    const filters = flowsToForget(rowChanges(rowsOfWorld(before, family).rows, rowsOfWorld(after, family).rows));
    return Array.from({ length: FLOWS }, () => randomFlow(before, family, random)).flatMap((flow) => {
      const fate = flowFate(before, after, flow);
      seen.set(fate, (seen.get(fate) ?? 0) + 1);
      const core = filters.some((filter) => isMet(filter, flow, before.hostAddresses[family])) ? "forget" : "keep";
      return fate === "either" || fate === core ? [] : [`seed ${seed} ${JSON.stringify(flow)}\n  oracle ${fate}\n  rows   ${core}`];
    });
  });
}

function rowChanges(
  before: readonly ServicePort[],
  after: readonly ServicePort[],
): readonly { readonly before: ServicePort | undefined; readonly after: ServicePort | undefined }[] {
  const [then, now] = [before, after].map((rows) => new Map(rows.map((row) => [row.key, row])));
  const keys = new Set([...(then?.keys() ?? []), ...(now?.keys() ?? [])]);
  return [...keys]
    .map((key) => ({ before: then?.get(key), after: now?.get(key) }))
    .filter((change) => !isEqual(change.before, change.after));
}

function isMet(filter: ReturnType<typeof flowsToForget>[number], flow: Flow, hostAddresses: readonly string[]): boolean {
  const isThere = filter.address === "" ? hostAddresses.includes(flow.destination) : filter.address === flow.destination;
  const isStale = !filter.keep.includes(flow.endpoint) && (filter.only?.includes(flow.endpoint) ?? true);
  return isThere && filter.port === flow.port && isStale;
}

/** Run a comparison on many worlds; up to five disagreements, and what the oracle said how often. */
function run(compare: (seed: number, seen: Map<string, number>) => readonly string[]): {
  readonly found: readonly string[];
  readonly seen: ReadonlyMap<string, number>;
} {
  const seen = new Map<string, number>();
  const found: string[] = [];
  for (let seed = SEED; seed < SEED + WORLDS && found.length < 5; seed++) found.push(...compare(seed, seen));
  return { found, seen };
}

/** How often each rule and fate must be met at least, or the worlds are too dull to show anything. */
const OFTEN = Math.floor(WORLDS / 60);

describe(`the oracle and the core, asked about the same (ORACLE_SEED=${SEED})`, () => {
  it(
    "agree on what becomes of packets",
    () => {
      const { found, seen } = run(comparePackets);
      expect(found.join("\n")).toBe("");
      const rules = [17, 18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 36, 37, 39, 40, 47, 48, 56, 62];
      const expected = ["forward", "reject", "drop", "pass", "R-06", "R-07", "R-70", "R-72", ...rules.map((rule) => `R-${rule}`)];
      expect(expected.filter((what) => (seen.get(what) ?? 0) < OFTEN)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  it(
    "agree on which flows are forgotten",
    () => {
      const { found, seen } = run(compareFlows);
      expect(found.join("\n")).toBe("");
      expect(["forget", "keep", "either"].filter((what) => (seen.get(what) ?? 0) < OFTEN)).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
