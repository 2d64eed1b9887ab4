import { setTimeout as sleep } from "node:timers/promises";
import { pickOne } from "@turnout/core/testing";
import { othersIn } from "./external.ts";
import type { Others } from "./external.ts";
import type { Attack, Victim } from "./hands.ts";
import { createHealingStage } from "./stage.ts";
import type { HealingStage } from "./stage.ts";

/** Everything is compared this often where nothing tells of others. */
const SYNC_PERIOD = "2s";
/** After this, in ms, it counts as not healed. */
const HEAL_MAX_MS = 120_000;
/** An attempt may take so long, in ms: the machine may be busy. */
const ATTEMPT_MS = 500;
/** So many attempts in a row are answered where packets flow. */
const ATTEMPTS = 3;
const PAUSE_MAX_MS = 1_500;

/** What chaos is made of. */
export interface ChaosOptions {
  readonly victim: Victim;
  readonly rounds: number;
  /** In [0, 1). */
  readonly random: () => number;
  /** Hears what is done. */
  readonly onRound?: (attack: Attack) => void;
}

/**
 * Have a foreign hand do one thing after another to a proxy's rules, at random, with random pauses; gives what went wrong: packets that don't flow
 * again, something of others that a repair has touched, or a proxy that ended. Empty: nothing.
 */
export async function runChaos({ victim, rounds, random, onRound }: ChaosOptions): Promise<readonly string[]> {
  const stage = await createHealingStage([...victim.flags, "--iptables-sync-period", SYNC_PERIOD], { services: 20, endpoints: 3 });
  const findings: string[] = [];
  const others = othersIn(victim.isInVm === true);
  try {
    await others.make(stage.node);
    if (!(await flows(stage))) return ["packets don't flow before anything is done"];
    const attacks = victim.attacks.filter(({ isAtOthersToo, isSilent }) => isAtOthersToo !== true && isSilent !== true);
    if (attacks.length === 0) throw new Error("there is nothing to do");
    for (let round = 0; round < rounds && findings.length === 0; round++) {
      const attack = pickOne(attacks, random);
      onRound?.(attack);
      findings.push(...(await endure(stage, attack, others)));
      await sleep(random() * PAUSE_MAX_MS);
    }
  } finally {
    await stage.destroy();
  }
  return findings;
}

async function endure(stage: HealingStage, { name, command }: Attack, others: Others): Promise<readonly string[]> {
  const before = await others.look(stage.node);
  const { code, stderr } = await stage.node.run("sh", ["-c", command]);
  if (code !== 0) return [`${name}: it could not be done: ${stderr}`];
  const findings: string[] = [];
  if (!(await flows(stage))) findings.push(`${name}: packets don't flow again`);
  if (stage.proxy.exitCode !== null) findings.push(`${name}: the proxy ended: ${JSON.stringify(stage.log.at(-1))}`);
  const after = await others.look(stage.node);
  if (after !== before) findings.push(`${name}: others had\n${before}and have\n${after}`);
  return findings;
}

/** Wait until packets flow: whether they do in time. */
async function flows({ isServed, proxy }: HealingStage): Promise<boolean> {
  const untilMs = performance.now() + HEAL_MAX_MS;
  for (let answered = 0; answered < ATTEMPTS;) {
    if (performance.now() > untilMs || proxy.exitCode !== null) return false;
    answered = (await isServed(ATTEMPT_MS)) ? answered + 1 : 0;
    await sleep(20);
  }
  return true;
}
