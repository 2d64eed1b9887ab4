import { createLinuxWorld } from "@turnout/host";
import { bySeverity, diagnose, surveyHost, type Finding, type HostSurvey } from "@turnout/host/survey";
import type { World } from "@turnout/core";
import { Option, type Command } from "commander";
import type { Environment } from "../environment.ts";
import { findRules, type FoundRules } from "../found-backend.ts";
import { addLogOptions, backendOptions, collect, quietLogFor, type CommonOptions } from "../options.ts";
import { probeBackend, type BackendHealth } from "../probe-backend.ts";
import { BACKEND_HELP, EXAMPLE_BACKEND, loadBackend, namesOn } from "../registry.ts";
import { diagnosisText, type Diagnosis } from "./doctor-report.ts";

interface DoctorOptions extends CommonOptions {
  readonly output: "text" | "json";
}

const EXAMPLES = `
Examples:
  turnout doctor                       # every backend that comes with turnout
  turnout doctor --backend ${EXAMPLE_BACKEND} -o json

Reads only. Exit codes: 0 nothing is wrong (risks and notes may be told), 1 a fault was found, or the backend
asked for can't run here, or none can; 2 bad usage.`;

/** Add `turnout doctor`. */
export function addDoctor(program: Command, env: Environment, onFault: () => void): void {
  const command = program.command("doctor").description("say what of this host is against a service proxy, and what to do about it");
  command
    .option("--backend <backend>", `only this one: ${BACKEND_HELP}`)
    .option("--backend-option <name=value>", "an option of the backend itself; repeatable", collect, [])
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]).default("text"));
  addLogOptions(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: DoctorOptions) => {
    const diagnosis = await diagnoseHost(options, env);
    env.out(options.output === "json" ? `${JSON.stringify(diagnosis, undefined, 2)}\n` : diagnosisText(diagnosis));
    if (diagnosis.findings.some(({ severity }) => severity === "fault")) onFault();
  });
}

async function diagnoseHost(options: DoctorOptions, env: Environment): Promise<Diagnosis> {
  const world = env.createWorld(quietLogFor(options, env));
  const asked = options.backend === undefined || options.backend === "auto" ? undefined : options.backend;
  const names = asked === undefined ? namesOn(env.platform) : [asked];
  const modules = await Promise.all(names.map((name) => loadBackend(name, env.workingDirectory)));
  const backends: BackendHealth[] = [];
  for (const module of modules) backends.push(await probeBackend(module, backendOptions(options.backendOption ?? []), world, env.signal));
  const all = await Promise.all(namesOn(env.platform).map((name) => loadBackend(name, "")));
  const proxies = await findRules(all, world, env.signal);
  const survey = env.platform === "linux" ? await surveyed(world, env.signal) : undefined;
  const findings = bySeverity([
    ...backendFindings(backends, asked),
    ...severalInForce(proxies),
    ...(survey === undefined ? [] : diagnose(survey)),
  ]);
  return { version: env.version, host: env.hostname, findings, backends, proxies, ...(survey === undefined ? {} : { survey }) };
}

async function surveyed(base: World, signal: AbortSignal): Promise<HostSurvey> {
  const world = createLinuxWorld(base);
  try {
    return await surveyHost({ world }, signal);
  } finally {
    world.close();
  }
}

/** A backend that can't run is a fault where it was asked for, or where none can. Pure. */
function backendFindings(backends: readonly BackendHealth[], asked: string | undefined): readonly Finding[] {
  const failed = backends.filter(({ problems }) => problems.length > 0);
  if (asked === undefined && failed.length < backends.length) return [];
  return failed.map(({ backend, problems }) => ({
    id: "backend-cannot-run",
    severity: "fault",
    what: `this host can't run the backend ${backend}`,
    because: problems.join("; "),
    mend: asked === undefined ? "as the messages say" : "as the message says; turnout doctor without --backend says which ones it can run",
  }));
}

/** Rules of several of our backends at once: both translate, and the first one that a packet meets has it. Pure. */
function severalInForce(proxies: readonly FoundRules[]): readonly Finding[] {
  const own = proxies.filter(({ by, isLive }) => by === "turnout" && isLive !== false);
  if (new Set(own.map(({ backend }) => backend)).size < 2) return [];
  return [
    {
      id: "several-backends",
      severity: "fault",
      what: "rules of several of Turnout's backends are in force: packets go by whichever they meet first",
      because: own.map(({ backend, what }) => `${what} (${backend})`).join(", "),
      mend: "turnout cleanup --backend X removes those of the backend that no process serves; a running Turnout does so at its start",
    },
  ];
}
