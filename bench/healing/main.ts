import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { oneOf, runCommand, wholeNumber } from "@turnout/house/command-line";
import { treeTimeMs } from "../cpu-time.ts";
import { shapeText, parseShape } from "../workload.ts";
import type { Shape } from "../workload.ts";
import { runAgainInVm } from "@turnout/house/vm";
import { VICTIMS } from "./hands.ts";
import type { Attack, Victim } from "./hands.ts";
import { createHealingStage } from "./stage.ts";
import type { HealingStage } from "./stage.ts";

/** An attempt gives up after this long, in ms: no shorter break can be seen. */
const ATTEMPT_MS = 50;
/** On a busy machine an answer may take longer where nothing is wrong: after some that came, an attempt is repeated with so much time, in ms. */
const PATIENT_MS = 250;
const ANSWERED = 3;
/** Packets are right again when nothing failed for so long, in ms. */
const WELL_MS = 1_500;
/** After this, in ms, it counts as not healed. */
const HEAL_MAX_MS = 120_000;
const REST_MAX_MS = 60_000;
/** A proxy in a guest may be at work for so long before it answers, in ms. */
const STATUS_MS = 60_000;
/** Between attacks at least: repairs have saved up their time, and nothing is under way. */
const REST_MS = 4_000;

/** After a start at least, in ms, before idling is measured: the first looks for other proxies, which become rarer, are over. */
const SETTLE_MS = 95_000;

const USAGE = "npm run e2e:healing -- [--only BACKEND] [--attack TEXT] [--shape SERVICESxENDPOINTS]... [--idle SECONDS] [--vm]";

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function asked(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      attack: { type: "string", default: "" },
      shape: { type: "string", multiple: true, default: ["1000x10", "10000x10"] },
      idle: { type: "string" },
      vm: { type: "boolean", default: false },
      "in-vm": { type: "boolean", default: false },
    },
  });
  if (values.only !== undefined) oneOf("--only", values.only, Object.keys(VICTIMS));
  const idleSeconds = values.idle === undefined ? undefined : wholeNumber("--idle", values.idle, 1);
  return { values, shapes: values.shape.map(parseShape), idleSeconds };
}

/**
 * Attack a proxy's rules one way after another, and print after how long packets are right again, and who is said to have done it:
 * `npm run e2e:healing -- --only nft --shape 1000x10`. With `--idle 60` nothing is done, and the CPU time that the proxy takes in so many seconds is
 * printed. With `--vm` it is done to ipvs, in a guest. Needs root, and the command built.
 */
async function main({ values, shapes, idleSeconds }: ReturnType<typeof asked>): Promise<boolean> {
  if (values.vm) return await runAgainInVm({ variables: ["TURNOUT_HEALING_LOG"] });
  const victims = Object.entries(VICTIMS).filter(
    ([name, { isInVm }]) => (values.only === undefined || values.only === name) && (isInVm === true) === values["in-vm"],
  );
  if (idleSeconds !== undefined) {
    await measureIdle(victims, shapes, idleSeconds);
    return true;
  }
  process.stdout.write(
    "| backend | services x endpoints | what was done | packets right after | who, by the log | load |\n|---|---|---|---|---|---|\n",
  );
  for (const [name, victim] of victims) {
    for (const shape of shapes) await runAll(name, victim, shape, values.attack);
  }
  return true;
}

/** Print what a proxy and the programs that it starts take while nothing changes. */
async function measureIdle(victims: readonly (readonly [string, Victim])[], shapes: readonly Shape[], seconds: number): Promise<void> {
  process.stdout.write("| backend | services x endpoints | CPU time | of a core | load |\n|---|---|---|---|---|\n");
  for (const [name, { flags }] of victims) {
    for (const shape of shapes) {
      const stage = await createHealingStage(flags, shape);
      try {
        await sleep(SETTLE_MS);
        const pid = stage.proxy.pid ?? 0;
        const [beforeMs, sinceMs] = [treeTimeMs(pid), performance.now()];
        await sleep(seconds * 1_000);
        const usedMs = treeTimeMs(pid) - beforeMs;
        const share = ((usedMs / (performance.now() - sinceMs)) * 100).toFixed(2);
        const cells = [name, shapeText(shape), `${usedMs} ms in ${seconds} s`, `${share} %`, (loadavg()[0] ?? 0).toFixed(1)];
        process.stdout.write(`| ${cells.join(" | ")} |\n`);
      } finally {
        await stage.destroy();
      }
    }
  }
}

async function runAll(name: string, { flags, attacks }: Victim, shape: Shape, only: string): Promise<void> {
  const stage = await createHealingStage(flags, shape);
  try {
    while (!(await stage.isServed(1_000))) await sleep(100);
    let restMs = REST_MS;
    for (const attack of attacks.filter((one) => one.name.includes(only))) {
      await sleep(restMs);
      const row = await execute(stage, attack);
      // Repairs take a tenth of the time, so a long one is followed by a pause.
      restMs = Math.min(REST_MS + 10 * row.healedMs, REST_MAX_MS);
      const cells = [name, shapeText(shape), attack.name, row.healed, row.who, (loadavg()[0] ?? 0).toFixed(1)];
      process.stdout.write(`| ${cells.join(" | ")} |\n`);
    }
  } finally {
    await stage.destroy();
  }
}

async function execute(
  stage: HealingStage,
  { command }: Attack,
): Promise<{ readonly healed: string; readonly healedMs: number; readonly who: string }> {
  const logged = stage.log.length;
  const startedMs = Date.now();
  await stage.node.run("sh", ["-c", command]);
  const startMs = performance.now();
  let wellSinceMs = startMs;
  let hasFailed = false;
  let answered = 0;
  while (performance.now() - wellSinceMs < WELL_MS && performance.now() - startMs < HEAL_MAX_MS) {
    if ((await stage.isServed(ATTEMPT_MS)) || (answered >= ANSWERED && (await stage.isServed(PATIENT_MS)))) {
      answered++;
      await sleep(2);
      continue;
    }
    answered = 0;
    hasFailed = true;
    wellSinceMs = performance.now();
  }
  if (process.env["TURNOUT_HEALING_LOG"] !== undefined)
    for (const line of stage.log.slice(logged)) process.stderr.write(`${JSON.stringify(line)}\n`);
  const healedMs = wellSinceMs - startMs;
  const reported = await externalChange(stage);
  const healed =
    healedMs >= HEAL_MAX_MS - WELL_MS ? `not within ${HEAL_MAX_MS / 1000} s` : hasFailed ? `${Math.round(healedMs)} ms` : "nothing failed";
  return { healed, healedMs, who: reported === undefined || reported.atMs < startedMs ? "no writer was named" : reported.who };
}

/** Who changed our rules last, as the proxy's status says. */
async function externalChange({ node }: HealingStage): Promise<{ readonly atMs: number; readonly who: string } | undefined> {
  const { body } = await node.agent().get({ address: "127.0.0.1", port: 10249, path: "/turnout/status", timeoutMs: STATUS_MS });
  const { families } = JSON.parse(body) as {
    readonly families: readonly { readonly externalChange?: { readonly atMs: number; readonly who: string } }[];
  };
  return families[0]?.externalChange;
}

await runCommand({ name: "e2e:healing", usage: USAGE, read: asked, execute: main });
