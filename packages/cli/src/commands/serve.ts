import { DEFAULT_TARGET, IssueLog, parseApiTarget, tlsFiles, type TlsFiles } from "@turnout/client";
import {
  issueEvents,
  refuseAllowOptions,
  runConfig,
  addApiOptions,
  addLogOptions,
  apiTls,
  collect,
  configFor,
  logFor,
  reportedObjects,
  SourceProblems,
  type CommonOptions,
  type NotInForce,
} from "@turnout/client/daemon";
import { isDNSName, ProxyError, Store, type Issue, type Log, type ObjectKind, type World } from "@turnout/core";
import { EventQueue, parseSourceSpec, type SourceSpec } from "@turnout/server";
import type { NodeStateProvider, NodeStateServer, ServerStats, UnixListenerOptions } from "@turnout/server/serve";
import type { Command } from "commander";
import type { Environment } from "../environment.ts";
import type { NodeStateCondition } from "../node-state-health.ts";
import { NodeStateMetrics } from "../node-state-metrics.ts";
import { nodeStateAddresses, NODE_STATE_PORTS, serveNodeStatePorts } from "../node-state-ports.ts";
import { nodeStateStatus, type NodeStateStatus } from "../node-state-status.ts";
import { fillStore } from "@turnout/server/node-state";
import { addAllowOptions } from "../options.ts";
import { DEFAULT_MODE, EXAMPLE_BACKEND } from "../registry.ts";

interface ServeOptions extends CommonOptions {
  readonly listen?: readonly string[];
  readonly tlsCa?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly tlsAnyNode?: readonly string[];
  readonly kubeconfig?: string;
  readonly master?: string;
  readonly source: string;
  readonly nodeName?: string;
  readonly socketMode: string;
  readonly socketOwner?: string;
  readonly kpng?: true;
  readonly streamsPerClient?: string;
  readonly metricsBindAddress?: string;
  readonly healthzBindAddress?: string;
}

const EXAMPLES = `
Examples:
  turnout serve                                              # for this and any other node, on ${DEFAULT_TARGET}
  turnout serve --source file:services.yaml --listen unix:///tmp/node.sock
  turnout serve --source api:unix:///run/turnout-server/node.sock     # a relay: asks another node-state server what it is asked

Then, on the same host: turnout run --source api:${DEFAULT_TARGET}, or turnout-${EXAMPLE_BACKEND} --api ${DEFAULT_TARGET}.
Who may write to the socket may ask for any node's state; nothing can be changed through it. Over tls:// a certificate of
--tls-ca is needed, and one of system:node:NAME may ask for NAME alone. SIGTERM ends it: backends
keep their rules in force, wait, and go on from what they have when it is back.
/livez: it runs. /healthz: and everybody can connect. /readyz: and its source has said what there is.`;

/** Add `turnout serve`. */
export function addServe(program: Command, env: Environment): void {
  const command = program.command("serve").description("compute node states and serve them to backends in other processes");
  command
    .option(
      "--listen <address>",
      `where backends connect: unix:///PATH or tls://HOST:PORT; repeatable (default: ${DEFAULT_TARGET})`,
      collect,
    )
    .option("--source <source>", "where Services come from: kube, file:PATH, or api:unix:///PATH (another node-state server)", "kube")
    .option("--node-name <name>", "the one node that may be asked for (default: any node)")
    .option("--socket-mode <octal>", "file mode of the socket", "0660")
    .option("--socket-owner <uid:gid>", "owner and group of the socket, as numbers (default: who starts it)")
    .option("--tls-ca <file>", "for tls://: whose certificates clients need")
    .option("--tls-cert <file>", "for tls://: our certificate")
    .option("--tls-key <file>", "for tls://: its key")
    .option("--tls-any-node <name>", "common name of a client's certificate that may ask for any node; repeatable", collect)
    .option("--kpng", "answer kpng's protocols as well, for its archived backends; needs @turnout/kpng")
    .option("--streams-per-client <n>", "streams of one certificate, or for one node of those that may ask for any (default: 16)")
    .option(
      "--metrics-bind-address <ip:port>",
      `where /metrics, and turnout status, are answered, port ${NODE_STATE_PORTS.metrics} unless given (default: nowhere)`,
    )
    .option(
      "--healthz-bind-address <ip:port>",
      `where /livez, /healthz and /readyz are answered, port ${NODE_STATE_PORTS.healthz} unless given (default: nowhere)`,
    )
    .option("--kubeconfig <file>", "how to reach the API server")
    .option("--master <url>", "API server address, beats the kubeconfig's");
  addAllowOptions(command);
  addApiOptions(command);
  addLogOptions(command);
  command.addHelpText("after", EXAMPLES);
  command.action(async (options: ServeOptions) => {
    await serve(command, options, env);
  });
}

/** Read a file mode. @throws {ProxyError} `invalid_object` for anything but three octal digits, a 0 before them or not. */
export function parseMode(text: string): number {
  if (!/^0?[0-7]{3}$/.test(text)) {
    throw new ProxyError("invalid_object", `"${text}" is no file mode`, { object: "--socket-mode", hint: "write octal digits, e.g. 0660" });
  }
  return Number.parseInt(text, 8);
}

/** Read how many of something there may be. @throws {ProxyError} `invalid_object` for anything but 1 to 99999. */
export function parseCount(text: string, flag: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text)) throw new ProxyError("invalid_object", `"${text}" is no number from 1 to 99999`, { object: flag });
  return Number(text);
}

/** Read an owner. @throws {ProxyError} `invalid_object` for anything but two numbers. */
export function parseOwner(text: string): NonNullable<UnixListenerOptions["owner"]> {
  const [, uid, gid] = /^(\d{1,9}):(\d{1,9})$/.exec(text) ?? [];
  if (uid === undefined || gid === undefined) {
    throw new ProxyError("invalid_object", `"${text}" is no owner`, { object: "--socket-owner", hint: "write numbers, e.g. 0:1000" });
  }
  return { uid: Number(uid), gid: Number(gid) };
}

/** The files for listening on TLS, if any. @throws {ProxyError} `invalid_object` for some of them, or for flags that do nothing. */
function listenTls({ listen = [], tlsCa: ca, tlsCert: cert, tlsKey: key, tlsAnyNode }: ServeOptions): TlsFiles | undefined {
  const files = tlsFiles({ ca, cert, key }, "--tls");
  if ((files === undefined && tlsAnyNode === undefined) || listen.some((address) => address.startsWith("tls://"))) return files;
  const object = files === undefined ? "--tls-any-node" : "--tls-ca, --tls-cert, --tls-key";
  throw new ProxyError("invalid_object", "nothing is listened on over TLS", {
    object,
    hint: "add --listen tls://HOST:PORT, or leave them out",
  });
}

/** Which of the flags for reaching an API server were given in vain. */
function idleFlags({ kubeconfig, master }: ServeOptions, spec: SourceSpec): readonly string[] {
  if (spec.kind === "kube") return [];
  return [...(kubeconfig === undefined ? [] : ["--kubeconfig"]), ...(master === undefined ? [] : ["--master"])];
}

async function serve(command: Command, options: ServeOptions, env: Environment): Promise<void> {
  const mode = parseMode(options.socketMode);
  const owner = options.socketOwner === undefined ? undefined : parseOwner(options.socketOwner);
  const { nodeName: onlyNode, streamsPerClient } = options;
  const limits = streamsPerClient === undefined ? {} : { streamsOfClientMax: parseCount(streamsPerClient, "--streams-per-client") };
  if (onlyNode !== undefined && !isDNSName(onlyNode)) {
    throw new ProxyError("invalid_object", `"${onlyNode}" is no name of a node`, { object: "--node-name" });
  }
  const addresses = nodeStateAddresses(options);
  const tls = listenTls(options);
  const spec = parseSourceSpec(options.source);
  const log = logFor(options, env);
  for (const flag of idleFlags(options, spec)) log.warn(`${flag} has no effect`, { reason: `the source is ${options.source}` });
  const world = env.createWorld(log);
  const metrics = new NodeStateMetrics(world.clock);
  const issues = new IssueLog({ log, clock: world.clock, count: (object) => metrics.objectIssue(object) });
  try {
    const stateSource = await makeStateSource({ command, options, env, spec, world, log, metrics, issues });
    const version = `turnout ${env.version}`;
    const { serveNodeState } = await import("@turnout/server/serve");
    const { clock } = world;
    const server = await serveNodeState({
      provider: stateSource.provider,
      listen: options.listen ?? [DEFAULT_TARGET],
      tls,
      anyNode: options.tlsAnyNode,
      mode,
      owner,
      onlyNode,
      version,
      clock,
      log,
      limits,
      ...(options.kpng === true ? { kpng: (await import("@turnout/kpng")).createKpngApi } : {}),
    });
    const condition = (): NodeStateCondition => ({ ...stateSource.condition(), listenProblem: server.stats.listenProblem });
    const stats = (): ServerStats => server.stats;
    const { store, provider } = stateSource;
    const count = (): NotInForce => ({ services: 0, objects: reportedObjects([provider.issues?.() ?? []]), sources: stateSource.lost() });
    metrics.watch({ stats, condition, notInForce: count, store });
    const parts = { version: env.version, source: options.source, startedMs: clock.nowMs(), clock, store, provider, stats, condition };
    const status = (): NodeStateStatus => nodeStateStatus(parts);
    try {
      const tasks = [
        (stop: AbortSignal) => stateSource.run(server, stop),
        (stop: AbortSignal) => serveNodeStatePorts({ addresses, metrics, condition, status, clock, log }, stop),
      ];
      await untilOneFails(tasks, env.signal);
    } finally {
      await server.close();
    }
  } finally {
    issues.close();
    metrics.close();
  }
  log.info("stopped; backends keep their rules in force");
}

/** Run tasks side by side; the first that fails ends all, and is what it fails with. */
async function untilOneFails(tasks: readonly ((signal: AbortSignal) => Promise<void>)[], signal: AbortSignal): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const running = tasks.map((task) => task(either));
  try {
    await Promise.all(running);
  } finally {
    stop.abort();
    await Promise.allSettled(running);
  }
}

/** Where node states come from, and what has to run meanwhile. */
interface StateSource {
  readonly provider: NodeStateProvider;
  /** Undefined for a relay. */
  readonly store: Store | undefined;
  readonly condition: () => Omit<NodeStateCondition, "listenProblem">;
  /** How many parts of the source could not be followed for longer than a sync period. */
  readonly lost: () => number;
  readonly run: (server: NodeStateServer, signal: AbortSignal) => Promise<void>;
}

interface StateSourceParts {
  readonly command: Command;
  readonly options: ServeOptions;
  readonly env: Environment;
  readonly spec: SourceSpec;
  readonly world: World;
  readonly log: Log;
  readonly metrics: NodeStateMetrics;
  readonly issues: IssueLog;
}

async function makeStateSource({ command, options, env, spec, world, log, metrics, issues }: StateSourceParts): Promise<StateSource> {
  const { createRelayProvider: createRelayOrigin, createStoreProvider: createStoreOrigin } = await import("@turnout/server/serve");
  const { clock } = world;
  const config = runConfig(await configFor(command, options, env), { name: DEFAULT_MODE });
  const { allowedAddresses } = config;
  if (spec.kind === "api") {
    const tls = apiTls(options);
    parseApiTarget(spec.target, tls);
    refuseAllowOptions(config, log);
    return {
      provider: createRelayOrigin({ target: spec.target, tls, version: `turnout ${env.version}`, clock, log }),
      store: undefined,
      condition: () => ({ isComplete: true, sources: new Map() }),
      lost: () => 0,
      async run(server, signal) {
        // A relay has nothing to wait for: each question is asked on when it comes.
        server.setServing(true);
        await clock.sleep(Infinity, signal);
      },
    };
  }
  // Of its own start and servers it sends none: it is no node's proxy.
  const names = { nodeName: env.hostname, hostname: env.hostname };
  const events = new EventQueue(names, clock, (service) => store.serviceIdentity(service));
  const report = (issue: Issue): void => {
    for (const event of issueEvents(issue)) events.put(event);
    issues.report(issue);
  };
  const store = new Store({ report, keepsPodNames: options.kpng === true, allowedAddresses });
  const sources = new SourceProblems(clock);
  return {
    provider: createStoreOrigin(store, report, { hasNodes: spec.kind === "kube" }),
    store,
    condition: () => ({ isComplete: store.isSynced, sources: sources.all }),
    lost: () => sources.lostFor(config.syncPeriodMs),
    async run(server, signal) {
      const onSynced = (): void => {
        server.setServing(true);
        log.info("the source is complete", { source: options.source });
      };
      const onHealth = (part: string, problem: string): void => sources.note(part, problem);
      const onObject = (kind: ObjectKind): void => metrics.objectChanged(kind);
      const { nodeName } = options;
      const hearers = { report, onObject, onSynced, onHealth, onHeard: metrics.heard, requestMetrics: metrics.restClient, events };
      await fillStore(store, { spec, nodeName, config, env, clock, log, ...hearers }, signal);
    },
  };
}
