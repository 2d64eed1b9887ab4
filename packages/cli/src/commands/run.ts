import {
  configFileText,
  initializeHost,
  isFeatureOn,
  Metrics,
  run,
  runConfig,
  withTimeout,
  writeConfigFile,
  type LoadedConfig,
  type RunConfig,
  type RunOptions,
  switchOf,
} from "@turnout/client/daemon";
import { ProxyError, type BackendModule, type Log, type World } from "@turnout/core";
import type { Command } from "commander";
import type { Environment } from "../environment.ts";
import { NodeStateSource } from "@turnout/server/node-state";
import { cleanUpHost } from "./cleanup.ts";
import {
  addBackendOptions,
  addConfigFlags,
  addSourceOptions,
  addTimeout,
  addVerbose,
  apiTls,
  configFor,
  logFor,
  timeoutMs,
  type CommonOptions,
} from "../options.ts";
import { whyHelp } from "../why/running-help.ts";
import {
  CHOICE_HINT,
  chooseBackend,
  EXAMPLE_BACKEND,
  LEFTOVER_RIGHTS,
  declaredOptions,
  isKnownBackend,
  otherBackends,
} from "../registry.ts";

interface RunCommandOptions extends CommonOptions {
  readonly source: string;
  readonly backend: string;
  readonly once?: true;
  readonly dryRun?: true;
  readonly keepOtherRules?: true;
  readonly allowEmpty?: true;
  readonly initOnly?: string | true;
  readonly keepCapabilities?: true;
  readonly cleanup?: string | true;
  readonly writeConfigTo?: string;
  readonly version?: string | true;
}

const EXAMPLES = `
Examples:
  turnout run --source file:services.yaml --node-name node1
  turnout run --kubeconfig /etc/kubernetes/kubelet.conf --cluster-cidr 10.244.0.0/16
  turnout run --config /var/lib/kube-proxy/config.conf --backend ${EXAMPLE_BACKEND}
  turnout run --source file:services.yaml --once --dry-run
  turnout run --source api:unix:///run/turnout/node.sock       # a node-state server ("turnout serve") computes the rows

SIGTERM ends it and leaves the rules in force; "turnout cleanup" removes them.`;

const NO_NODE = "the source has no Node object of this node: node ports answer on every address of this host, and /healthz answers 503";
const NO_NODE_HINT = "check --node-name, or add the Node to the source";

/** Add `turnout run`. */
export function addRun(program: Command, env: Environment): void {
  const command = program.command("run").description("program this node's services and keep them in step");
  addSourceOptions(command);
  addBackendOptions(command, "auto");
  command
    .option("--once", "sync one time, leave the rules in place and exit")
    .option("--dry-run", "print what would be done, and do nothing")
    .option("--keep-other-rules", "leave in force what another backend or kube-proxy left, instead of removing it once ours is")
    .option("--allow-empty", "accept a source without any Service: remove the rules that are in force at the start");
  command
    .option("--init-only [true|false]", "set the kernel parameters that take full rights, and exit; later starts need less")
    .option("--keep-capabilities", "don't give up the Linux capabilities that the backend does not need")
    .option("--cleanup [true|false]", "remove the rules of Turnout and of all modes of kube-proxy, and exit")
    .option("--write-config-to <file>", "write flags and configuration with all defaults as a configuration file, and exit")
    .option("--version [raw]", "print the version, and exit");
  addTimeout(command, "with --once: give up after this long");
  addVerbose(command);
  addConfigFlags(command, "all");
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: RunCommandOptions) => {
    await runProxy(command, options, env);
  });
}

async function runProxy(command: Command, options: RunCommandOptions, env: Environment): Promise<void> {
  if (options.version !== undefined && options.version !== "false") {
    env.out(options.version === "raw" ? `${JSON.stringify({ version: env.version, platform: env.platform })}\n` : `${env.version}\n`);
    return;
  }
  const loaded = await configFor(command, options, env);
  if (options.writeConfigTo) {
    const text = configFileText(loaded, await declaredOptions(options.backend, env.workingDirectory));
    await writeConfigFile(options.writeConfigTo, text, env.writeFile);
    return;
  }
  if (switchOf("--cleanup", options.cleanup)) {
    configFileText(loaded); // kube-proxy checks its configuration first, too
    await cleanUpHost(env.createWorld(logFor(options, env, loaded.logging)), env);
    return;
  }
  const log = logFor(options, env, loaded.logging);
  const world = env.createWorld(log);
  const isDaemon = options.once !== true;
  let residence: BackendModule["residence"] = "kernel";
  try {
    residence = await runInWorld(loaded, options, env, log, world);
  } catch (error) {
    // Stopped while a backend was still being chosen: a daemon that was stopped is done, a one-time sync is not.
    if (!isDaemon || !env.signal.aborted || !ProxyError.is(error, "canceled")) throw error;
  }
  if (!switchOf("--init-only", options.initOnly)) log.info(lastWords(isDaemon, options.dryRun === true, residence));
}

async function runInWorld(
  loaded: LoadedConfig,
  options: RunCommandOptions,
  env: Environment,
  log: Log,
  world: World,
): Promise<BackendModule["residence"]> {
  const isDry = options.dryRun === true;
  const { module, config } = await configuredBackend(loaded, options, env, world);
  const { signal } = env;
  for (const warning of config.warnings) log.warn(warning);
  if (switchOf("--init-only", options.initOnly)) {
    await initializeHost(module, { config, world, files: env.host?.files, signal });
    return module.residence;
  }
  log.info("turnout starts", { version: env.version, backend: module.name, source: options.source, node: config.nodeName });
  const metrics = new Metrics({ clock: world.clock, version: env.version, features: () => config.features });
  const state = new NodeStateSource({
    source: options.source,
    tls: apiTls(options),
    config,
    env,
    clock: world.clock,
    log,
    isDaemon: options.once !== true,
    awaitsNode: true,
    countIssue: (object) => metrics.objectIssue(object),
    onObject: (kind) => metrics.objectChanged(kind),
    onHealth: (part, problem) => metrics.sourceHealth(part, problem),
    onHeard: metrics.heard,
    requestMetrics: metrics.restClient,
    reportsEvents: options.once !== true && !isDry,
    onSynced: () => {
      if (!state.hasNode) log.warn(NO_NODE, { node: config.nodeName, hint: NO_NODE_HINT });
    },
  });
  const body = async (stop: AbortSignal): Promise<void> => {
    // Files need not describe the node: a plain host has no Node object.
    if (options.source === "kube") await state.nodeKnown(stop);
    if (stop.aborted) return;
    await run(module, {
      config,
      feed: (family) => state.feed(family),
      world,
      signal: stop,
      eligibility: () => state.eligibility,
      metrics,
      source: options.source,
      why: whyHelp({ source: options.source, state, backend: module.name, config, env, world }),
      once: options.once === true,
      allowsEmpty: options.allowEmpty === true,
      report: state.report,
      onEvent: (event) => state.notify(event),
      host: hostFor(options, config, env),
      ...(await leftoversFor(module, options, env.platform)),
      readFile: (path) => readAgain(path, env),
      ...(isDry ? { dryRun: (text: string) => env.out(`${text.trimEnd()}\n`) } : {}),
    });
  };
  const whole = (stop: AbortSignal): Promise<void> => state.during(body, stop);
  const hint = (): string | undefined =>
    state.lacksNode ? `it has no Node object of node ${config.nodeName}: check --node-name` : undefined;
  if (options.once === true) await withTimeout(`source ${options.source}`, timeoutMs(options), world.clock, signal, whole, hint);
  else await whole(signal);
  metrics.close();
  return module.residence;
}

/** What this process opens again: its configuration, credentials, and the way to a node-state server. */
function hostFor(options: RunCommandOptions, { kubeconfig }: RunConfig, { host }: Environment): RunOptions["host"] {
  if (host === undefined) return undefined;
  const { files, rights, memory } = host;
  const [, source] = /^(?:api:unix:(?:\/\/)?|file:)(.*)$/s.exec(options.source) ?? [];
  const { ca, cert, key } = apiTls(options) ?? {};
  const paths = [options.config, kubeconfig, source, ca, cert, key].filter((path) => path !== undefined);
  return { files, paths, memory, ...(rights === undefined || options.keepCapabilities === true ? {} : { rights }) };
}

/** Choose the backend, and say why where nobody asked for it; what it finds in force decides some of its options. */
async function configuredBackend(
  loaded: LoadedConfig,
  { backend: spec, dryRun }: RunCommandOptions,
  { workingDirectory, platform, signal }: Environment,
  world: World,
): Promise<{ readonly module: BackendModule; readonly config: RunConfig }> {
  const host = dryRun === true ? "wanted" : "needed";
  const takesOver = isFeatureOn("TurnoutTakeOver", loaded);
  const place = { world, platform, workingDirectory, signal };
  const { module, because, options } = await chooseBackend({ ...place, spec, mode: loaded.mode, host, takesOver });
  if (because !== undefined) world.log.info("backend chosen", { backend: module.name, because, ...options, hint: CHOICE_HINT });
  return { module, config: runConfig(loaded, module, { options, isUnnamed: because !== undefined }) };
}

/** A backend that doesn't come with turnout may do anything or nothing: it takes nobody's place. */
async function leftoversFor(
  module: BackendModule,
  { keepOtherRules }: RunCommandOptions,
  platform: string,
): Promise<Pick<RunOptions, "leftovers">> {
  if (!(await isKnownBackend(module))) return {};
  return { leftovers: { others: () => otherBackends(module.name, platform), isKept: keepOtherRules === true, rights: LEFTOVER_RIGHTS } };
}

function lastWords(isDaemon: boolean, isDry: boolean, residence: BackendModule["residence"]): string {
  if (residence === "process" && !isDry) return "stopped, nothing is answered any more";
  if (isDry) return isDaemon ? "stopped, nothing was applied" : "done, nothing was applied";
  return isDaemon ? "stopped, rules stay in force" : "done, rules stay in place";
}

async function readAgain(path: string, env: Environment): Promise<string | undefined> {
  // A file that is being replaced is missing for a moment; its next version is what counts.
  return await env.readFile(path).then(
    (text) => text,
    () => undefined,
  );
}
