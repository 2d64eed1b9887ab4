import {
  FAMILIES,
  familyOf,
  openDataplane,
  parseModule,
  probeModule,
  ProxyError,
  withWorldOf,
  type BackendModule,
  type Clock,
  type Dataplane,
  type Feed,
  type IPFamily,
  type Issue,
  type KernelObject,
  type ProbedHost,
  type World,
} from "@turnout/core";
import { optionsForBackend, ruleSettingsOf } from "./rule-settings.ts";
import type { RunConfig } from "../config/run-config.ts";
import type { HostAccess } from "../host/give-up-rights.ts";
import type { ProxyEvent } from "../events/proxy-events.ts";
import { serveHealth, serveMetrics, watchConfigFile } from "./daemon-tasks.ts";
import { FamilyRun } from "./family-run.ts";
import { FamilyStates } from "../feed/family-states.ts";
import type { Eligibility } from "../../api/eligibility.ts";
import { prepareHost } from "./host-work.ts";
import { hostAddresses as readHostAddresses } from "../health/host-addresses.ts";
import { judge, type HealthReport } from "../health/health.ts";
import { RecentChanges } from "../insight/recent-changes.ts";
import type { WhyHelp } from "../insight/why-help.ts";
import { notInForce, type NotInForce } from "../health/not-in-force.ts";
import type { FamilyView, ProxyView } from "../insight/proxy-view.ts";
import { IssueLog } from "../../process/issue-log.ts";
import { ReportedCauses, type LeftoverOptions } from "./leftovers.ts";
import type { Metrics } from "../metrics/metrics.ts";

/** What a proxy process is run with. */
export interface RunOptions {
  readonly config: RunConfig;
  /** Node state per family; asked once for each family in use. */
  readonly feed: (family: IPFamily) => Feed;
  /** The world that the module makes its own of. */
  readonly world: World;
  /** This host's addresses as they are now; default: as Node tells them. */
  readonly hostAddresses?: (family: IPFamily) => readonly string[];
  /** Ends the run; rules stay in force. */
  readonly signal: AbortSignal;
  readonly eligibility: () => Eligibility;
  readonly metrics: Metrics;
  /** Where `feed` has the node state from, for people, e.g. `kube`. */
  readonly source?: string;
  /** Helps to explain packets to whoever asks. */
  readonly why?: WhyHelp;
  /** Sync one time and end. */
  readonly once?: boolean;
  /** A source without any Service is meant, also where rules of Services are in force; default false: it is doubted. */
  readonly allowsEmpty?: boolean;
  /** Takes each plan as text; nothing is applied and no port is opened. */
  readonly dryRun?: (text: string) => void;
  readonly report?: (issue: Issue) => void;
  /** Hears what people are to see at the Node or at a Service. */
  readonly onEvent?: (event: ProxyEvent) => void;
  /** A proxy that stays sets the host's settings through this, and gives up rights; undefined: neither. */
  readonly host?: HostAccess | undefined;
  /** What becomes of the rules that other proxies left; undefined: nobody looks for any. */
  readonly leftovers?: LeftoverOptions;
  /** Where the socket of `turnout why` is; default: /run/turnout of root, a directory for temporary files of others. */
  readonly runDirectory?: string;
  /** Reads the configuration file again, to notice its changes; undefined: unreadable just now. */
  readonly readFile?: (path: string) => Promise<string | undefined>;
}

const CLOSE_MS = 10_000;

/**
 * Run a backend: a sync loop per family, health and metrics servers, health check node ports, host events.
 *
 * Edges: ends without error when `signal` aborts, rules left in force; a family the host can't do is reported and the
 * other goes on. `once` syncs every family one time and starts no server.
 * A source without one Service is not believed at a start where rules are in force, unless `allowsEmpty`: they stay until there is one.
 * @throws {ProxyError} when the module is none, the host can't run the backend at all, a one-time sync failed, an address can't be bound with
 * bindAddressHardFail, or the configuration file changed. Whatever becomes of the own Node object, Services are followed.
 * @source rules; kube-proxy cmd/kube-proxy/app/server.go
 */
export async function run<H, K extends KernelObject, S>(module: BackendModule<unknown, H, K, S>, options: RunOptions): Promise<void> {
  parseModule(module, `backend ${module.name}`);
  try {
    await withWorldOf(module, options.world, (own) => runFamilies(module, own, options));
  } catch (error) {
    // A daemon that was stopped while it looked at the host is stopped, and nothing else; a one-time sync is not done.
    if (options.once === true || !options.signal.aborted || !ProxyError.is(error, "canceled")) throw error;
  }
}

/** @param own the module's world; the process around it has the one it was made of */
async function runFamilies<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  own: World,
  options: RunOptions,
): Promise<void> {
  const { config, world, signal } = options;
  if (options.once === true && module.residence === "process") {
    throw new ProxyError("invalid_object", "--once makes no sense: its rules live only as long as the process", {
      object: `backend ${module.name}`,
    });
  }
  // A run that is dry or one-time is no proxy that stays: nobody could read what it counts.
  const isLasting = options.once !== true && options.dryRun === undefined;
  if (isLasting && config.serviceMetricsMax > 0 && module.countingOptions === undefined)
    world.log.warn("--service-metrics has no effect: this backend counts nothing for Services", { backend: module.name });
  const backendOptions = module.parseOptions(isLasting ? optionsForBackend(module, config) : config.backendOptions);
  const hostWork = prepareHost(module, {
    settings: config.hostSettings,
    host: isLasting ? options.host : undefined,
    meanwhile: options.leftovers?.rights ?? {},
    clock: world.clock,
    log: world.log,
  });
  const host = await probeModule(module, backendOptions, own, signal);
  checkHost(module.name, host, options.dryRun !== undefined, world);
  // After the probe, whose tools may load modules; before the first tool is started that is kept.
  const { active, standalone } = await hostWork.limit();
  const dataplane = await openDataplane(module, backendOptions, own, signal);
  const stop = new AbortController();
  let failure: Error | undefined;
  const fail = (reason: unknown): void => {
    failure ??= reason instanceof Error ? reason : new Error("a task failed", { cause: reason });
    // What one family can't have is no reason for the other to go without.
    if (options.once !== true || !ProxyError.is(reason)) stop.abort();
  };
  const onAbort = (): void => stop.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) stop.abort();
  const issues = new IssueLog({ log: world.log, clock: world.clock, count: (object) => options.metrics.objectIssue(object) });
  const changes = new RecentChanges();
  const reporting = { ...options, changes, report: options.report ?? issues.report };
  try {
    const families = openFamilies(module, dataplane, host, reporting, stop.signal);
    const tasks =
      options.once === true
        ? families.map((family) => () => family.once(stop.signal))
        : daemonTasks(families, { module, host, changes }, options, stop.signal);
    void Promise.all(families.map(({ settled }) => settled))
      .then(() => (stop.signal.aborted ? undefined : active(() => lastSyncMsOf(families), stop.signal)))
      .catch(fail);
    void Promise.all(families.map((family) => family.standalone))
      .then(() => (stop.signal.aborted ? undefined : standalone()))
      .catch(fail);
    await Promise.all(tasks.map((task) => task().catch(fail)));
  } finally {
    signal.removeEventListener("abort", onAbort);
    await close(dataplane, world);
    issues.close();
  }
  // A one-time sync that was stopped is not done; a daemon that was stopped is.
  if (failure !== undefined && (!signal.aborted || options.once === true)) throw failure;
}

/** Stop on a host that can't run the backend; a dry run goes on, it touches nothing. */
function checkHost<H>(name: string, { problems, warnings, versions }: ProbedHost<H>, isDryRun: boolean, { log }: World): void {
  log.info("host probed", { backend: name, ...versions });
  for (const warning of warnings) log.warn("something is wrong on this host", { backend: name, error: warning });
  const first = problems[0];
  if (first === undefined) return;
  for (const problem of problems) log.warn("this host can't run the backend", { backend: name, error: problem });
  if (!isDryRun) throw first;
}

/**
 * Make the backend of each family that it can do on this host.
 * @throws {ProxyError} why the node's primary family can't be done, but not in a dry run; the first reason when there is none.
 * @source kube-proxy cmd/kube-proxy/app/server_linux.go: single-stack mode, and an error for the primary family
 */
function openFamilies<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  dataplane: Dataplane<H, K, S>,
  { facts: host, capabilities, variants }: ProbedHost<H>,
  options: RunOptions & Required<Pick<RunOptions, "report">> & { readonly changes: RecentChanges },
  signal: AbortSignal,
): readonly FamilyRun<H, K, S>[] {
  const { config, world, hostAddresses = readHostAddresses } = options;
  const families: FamilyRun<H, K, S>[] = [];
  const common = {
    ...options,
    module,
    capabilities,
    variants,
    host,
    hostAddresses,
    reported: new ReportedCauses(),
    states: options.allowsEmpty === true ? undefined : new FamilyStates(),
    isOnce: options.once === true,
    isProxyHealthy: () => healthOf(families, config, world.clock).isHealthy,
    signal,
  };
  let firstError: ProxyError | undefined;
  const primary = primaryFamily(config, hostAddresses);
  for (const family of FAMILIES) {
    try {
      const capability = capabilities[family];
      if (capability !== true)
        throw new ProxyError("host_unsupported", `no ${family}: ${capability}`, { object: `backend ${module.name}` });
      const backend = dataplane.family(family);
      families.push(new FamilyRun({ ...common, backend, family, feed: options.feed(family) }));
      options.metrics.leftOut(family, false);
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      if (family === primary && options.dryRun === undefined)
        throw new ProxyError(error.code, `this host can't do the primary family of the node: ${error.what}`, {
          ...(error.object === undefined ? {} : { object: error.object }),
          hint: error.hint ?? "repair that, or say by --bind-address that the other family is primary",
          cause: error,
        });
      firstError ??= error;
      options.metrics.leftOut(family, true);
      if (!signal.aborted) world.log.warn("this family is left out: its Services have no rules on this node", { family, error });
    }
  }
  if (families.length === 0 && firstError !== undefined) throw firstError;
  return families;
}

/** The family that a node can't go without: that of `bindAddress`; else IPv6 where the host has addresses of it only, loopback and link-local ones aside; else IPv4. */
function primaryFamily({ bindAddress }: RunConfig, addressesOf: (family: IPFamily) => readonly string[]): IPFamily {
  if (bindAddress !== undefined) return familyOf(bindAddress);
  const has = (family: IPFamily): boolean => addressesOf(family).some((address) => !/^(127\.|169\.254\.|::1$|fe80:)/.test(address));
  return has("IPv6") && !has("IPv4") ? "IPv6" : "IPv4";
}

/** The tasks of a running proxy; one that rejects ends the process. */
function daemonTasks<H, K extends KernelObject, S>(
  families: readonly FamilyRun<H, K, S>[],
  { module, host, changes }: Pick<ProxyView, "module" | "host" | "changes">,
  options: RunOptions,
  signal: AbortSignal,
): readonly (() => Promise<void>)[] {
  const { config, world, metrics, eligibility, source, why, hostAddresses = readHostAddresses } = options;
  const health = (): HealthReport => healthOf(families, config, world.clock);
  const startedMs = world.clock.nowMs();
  const views = (): readonly FamilyView[] => families.map((family) => family.view);
  const count = (): NotInForce => notInForce(views(), metrics.sources.lostFor(config.syncPeriodMs));
  metrics.watchNotInForce(count);
  const view = (): ProxyView => ({
    version: metrics.version,
    module,
    nodeName: config.nodeName,
    ruleSettings: ruleSettingsOf(module, config),
    source,
    sources: metrics.sources.all,
    notInForce: count,
    host,
    startedMs,
    families: views(),
    changes,
    health: health(),
    eligibility: eligibility(),
    clock: world.clock,
    hostAddresses,
    why,
  });
  const common = { ...options, hostAddresses, health, view };
  const tasks = [...families.map((family) => () => family.run(signal)), () => watchConfigFile(common, signal)];
  // A dry run takes no ports: the proxy that does the work has them.
  return options.dryRun !== undefined ? tasks : [...tasks, () => serveHealth(common, signal), () => serveMetrics(common, signal)];
}

function healthOf<H, K extends KernelObject, S>(families: readonly FamilyRun<H, K, S>[], config: RunConfig, clock: Clock): HealthReport {
  return judge(new Map(families.map(({ family, progress }) => [family, progress])), config.syncPeriodMs, clock.nowMs());
}

/** When something last was brought into force, ms since the epoch; 0: never. */
function lastSyncMsOf<H, K extends KernelObject, S>(families: readonly FamilyRun<H, K, S>[]): number {
  return Math.max(...families.map(({ progress }) => progress.lastSuccessMs ?? 0));
}

async function close<H, K extends KernelObject, S>(dataplane: Dataplane<H, K, S>, { clock, log }: World): Promise<void> {
  const late = new AbortController();
  const done = new AbortController();
  const limit = clock.sleep(CLOSE_MS, done.signal).then(() => late.abort());
  try {
    await dataplane.close(late.signal);
  } catch (error) {
    log.warn("closing the backend failed", { error });
  }
  done.abort();
  await limit;
}
