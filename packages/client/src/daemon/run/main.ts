import {
  FAMILIES,
  ProxyError,
  type BackendModule,
  type Clock,
  type Feed,
  type HostReport,
  type IPFamily,
  type Issue,
  type KernelObject,
  type World,
} from "@turnout/core";
import type { RunConfig } from "../config/config.ts";
import { serveHealth, serveMetrics, watchConfigFile } from "./daemon-tasks.ts";
import { FamilyRun } from "./family-run.ts";
import { FamilyStates } from "../feed/family-states.ts";
import type { Eligibility } from "../../api/eligibility.ts";
import { judge, type HealthReport } from "../health/health.ts";
import { IssueLog } from "../../process/issue-log.ts";
import type { LeftoverOptions } from "./leftovers.ts";
import type { Metrics } from "../metrics/metrics.ts";

/** What a proxy process is run with. */
export interface RunOptions {
  readonly config: RunConfig;
  /** Node state per family; asked once for each family in use. */
  readonly feed: (family: IPFamily) => Feed;
  readonly world: World;
  /** Ends the run; rules stay in force. */
  readonly signal: AbortSignal;
  readonly eligibility: () => Eligibility;
  readonly metrics: Metrics;
  /** Sync one time and end. */
  readonly once?: boolean;
  /** A source without any Service is meant, also where rules of Services are in force; default false: it is doubted. */
  readonly allowsEmpty?: boolean;
  /** Takes each plan as text; nothing is applied and no port is opened. */
  readonly dryRun?: (text: string) => void;
  readonly report?: (issue: Issue) => void;
  /** What becomes of the rules that other proxies left; undefined: nobody looks for any. */
  readonly leftovers?: LeftoverOptions;
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
 * @throws {ProxyError} when the host can't run the backend at all, a one-time sync failed, an address can't be bound with
 * bindAddressHardFail, or the configuration file changed. Whatever becomes of the own Node object, Services are followed.
 * @source rules; kube-proxy cmd/kube-proxy/app/server.go
 */
export async function run<H, K extends KernelObject, S>(module: BackendModule<unknown, H, K, S>, options: RunOptions): Promise<void> {
  try {
    await runFamilies(module, options);
  } catch (error) {
    // A daemon that was stopped while it looked at the host is stopped, and nothing else; a one-time sync is not done.
    if (options.once === true || !options.signal.aborted || !ProxyError.is(error, "canceled")) throw error;
  }
}

async function runFamilies<H, K extends KernelObject, S>(module: BackendModule<unknown, H, K, S>, options: RunOptions): Promise<void> {
  const { config, world, signal } = options;
  if (options.once === true && module.residence === "process") {
    throw new ProxyError("invalid_object", "--once makes no sense: its rules live only as long as the process", {
      object: `backend ${module.name}`,
    });
  }
  const backendOptions = module.parseOptions(config.backendOptions);
  const report = await module.probe(backendOptions, world, signal);
  checkHost(module.name, report, options.dryRun !== undefined, world);
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
  const reporting = { ...options, report: options.report ?? issues.report };
  const families = await openFamilies(module, backendOptions, report.facts, reporting, stop.signal);
  try {
    const tasks =
      options.once === true ? families.map((family) => () => family.once(stop.signal)) : daemonTasks(families, options, stop.signal);
    await Promise.all(tasks.map((task) => task().catch(fail)));
  } finally {
    signal.removeEventListener("abort", onAbort);
    await closeAll(families, world);
    issues.close();
  }
  // A one-time sync that was stopped is not done; a daemon that was stopped is.
  if (failure !== undefined && (!signal.aborted || options.once === true)) throw failure;
}

/** Stop on a host that can't run the backend; a dry run goes on, it touches nothing. */
function checkHost<H>(name: string, { problems, versions }: HostReport<H>, isDryRun: boolean, { log }: World): void {
  log.info("host looked at", { backend: name, ...versions });
  const first = problems[0];
  if (first === undefined) return;
  for (const problem of problems) log.warn("this host can't run the backend", { backend: name, error: problem });
  if (!isDryRun) throw first;
}

/** Open the backend for each family it and the host can do. @throws {ProxyError} the first reason when none can be opened. */
async function openFamilies<H, K extends KernelObject, S>(
  module: BackendModule<unknown, H, K, S>,
  backendOptions: unknown,
  host: H,
  options: RunOptions & Required<Pick<RunOptions, "report">>,
  signal: AbortSignal,
): Promise<readonly FamilyRun<H, K, S>[]> {
  const { config, world, metrics, dryRun, report, leftovers } = options;
  const states = options.allowsEmpty === true ? undefined : new FamilyStates();
  const isOnce = options.once === true;
  const families: FamilyRun<H, K, S>[] = [];
  const isProxyHealthy = (): boolean => healthOf(families, config, world.clock).isHealthy;
  let firstError: ProxyError | undefined;
  for (const family of FAMILIES) {
    try {
      const capability = module.capabilities[family];
      if (capability !== true)
        throw new ProxyError("host_unsupported", `no ${family}: ${capability}`, { object: `backend ${module.name}` });
      const backend = await module.open(backendOptions, family, world, signal);
      const feed = options.feed(family);
      families.push(
        new FamilyRun({
          module,
          backend,
          family,
          feed,
          host,
          config,
          world,
          metrics,
          report,
          isProxyHealthy,
          dryRun,
          leftovers,
          states,
          isOnce,
        }),
      );
    } catch (error) {
      if (!ProxyError.is(error)) throw error;
      firstError ??= error;
      if (!signal.aborted) world.log.warn("this family is left out", { family, error });
    }
  }
  if (families.length === 0 && firstError !== undefined) throw firstError;
  return families;
}

/** The tasks of a running proxy; one that rejects ends the process. */
function daemonTasks<H, K extends KernelObject, S>(
  families: readonly FamilyRun<H, K, S>[],
  options: RunOptions,
  signal: AbortSignal,
): readonly (() => Promise<void>)[] {
  const common = { ...options, health: () => healthOf(families, options.config, options.world.clock) };
  const tasks = [...families.map((family) => () => family.run(signal)), () => watchConfigFile(common, signal)];
  // A dry run takes no ports: the proxy that does the work has them.
  return options.dryRun !== undefined ? tasks : [...tasks, () => serveHealth(common, signal), () => serveMetrics(common, signal)];
}

function healthOf<H, K extends KernelObject, S>(families: readonly FamilyRun<H, K, S>[], config: RunConfig, clock: Clock): HealthReport {
  return judge(new Map(families.map(({ family, progress }) => [family, progress])), config.syncPeriodMs, clock.nowMs());
}

async function closeAll<H, K extends KernelObject, S>(families: readonly FamilyRun<H, K, S>[], { clock, log }: World): Promise<void> {
  const late = new AbortController();
  const done = new AbortController();
  const limit = clock.sleep(CLOSE_MS, done.signal).then(() => late.abort());
  for (const family of families) {
    try {
      await family.close(late.signal);
    } catch (error) {
      log.warn("closing a backend failed", { family: family.family, error });
    }
  }
  done.abort();
  await limit;
}
