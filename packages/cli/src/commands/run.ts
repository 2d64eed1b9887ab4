import {
  addProxyOptions,
  apiTls,
  isFeatureOn,
  runConfig,
  runProxy,
  switchOf,
  type OpenSource,
  type ProxyOptions,
  type RunConfig,
  type RunOptions,
  type SourceParts,
  type LoadedConfig,
} from "@turnout/client/daemon";
import type { BackendModule, World } from "@turnout/core";
import type { Command } from "commander";
import type { Environment } from "../environment.ts";
import { NodeStateSource } from "@turnout/server/node-state";
import { cleanUpHost } from "./cleanup.ts";
import { addBackendOptions, addSourceOptions } from "../options.ts";
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

interface RunCommandOptions extends ProxyOptions {
  readonly source: string;
  readonly backend: string;
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
  command.option("--version [raw]", "print the version, and exit");
  addProxyOptions(command, "remove the rules of Turnout and of all modes of kube-proxy, and exit");
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: RunCommandOptions) => {
    await runProxy(command, options, env, {
      name: "turnout",
      source: options.source,
      declared: () => declaredOptions(options.backend, env.workingDirectory),
      cleanUp: (_loaded, world) => cleanUpHost(world, env),
      choose: (loaded, world) => configuredBackend(loaded, options, env, world),
      open: (parts) => Promise.resolve(openState(options, env, parts)),
      leftovers: (module, isKept) => leftoversFor(module, isKept, env.platform),
    });
  });
}

function openState(
  options: RunCommandOptions,
  env: Environment,
  { module, config, world, metrics, isOnce, isDry }: SourceParts,
): OpenSource {
  const { source } = options;
  const { clock, log } = world;
  const state = new NodeStateSource({
    source,
    tls: apiTls(options),
    config,
    env,
    clock,
    log,
    isDaemon: !isOnce,
    awaitsNode: true,
    countIssue: (object) => metrics.objectIssue(object),
    onObject: (kind) => metrics.objectChanged(kind),
    onHealth: (part, problem) => metrics.sources.note(part, problem),
    onHeard: metrics.heard,
    requestMetrics: metrics.restClient,
    reportsEvents: !isOnce && !isDry,
    onSynced: () => {
      if (!state.hasNode) log.warn(NO_NODE, { node: config.nodeName, hint: NO_NODE_HINT });
    },
  });
  return {
    feed: (family) => state.feed(family),
    eligibility: () => state.eligibility,
    report: state.report,
    onEvent: (event) => state.notify(event),
    why: whyHelp({ source, state, backend: module.name, config, env, world }),
    hint: () => (state.lacksNode ? `it has no Node object of node ${config.nodeName}: check --node-name` : undefined),
    during: (body, signal) =>
      state.during(async (stop) => {
        // Files need not describe the node: a plain host has no Node object.
        if (source === "kube") await state.nodeKnown(stop);
        if (!stop.aborted) await body(stop);
      }, signal),
  };
}

/** Choose the backend, and say why where nobody asked for it; what it finds in force decides some of its options. */
async function configuredBackend(
  loaded: LoadedConfig,
  { backend: spec, dryRun }: RunCommandOptions,
  env: Environment,
  world: World,
): Promise<{ readonly module: BackendModule; readonly config: RunConfig }> {
  const host = switchOf("--dry-run", dryRun) ? "wanted" : "needed";
  const takesOver = isFeatureOn("TurnoutTakeOver", loaded);
  const { module, because, options } = await chooseBackend({ world, env, spec, mode: loaded.mode, host, takesOver });
  if (because !== undefined) world.log.info("backend chosen", { backend: module.name, because, ...options, hint: CHOICE_HINT });
  return { module, config: runConfig(loaded, module, { options, isUnnamed: because !== undefined }) };
}

/** A backend that doesn't come with turnout may do anything or nothing: it takes nobody's place. */
async function leftoversFor(module: BackendModule, isKept: boolean, platform: string): Promise<Pick<RunOptions, "leftovers">> {
  if (!(await isKnownBackend(module))) return {};
  return { leftovers: { others: () => otherBackends(module.name, platform), isKept, rights: LEFTOVER_RIGHTS } };
}
