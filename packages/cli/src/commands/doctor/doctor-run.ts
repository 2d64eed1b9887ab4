import { optionsFromFlags, quietLogFor, typedOptions, type CommonOptions } from "@turnout/client/daemon";
import { createLinuxWorld } from "@turnout/host";
import { bySeverity, diagnose, printedSurvey, surveyHost, type Finding, type HostSurvey, type KnownProxy } from "@turnout/explain";
import { ProxyError, type World } from "@turnout/core";
import type { Environment } from "../../environment.ts";
import { findRules, type FoundRules } from "../../found-backend.ts";
import { probeBackend, type BackendHealth } from "../../probe-backend.ts";
import { loadBackend, namesOn, rulePlaces } from "../../registry.ts";
import { askProxy, type RunningProxyOptions } from "../../running-proxy.ts";
import type { Status } from "../../status/status-text.ts";
import { backendFindings, backendWarnings, noneHere, noneServes, severalActive } from "./doctor-findings.ts";
import type { Diagnosis } from "./doctor-report.ts";
import { listedOnce } from "./listed-once.ts";
import { listenerIn, runningFindings } from "./running-findings.ts";
import type { RunningAnswer } from "./running-findings.ts";
import { slowNotice } from "./slow-notice.ts";

const ignore = (): void => undefined;
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

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
  const known = await Promise.all(namesOn(env.platform).map((name) => loadBackend(name, "")));
  const external = modules.filter(({ name }) => known.every((one) => one.name !== name));
  const proxies = await slow.during("rules of service proxies", () => findRules([...known, ...external], world, env.signal));
  const running = await askRunning(options, world, env.signal);
  const backends: BackendHealth[] = [];
  for (const module of modules) {
    // What a backend warns of concerns those who have it, or want it.
    const isMeant =
      asked !== undefined ||
      running.status?.backend === module.name ||
      proxies.some(({ backend, by }) => backend === module.name && by === "turnout");
    const own = isMeant ? world : { ...world, log: SILENT };
    const probe = (): Promise<BackendHealth> => probeBackend(module, optionsFromFlags(typedOptions(options), module), own, env.signal);
    backends.push(await slow.during(`what the backend ${module.name} needs`, probe));
  }
  const survey = env.platform === "linux" ? await slow.during("this host's rules", () => surveyed(world, env.signal)) : undefined;
  const findings = bySeverity([
    ...backendFindings(backends, asked),
    ...backendWarnings(backends),
    ...severalActive(proxies, running.status),
    ...(survey === undefined ? [] : surveyFindings(survey, proxies, running, asked)),
  ]);
  const serving = running.status === undefined ? {} : { serving: running.status.backend };
  return {
    version: env.version,
    host: env.hostname,
    findings,
    backends,
    proxies,
    ...serving,
    ...(survey === undefined ? {} : { survey: printedSurvey(survey) }),
  };
}

function surveyFindings(
  survey: HostSurvey,
  proxies: readonly FoundRules[],
  running: RunningAnswer,
  asked: string | undefined,
): readonly Finding[] {
  return [
    ...noneServes(proxies, survey),
    ...noneHere(proxies, survey),
    ...runningFindings(running, survey.writers),
    ...diagnose(survey, knownProxy(running, asked)),
  ];
}

/** What the proxy that runs here says of itself; where none answers, what the backend that was asked for would do. */
function knownProxy({ status }: RunningAnswer, asked: string | undefined): KnownProxy {
  const families = status?.families ?? [];
  const { servesAtInput, answersItself, translatesAtDevices } = rulePlaces(status?.backend ?? asked ?? "");
  return {
    served: new Set(families.filter(({ services }) => services > 0).map(({ family }) => family)),
    answersItself: status !== undefined && answersItself,
    // Where the host has Services' addresses itself, or translates at sockets, no route is needed.
    routesFirst: !servesAtInput && !answersItself && !translatesAtDevices,
    serviceRanges: families.flatMap(({ serviceRanges = [] }) => serviceRanges),
  };
}

/** Ask the proxy that runs here how it is, and where it does not answer who has its port. */
async function askRunning(options: RunningProxyOptions, { exec }: World, signal: AbortSignal): Promise<RunningAnswer> {
  try {
    const status = (await askProxy(options, "/turnout/status", signal, { waitMs: ANSWER_MS })) as Status;
    return status.kind === "proxy" ? { status } : {};
  } catch (error) {
    if (signal.aborted || !ProxyError.is(error) || (options.address !== undefined && error.code === "invalid_object")) throw error;
    const listener = await listenerAt(error.object ?? "", exec, signal);
    return { error, ...(listener === undefined ? {} : { listener }) };
  }
}

/** Who listens at the port of `127.0.0.1:10249`; undefined: nobody, or it can't be told. */
async function listenerAt(place: string, exec: World["exec"], signal: AbortSignal): Promise<RunningAnswer["listener"]> {
  const [, port] = /:(\d+)(?:[,/]|$)/.exec(place) ?? [];
  if (port === undefined) return undefined;
  try {
    return listenerIn((await exec.run("ss", ["-tlnpH", `sport = :${port}`], { signal })).stdout);
  } catch (error) {
    if (signal.aborted || !ProxyError.is(error)) throw error;
    return undefined;
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
