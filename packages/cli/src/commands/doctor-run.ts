import { createLinuxWorld } from "@turnout/host";
import { bySeverity, diagnose, surveyHost, type HostSurvey } from "@turnout/host/survey";
import { ProxyError, type IPFamily, type World } from "@turnout/core";
import type { Environment } from "../environment.ts";
import { findRules } from "../found-backend.ts";
import { backendOptions, quietLogFor, type CommonOptions } from "../options.ts";
import { probeBackend, type BackendHealth } from "../probe-backend.ts";
import { loadBackend, namesOn } from "../registry.ts";
import { askProxy, type RunningProxyOptions } from "../running-proxy.ts";
import type { Status } from "../status/status-text.ts";
import { backendFindings, nobodyHere, nobodyServes, severalInForce } from "./doctor-findings.ts";
import type { Diagnosis } from "./doctor-report.ts";
import { listedOnce } from "./listed-once.ts";
import { slowNotice } from "./slow-notice.ts";

/** A proxy that is busy answers late; without its answer less is told. */
const ANSWER_MS = 3_000;

/** What `turnout doctor` was told. */
export interface DoctorOptions extends CommonOptions, RunningProxyOptions {
  readonly output: "text" | "json";
}

/** Look at this host and at its backends. */
export async function diagnoseHost(options: DoctorOptions, env: Environment): Promise<Diagnosis> {
  const plain = env.createWorld(quietLogFor(options, env));
  const world: World = { ...plain, exec: listedOnce(plain.exec) };
  const slow = slowNotice(world.clock, env.err);
  const asked = options.backend === undefined || options.backend === "auto" ? undefined : options.backend;
  const names = asked === undefined ? namesOn(env.platform) : [asked];
  const modules = await Promise.all(names.map((name) => loadBackend(name, env.workingDirectory)));
  const backends: BackendHealth[] = [];
  for (const module of modules) {
    const probe = (): Promise<BackendHealth> => probeBackend(module, backendOptions(options.backendOption ?? []), world, env.signal);
    backends.push(await slow.during(`what the backend ${module.name} needs`, probe));
  }
  const known = await Promise.all(namesOn(env.platform).map((name) => loadBackend(name, "")));
  const foreign = modules.filter(({ name }) => known.every((one) => one.name !== name));
  const proxies = await slow.during("rules of service proxies", () => findRules([...known, ...foreign], world, env.signal));
  const survey = env.platform === "linux" ? await slow.during("this host's rules", () => surveyed(world, env.signal)) : undefined;
  const served = await servedFamilies(options, env.signal);
  const findings = bySeverity([
    ...backendFindings(backends, asked),
    ...severalInForce(proxies),
    ...(survey === undefined ? [] : [...nobodyServes(proxies, survey), ...nobodyHere(proxies, survey), ...diagnose(survey, served)]),
  ]);
  return { version: env.version, host: env.hostname, findings, backends, proxies, ...(survey === undefined ? {} : { survey }) };
}

/** Of which families a proxy that runs here has Services; none, where nobody says so. */
async function servedFamilies(options: RunningProxyOptions, signal: AbortSignal): Promise<ReadonlySet<IPFamily>> {
  try {
    const status = (await askProxy(options, "/turnout/status", signal, { waitMs: ANSWER_MS })) as Status;
    const families = status.kind === "proxy" ? status.families : [];
    return new Set(families.filter(({ services }) => services > 0).map(({ family }) => family));
  } catch (error) {
    if (signal.aborted || !ProxyError.is(error) || (options.address !== undefined && error.code === "invalid_object")) throw error;
    return new Set();
  }
}

async function surveyed(base: World, signal: AbortSignal): Promise<HostSurvey> {
  const world = createLinuxWorld(base);
  try {
    return await surveyHost({ world }, signal);
  } finally {
    world.close();
  }
}
