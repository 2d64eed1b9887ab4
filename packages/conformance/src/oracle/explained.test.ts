import { FAMILIES, hostPort, walkPacket } from "@turnout/core";
import type { AskedPacket, ExplainedState, Fate } from "@turnout/core";
import { createRandom } from "@turnout/core/testing";
import { expect, it } from "vitest";
import type { OracleWorld } from "./oracle-world.ts";
import type { Packet } from "./packet.ts";
import { randomPacket } from "./test-support/random-packet.ts";
import { randomWorld } from "./test-support/random-world.ts";
import { rowsOfWorld } from "./test-support/rows-of-world.ts";
import { verdictOf } from "./verdict-of.ts";

const SEED = Number(process.env["ORACLE_SEED"] ?? 1);
const WORLDS = Number(process.env["ORACLE_WORLDS"] ?? 60);
const PACKETS = 40;

function fateText(fate: Fate): string {
  if (fate.is !== "forward") return fate.is;
  return fate.endpoints
    .map(({ ip, port, masquerade }) => `${hostPort(ip, port)}${masquerade ? " masqueraded" : ""}`)
    .toSorted()
    .join(", ");
}

function wantedText(world: OracleWorld, packet: Packet): string {
  const verdict = verdictOf(world, packet);
  if (verdict.is !== "forward") return verdict.is;
  return verdict.answers
    .map(({ endpoint, masquerade }) => `${endpoint}${masquerade ? " masqueraded" : ""}`)
    .toSorted()
    .join(", ");
}

it("what is explained to people is what the oracle says, over random worlds and packets", () => {
  const wrong: string[] = [];
  for (let seed = SEED; seed < SEED + WORLDS; seed++) {
    const random = createRandom(seed);
    const world = randomWorld(random);
    for (const family of FAMILIES) {
      const state: ExplainedState = { ...rowsOfWorld(world, family), issues: [] };
      for (let count = 0; count < PACKETS; count++) {
        const packet = randomPacket(world, family, random);
        const asked: AskedPacket = { ...packet, device: packet.link };
        const [got, wanted] = [fateText(walkPacket(state, asked).fate), wantedText(world, packet)];
        const { because } = verdictOf(world, packet);
        if (got !== wanted) wrong.push(`seed ${seed} ${JSON.stringify(packet)}: ${got} instead of ${wanted} ${because.join()}`);
      }
    }
  }
  expect(wrong.slice(0, 10)).toEqual([]);
});
