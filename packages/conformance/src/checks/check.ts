import { abilitiesOf, moduleFaults } from "@turnout/core";
import type { Abilities, BackendModule, Plain } from "@turnout/core";
import { Cells, partsOf, rulesAsked } from "./cells.ts";
import type { CreateFakeHost } from "../runner/fake-host.ts";
import type { ConformanceReport } from "./finding.ts";
import { Findings } from "./findings.ts";
import type { FindingsOptions } from "./findings.ts";
import { checkHost, isWholeHost } from "./host-checks.ts";
import { Runner } from "../runner/runner.ts";
import { checkRecovery } from "./recovery-checks.ts";
import { checkRenderWork, checkTurns } from "./turn-checks.ts";
import type { RunnerOptions } from "../runner/runner.ts";
import { createRandom } from "@turnout/core/testing";
import type { Scenario } from "../runner/scenario.ts";
import { ScenarioRun } from "./scenario-run.ts";
import { STAGE_OBJECTS, STAGE_SETTINGS } from "../runner/stage.ts";
import type { Subject } from "../runner/subject.ts";

/** How a backend is examined. */
export interface CheckOptions extends FindingsOptions {
  /** Of the host's random choices; default 1. */
  readonly seed?: number;
  /** Options for the backend, by name. */
  readonly backendOptions?: Readonly<Record<string, Plain>>;
}

/**
 * Play scenarios on a backend and its host, and judge every packet by the oracle, by the scenario's words and by what the host did with it.
 *
 * Shape: first the host is looked at, because all the rest is told by it, then whether trouble with one thing costs others anything, and
 * whether a backend that is out of time carries on where it was. Each scenario gets a host of its own and both families' processes, as in
 * production but for their timing. The words count where the backend has all capabilities and the reference variants; what it lacks is
 * left out with its own reason, what it declares is checked to be so.
 * Edges: never throws; whatever throws is a finding.
 */
export async function checkBackend(
  module: BackendModule,
  createFakeHost: CreateFakeHost,
  scenarios: readonly Scenario[],
  options: CheckOptions = {},
): Promise<ConformanceReport> {
  const findings = new Findings(options);
  const random = createRandom(options.seed ?? 1);
  const subject: Subject = { module, createFakeHost };
  if (!isWholeHost(createFakeHost, findings)) return unplayed(module, findings);
  const abilities = await checkModule(subject, settingOf(options), findings);
  if (abilities === undefined) return unplayed(module, findings);
  await checkHost(subject, settingOf(options), { findings, random, abilities });
  // Where nothing works anyway, nothing that fails tells anything.
  if (!findings.list.some(({ kind }) => kind === "error")) {
    await checkRecovery(subject, settingOf(options), { findings, random });
    await checkTurns(subject, settingOf(options), findings);
    await checkRenderWork(subject, settingOf(options), findings);
  }
  return await runScenarios(subject, scenarios, { ...options, abilities }, findings);
}

/** Check what the module says of itself, and have it look at a host; undefined: nothing can be played, and a finding says why. */
async function checkModule(subject: Subject, setting: RunnerOptions, findings: Findings): Promise<Abilities | undefined> {
  findings.checkpoint = { scenario: "the module", step: "as it is loaded", rules: [] };
  const faults = moduleFaults(subject.module);
  const expected = "a BackendModule of @turnout/core/backend";
  for (const got of faults) findings.add({ kind: "contract", family: "IPv4", what: "the module", expected, got });
  if (faults.length > 0) return undefined;
  try {
    return await Runner.abilitiesOf(subject, setting);
  } catch (error) {
    findings.threw("the probe", "IPv4", error);
    return undefined;
  }
}

function unplayed(module: BackendModule, findings: Findings): ConformanceReport {
  return reportOf(String(module.name), abilitiesOf(module), findings, []);
}

function reportOf(
  backend: string,
  abilities: Abilities,
  { list, notAsked }: Findings,
  cells: ConformanceReport["cells"],
): ConformanceReport {
  return { backend, abilities, findings: list, cells, notAsked: [...notAsked] };
}

/** Play scenarios alone: as {@link checkBackend}, for a backend whose host has been looked at. */
export async function checkScenarios(
  subject: Subject,
  scenarios: readonly Scenario[],
  options: CheckOptions,
  findings: Findings = new Findings(options),
): Promise<ConformanceReport> {
  const abilities = await checkModule(subject, settingOf(options), findings);
  if (abilities === undefined) return unplayed(subject.module, findings);
  return await runScenarios(subject, scenarios, { ...options, abilities }, findings);
}

/** How scenarios are played on a backend whose abilities are known. */
interface RunOptions extends CheckOptions {
  readonly abilities: Abilities;
}

async function runScenarios(
  subject: Subject,
  scenarios: readonly Scenario[],
  options: RunOptions,
  findings: Findings,
): Promise<ConformanceReport> {
  const cells = new Cells();
  for (const scenario of scenarios) {
    if (findings.isFull) break;
    await checkScenario(subject, scenario, options, findings, cells);
  }
  for (const finding of findings.list) cells.finding(finding);
  return reportOf(subject.module.name, options.abilities, findings, cells.list());
}

async function checkScenario(subject: Subject, scenario: Scenario, options: RunOptions, findings: Findings, cells: Cells): Promise<void> {
  const { module } = subject;
  const parts = partsOf(scenario, options.abilities);
  for (const part of parts) for (const rule of scenario.rules) cells.open(rule, part);
  const first = parts.find(({ skipped }) => skipped === undefined);
  if (first === undefined) return;
  findings.checkpoint = { scenario: scenario.name, step: "the start", rules: rulesAsked(scenario.rules, options.abilities) };
  const setting: RunnerOptions = {
    ...settingOf(options),
    settings: { ...STAGE_SETTINGS, ...scenario.settings },
    ...(scenario.hostAddresses === undefined ? {} : { hostAddresses: scenario.hostAddresses }),
  };
  try {
    const runner = await Runner.start(subject, setting, STAGE_OBJECTS);
    const run = new ScenarioRun(scenario, { runner, parts, module, findings, cells, random: createRandom(options.seed ?? 1) });
    await run.execute(() => Runner.start(subject, setting, runner.objects));
  } catch (error) {
    findings.threw("the scenario", first.family, error);
  }
}

/** The stage, where no scenario says otherwise. */
function settingOf({ backendOptions }: CheckOptions): RunnerOptions {
  return {
    settings: STAGE_SETTINGS,
    ...(backendOptions === undefined ? {} : { backendOptions }),
  };
}
