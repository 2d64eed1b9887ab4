import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { oneOf, runCommand, wholeNumber } from "@turnout/house/command-line";
import { createStage } from "./arena.ts";
import type { Stage } from "./arena.ts";
import { ATTACKS } from "./attacks.ts";
import type { Attack } from "./attacks.ts";
import { VICTIM } from "./victims.ts";
import type { Noticed } from "./victims.ts";

/** Which victims' changes may take how long in all that an attack lasts, in ms: a run of the iptables tool rewrites whole tables. */
const CHANGE_MAX_MS: Readonly<Record<string, number>> = { nft: 1_000, ebpf: 1_000, userspace: 1_000, iptables: 3_000 };
const HEALTH_MAX_MS = 1_000;
const USAGE = "npm run e2e:attacks -- [--only BACKEND] [--attack TEXT] [--seconds N]";

/** What was asked for. @throws {TypeError | RangeError} saying what is wrong with it. */
function asked(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: { only: { type: "string" }, attack: { type: "string", default: "" }, seconds: { type: "string", default: "20" } },
  });
  if (values.only !== undefined) oneOf("--only", values.only, Object.keys(CHANGE_MAX_MS));
  const attacks = ATTACKS.filter(({ name }) => name.includes(values.attack));
  if (attacks.length === 0) throw new RangeError(`--attack ${values.attack}: no attack has that in its name`);
  const backends = values.only === undefined ? Object.keys(CHANGE_MAX_MS) : [values.only];
  return { backends, attacks, seconds: wholeNumber("--seconds", values.seconds, 1) };
}

/** Play what a hostile tenant or client does next to victims, print what they noticed, and say whether that was nothing. Needs root, and the command built. */
async function main({ backends, attacks, seconds }: ReturnType<typeof asked>): Promise<boolean> {
  process.stdout.write(
    "| backend | attack | requests, failed | slowest of 100 | changes, slowest | /healthz, slowest | what was noticed |\n|---|---|---|---|---|---|---|\n",
  );
  let isWell = true;
  for (const backend of backends) {
    for (const attack of attacks) {
      const findings = await play(backend, attack, seconds);
      isWell &&= findings.length === 0;
    }
  }
  return isWell;
}

/** Play one attack against one backend; what the victims noticed, in words. */
async function play(backend: string, attack: Attack, seconds: number): Promise<readonly string[]> {
  const stage = await createStage(backend);
  try {
    await attack.prepare?.(stage.arena);
    await stage.site.waitForSync();
    const stop = new AbortController();
    const [noticed] = await Promise.all([
      stage.victims.watch(seconds * 1_000).finally(() => stop.abort()),
      sleep(1_000).then(() => attack.play(stage.arena, stop.signal)),
    ]);
    const findings = findingsOf(backend, stage, noticed);
    print(backend, attack, noticed, findings);
    return findings;
  } finally {
    await stage.site.destroy();
  }
}

function findingsOf(backend: string, { site }: Stage, { requests, sticky, changesMs, healthMs, badHealth }: Noticed): readonly string[] {
  const all = [...requests, sticky];
  return [
    ...all.flatMap(({ failed }) => Object.entries(failed).map(([outcome, count]) => `requests failed: ${count} ${outcome}`)),
    ...(requests.every(({ servers }) => Object.keys(servers).every((server) => server === VICTIM)) ? [] : ["another tenant answered"]),
    ...(Object.keys(sticky.servers).length <= 1 ? [] : ["a client lost its endpoint"]),
    ...(Math.max(...changesMs) <= (CHANGE_MAX_MS[backend] ?? 0) ? [] : ["a change was late"]),
    ...(healthMs <= HEALTH_MAX_MS ? [] : ["/healthz was silent"]),
    ...(badHealth.length === 0 ? [] : ["/healthz or /readyz was not 200"]),
    ...(site.proxy("node1").isRunning ? [] : ["the proxy ended"]),
  ];
}

function print(backend: string, { name }: Attack, { requests, changesMs, healthMs }: Noticed, findings: readonly string[]): void {
  const sum = (of: (tally: Noticed["requests"][number]) => number): number => requests.reduce((total, tally) => total + of(tally), 0);
  const cells = [
    backend,
    name,
    `${sum(({ attempts }) => attempts)}, ${sum(({ attempts, ok }) => attempts - ok)}`,
    `${Math.round(Math.max(...requests.map(({ p99Ms }) => p99Ms)))} ms`,
    `${changesMs.length}, ${Math.round(Math.max(...changesMs))} ms`,
    `${Math.round(healthMs)} ms`,
    findings.length === 0 ? "nothing" : findings.join(", "),
  ];
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

await runCommand({ name: "e2e:attacks", usage: USAGE, read: asked, execute: main });
