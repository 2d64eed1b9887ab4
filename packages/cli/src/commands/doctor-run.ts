import { createLinuxWorld } from "@turnout/host";
import { bySeverity, diagnose, surveyHost, type HostSurvey } from "@turnout/host/survey";
import type { World } from "@turnout/core";
import type { Environment } from "../environment.ts";
import { findRules } from "../found-backend.ts";
import { backendOptions, quietLogFor, type CommonOptions } from "../options.ts";
import { probeBackend, type BackendHealth } from "../probe-backend.ts";
import { loadBackend, namesOn } from "../registry.ts";
import { backendFindings, nobodyHere, nobodyServes, severalInForce } from "./doctor-findings.ts";
import type { Diagnosis } from "./doctor-report.ts";

/** What `turnout doctor` was told. */
export interface DoctorOptions extends CommonOptions {
  readonly output: "text" | "json";
}

/** Look at this host and at its backends. */
export async function diagnoseHost(options: DoctorOptions, env: Environment): Promise<Diagnosis> {
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
    ...(survey === undefined ? [] : [...nobodyServes(proxies, survey), ...nobodyHere(proxies, survey), ...diagnose(survey)]),
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
