import { FAMILIES, fitRow, HIDING_LABELS, hostPort, walkPacket } from "@turnout/core";
import type { AskedPacket, ExplainedState, Fate, IPFamily, ObjectKind } from "@turnout/core";
import { createRandom, createStoreView } from "@turnout/core/testing";
import { expect, it } from "vitest";
import type { OracleWorld } from "./oracle-world.ts";
import type { Packet } from "./packet.ts";
import { randomPacket } from "./test-support/random-packet.ts";
import { randomWorld } from "./test-support/random-world.ts";
import { verdictOf } from "./verdict-of.ts";

const SEED = Number(process.env["ORACLE_SEED"] ?? 1);
const WORLDS = Number(process.env["ORACLE_WORLDS"] ?? 60);
const PACKETS = 40;

function stateOf(world: OracleWorld, family: IPFamily): ExplainedState {
  const seen = world.objects.filter((object) => {
    const { labels } = object["metadata"] as { readonly labels?: object };
    const label = HIDING_LABELS[object["kind"] as ObjectKind];
    return label === undefined || labels === undefined || !(label in labels);
  });
  const { nodeName, settings, bindAddress, capabilities, variants, nodePortAddressesDefault } = world;
  const { view, pull } = createStoreView(seen, {
    nodeName,
    family,
    settings,
    ...(bindAddress === undefined ? {} : { bindAddress }),
    ...(world.allowedAddresses === undefined ? {} : { allowedAddresses: world.allowedAddresses }),
  });
  const node = pull()?.node;
  if (node === undefined) throw new Error("the first change set has a node");
  const rows = capabilities[family] === true ? [...view.rows.values()].flatMap((row) => fitRow(row, capabilities).row ?? []) : [];
  return { node, rows, hostAddresses: world.hostAddresses[family], nodePortAddressesDefault, capabilities, variants, issues: [] };
}

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
      const state = stateOf(world, family);
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
