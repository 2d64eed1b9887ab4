import assert from "node:assert/strict";
import { ipvsModule } from "@turnout/backend-ipvs";
import type { VmChecks } from "@turnout/house/vm";
import type { Scenario } from "@turnout/conformance";
import type { IPFamily } from "@turnout/core";
import { castsOf, isFull, scenariosFor, castInWords } from "./conformance-casting.ts";
import { execute } from "./conformance-run.ts";
import { createRealStage } from "./conformance-stage.ts";
import type { RealStage } from "./conformance-stage.ts";
import { checkAttacks, checkCleared } from "./ipvs-attacks.ts";
import { checkDraining } from "./ipvs-drain.ts";
import { checkMoves } from "./ipvs-moves.ts";
import { checkWhy } from "./ipvs-why.ts";

/** The guest's other iptables can't do anything. */
const FLAGS: readonly string[] = ["--backend", "ipvs", "--backend-option", "variant=legacy"];
/** What the normal run plays of the scenarios: a guest has one CPU, its system calls are slow, and a step takes seconds. */
const CHOSEN: readonly string[] = [
  "external and load-balancer IPs that the node has itself keep to the Local external policy",
  "each of many source ranges counts",
];
const DRAINED: readonly IPFamily[] = isFull ? ["IPv4", "IPv6"] : ["IPv4"];

/** What is checked in the guest, and the stage that it is checked on. */
export interface IpvsChecks {
  readonly checks: VmChecks;
  /** Take the stage down, if there is one. */
  destroy(): Promise<void>;
}

/** The kit's scenarios that only a host in memory can play. */
export function fakeOnlyScenarios(): readonly Scenario[] {
  return scenarios().filter(({ fakeOnly }) => fakeOnly !== undefined);
}

/** Make a check of each scenario, and those that are about IPVS alone. Nothing is built before the first one is played. */
export function ipvsChecks(): IpvsChecks {
  let built: Promise<RealStage> | undefined;
  const stage = (): Promise<RealStage> => (built ??= createRealStage({ flags: FLAGS, isInParts: true }));
  const real = scenarios().filter(({ fakeOnly }) => fakeOnly === undefined);
  return {
    checks: Object.fromEntries([
      ...DRAINED.map((family) => drainCheck(family, stage)),
      attacksCheck(stage),
      clearedCheck(stage),
      movesCheck(stage),
      whyCheck(stage),
      ...real.map((scenario) => scenarioCheck(scenario, stage)),
    ]),
    destroy: async () => {
      await (await built)?.site.destroy();
    },
  };
}

function scenarios(): readonly Scenario[] {
  const all = scenariosFor(ipvsModule);
  if (isFull) return all;
  const chosen = all.filter(({ name }) => CHOSEN.includes(name));
  assert.equal(chosen.length, CHOSEN.length, "the kit has scenarios of other names now");
  return chosen;
}

type NamedCheck = readonly [name: string, check: () => Promise<void>];

function scenarioCheck(scenario: Scenario, stage: () => Promise<RealStage>): NamedCheck {
  const casts = castsOf(scenario, ipvsModule);
  const check = async (): Promise<void> =>
    assert.deepEqual(await execute(scenario, { stage: await stage(), module: ipvsModule, casts }), []);
  return [`${scenario.name}${castInWords(casts)}`, check];
}

function drainCheck(family: IPFamily, stage: () => Promise<RealStage>): NamedCheck {
  return [
    `an endpoint that goes keeps its connections, and gets no new ones (${family})`,
    async () => checkDraining(await stage(), family),
  ];
}

function attacksCheck(stage: () => Promise<RealStage>): NamedCheck {
  return ["what the node has itself isn't reached by addresses on kube-ipvs0, nor on 127.0.0.1", async () => checkAttacks(await stage())];
}

function clearedCheck(stage: () => Promise<RealStage>): NamedCheck {
  return [
    "virtual servers of both families come back after ipvsadm -C, those that were just changed included",
    async () => checkCleared(await stage()),
  ];
}

function whyCheck(stage: () => Promise<RealStage>): NamedCheck {
  return ["turnout why names what was broken, and blames nobody where that harms nobody", async () => checkWhy(await stage())];
}

function movesCheck(stage: () => Promise<RealStage>): NamedCheck {
  return ["to the iptables backend and back no connection breaks, and none fails", async () => checkMoves(await stage())];
}
