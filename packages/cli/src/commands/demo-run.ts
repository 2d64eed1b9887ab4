import { once } from "node:events";
import { quietLogFor, type CommonOptions } from "@turnout/client/daemon";
import { FAMILIES, probeModule, ProxyError, withWorldOf } from "@turnout/core";
import { probeHost } from "@turnout/host";
import { runDemoOf, type DemoRun } from "../demo/demo.ts";
import { hintsText } from "../demo/hints.ts";
import { holderVoice, runInHolder } from "../demo/holder.ts";
import { runLoopbackDemo } from "../demo/loopback/run.ts";
import { loopbackReport } from "../demo/loopback/report.ts";
import { cleanKept, listenForClean, refuseSecond } from "../demo/kept.ts";
import { painter, reportText, wantsColors } from "../demo/report-text.ts";
import { reportOf } from "../demo/report.ts";
import type { Stage } from "../demo/stage.ts";
import type { Environment } from "../environment.ts";
import { chooseBackend, KNOWN_BACKENDS, ROOTLESS_BACKEND } from "../registry.ts";

/** The flags of `turnout demo`. */
export interface DemoCommandOptions extends CommonOptions {
  readonly backend: string;
  readonly keep?: true;
  readonly clean?: true;
  readonly hold?: true;
}

/** Play the demo, keep it, or remove one that was kept. @throws {ProxyError} what can't be played, or what went wrong in it. */
export async function runDemo(options: DemoCommandOptions, env: Environment): Promise<void> {
  const hasColors = wantsColors(process.stdout.isTTY, env.variables);
  if (options.clean === true) env.out(`${await cleanKept()}\n`);
  else if (options.hold === true) await holdDemo(options, env, hasColors);
  else if (options.keep === true && options.backend === ROOTLESS_BACKEND)
    throw new ProxyError("invalid_object", "--keep keeps a cluster in namespaces, and on loopback there is none", {
      object: `--backend ${ROOTLESS_BACKEND}`,
      hint: `docs/backends/${ROOTLESS_BACKEND}.md has commands to try`,
    });
  else if (options.keep === true) await runInHolder(["--backend", options.backend], env, hasColors);
  else await showDemo(options, env, hasColors);
}

/** Play, report, remove. */
async function showDemo(options: DemoCommandOptions, env: Environment, hasColors: boolean): Promise<void> {
  if (options.backend === ROOTLESS_BACKEND) return await showOnLoopback(options, env, hasColors);
  try {
    const { stage, failures } = await runAndReport(options, env, hasColors);
    await stage.destroy();
    throwFailures(failures);
  } catch (error) {
    if (options.backend !== "auto" || !hasNoNamespaces(error)) throw error;
    env.err(`${painter(hasColors)("dim", "·")} Playing on loopback instead of in namespaces: ${error.what}\n`);
    await showOnLoopback(options, env, hasColors);
  }
}

/** Whether this host, or who we are on it, is why there can't be namespaces. Pure. */
export function hasNoNamespaces(error: unknown): error is ProxyError {
  return ProxyError.is(error, "permission_denied") || ProxyError.is(error, "host_unsupported");
}

async function showOnLoopback(options: DemoCommandOptions, env: Environment, hasColors: boolean): Promise<void> {
  const paint = painter(hasColors);
  const { clock } = env.createWorld(quietLogFor(options, env));
  const findings = await runLoopbackDemo({
    clock,
    nowMs: () => performance.now(),
    signal: env.signal,
    progress: (text) => env.err(`${paint("dim", "·")} ${text}\n`),
  });
  const report = loopbackReport(findings);
  env.out(reportText(report, paint));
  throwFailures(report.failures);
}

/** Play and report in a process of its own, then stay until told to go. */
async function holdDemo(options: DemoCommandOptions, env: Environment, hasColors: boolean): Promise<void> {
  const voice = holderVoice();
  const signal = AbortSignal.any([env.signal, voice.abandoned]);
  let stage: Stage | undefined;
  try {
    await refuseSecond();
    const ran = await runAndReport(options, { ...env, out: voice.out, err: voice.err, signal }, hasColors);
    ({ stage } = ran);
    const ear = await listenForClean();
    voice.out(hintsText(keptFacts(stage, ran.backend)));
    await voice.done(failureOf(ran.failures));
    if (!env.signal.aborted) await Promise.race([ear.asked, once(env.signal, "abort")]);
    await stage.destroy();
    await ear.close();
  } catch (error) {
    await stage?.destroy();
    if (!ProxyError.is(error)) throw error;
    await voice.done(error);
  }
}

/** A demo that was reported and is still up. */
interface ReportedDemo {
  readonly stage: Stage;
  /** Name of the backend it ran on. */
  readonly backend: string;
  readonly failures: readonly string[];
}

async function runAndReport(options: DemoCommandOptions, env: Environment, hasColors: boolean): Promise<ReportedDemo> {
  const world = env.createWorld(quietLogFor(options, env));
  const paint = painter(hasColors);
  const { signal } = env;
  const { isRoot, hasIPv6 } = await probeHost();
  if (!isRoot)
    throw new ProxyError("permission_denied", "network namespaces need root", {
      hint: `run it as root, e.g. with sudo, or with --backend ${ROOTLESS_BACKEND} on loopback`,
    });
  // What is in force on this host is nothing to the demo's own namespaces.
  const { module } = await chooseBackend({ world, env, spec: options.backend, mode: "", host: "needed", takesOver: false });
  const { problems, versions } = await withWorldOf(module, world, (own) => probeModule(module, module.parseOptions({}), own, signal));
  if (problems[0] !== undefined) throw problems[0];
  const ran = await runOrExplain({
    backend: options.backend,
    families: hasIPv6 ? FAMILIES : ["IPv4"],
    versions,
    clock: world.clock,
    nowMs: () => performance.now(),
    signal,
    progress: (text) => env.err(`${paint("dim", "·")} ${text}\n`),
  });
  const { stage, findings } = ran;
  const report = reportOf({ ...findings, setup: { ...findings.setup, backend: module.name } });
  env.out(reportText(report, paint));
  return { stage, backend: module.name, failures: report.failures };
}

/** Play, with the two ways it ends early said in words. */
async function runOrExplain(options: Parameters<typeof runDemoOf>[0]): Promise<DemoRun> {
  try {
    return await runDemoOf(options);
  } catch (cause) {
    if (options.signal.aborted) throw new ProxyError("canceled", "the demo was stopped, everything it made is removed", { cause });
    if (!ProxyError.is(cause, "permission_denied")) throw cause;
    throw new ProxyError("permission_denied", "this host does not let us make network namespaces", {
      hint: "in a container, start it with --privileged",
      cause,
    });
  }
}

function failureOf(failures: readonly string[]): ProxyError | undefined {
  if (failures.length === 0) return undefined;
  return new ProxyError("tool_failed", "not everything went well", { object: "turnout demo", hint: "the report above says what" });
}

function throwFailures(failures: readonly string[]): void {
  const error = failureOf(failures);
  if (error !== undefined) throw error;
}

function keptFacts(stage: Stage, backend: string): Parameters<typeof hintsText>[0] {
  const { cluster, kubeconfig } = stage;
  const [node1, node2] = cluster.nodes;
  const [client] = cluster.clients;
  if (node1 === undefined || node2 === undefined || client === undefined) throw new Error("the demo has two nodes and a client");
  return {
    node1: node1.namespace,
    node2: node2.namespace,
    client: client.namespace,
    node2Address: node2.address("IPv4"),
    kubeconfig,
    looks: KNOWN_BACKENDS.find(({ name }) => name === backend)?.looks ?? [],
  };
}
