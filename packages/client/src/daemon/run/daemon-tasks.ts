import { ProxyError, type IPFamily, type World } from "@turnout/core";
import type { Eligibility } from "../../api/eligibility.ts";
import type { BindAddress } from "../config/bind-address.ts";
import type { RunConfig } from "../config/run-config.ts";
import { fileChanged } from "../config/file-change.ts";
import { ownServerEvent, type OwnServer, type ProxyEvent } from "../events/proxy-events.ts";
import {
  healthReply,
  jsonReply,
  probe,
  readyVerdict,
  unhealthyReason,
  type HealthReport,
  type HttpRequest,
  type Reply,
} from "../health/health.ts";
import { routes, serveHttp, type Handler } from "../health/http.ts";
import { Profiling } from "../health/profiling.ts";
import { KUBE_PROXY_VERSION } from "../config/gen/kube-proxy-gates.ts";
import { flagzReply, statuszReply } from "../health/zpages.ts";
import { insightRoutes, whyHandler } from "../insight/insight-routes.ts";
import { serveWhySocket } from "../insight/why-socket.ts";
import type { ProxyView } from "../insight/proxy-view.ts";
import type { Metrics } from "../metrics/metrics.ts";
import { processTimeMs } from "../metrics/process-time.ts";

/** What a daemon does beside its sync loops is done with this. */
export interface DaemonTaskOptions {
  readonly config: RunConfig;
  readonly world: World;
  readonly metrics: Metrics;
  readonly eligibility: () => Eligibility;
  readonly health: () => HealthReport;
  /** The proxy as it is now. */
  readonly view: () => ProxyView;
  readonly hostAddresses: (family: IPFamily) => readonly string[];
  readonly onEvent?: ((event: ProxyEvent) => void) | undefined;
  /** Where the socket of `turnout why` is; default: where those of this user are. */
  readonly runDirectory?: string | undefined;
  /** Reads the configuration file again; undefined: unreadable just now. */
  readonly readFile?: ((path: string) => Promise<string | undefined>) | undefined;
}

const TEXT_HEADERS: Readonly<Record<string, string>> = { "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff" };

/** Answer `/healthz`, `/livez` and `/readyz` until aborted, if an address is configured. @throws {ProxyError} with bindAddressHardFail. */
export async function serveHealth(options: DaemonTaskOptions, signal: AbortSignal): Promise<void> {
  const { config, world, metrics, eligibility, health } = options;
  const { clock, log } = world;
  if (config.healthzBindAddress === undefined) return;
  const probeOf = (path: "healthz" | "livez", eligible: () => Eligibility | undefined): (() => Reply) =>
    probe(`/${path}`, log, () => {
      const healthNow = health();
      const eligibleNow = eligible();
      const reply = healthReply(healthNow, eligibleNow, clock);
      metrics.probed(path, reply.status);
      return { reply, reason: unhealthyReason(healthNow, eligibleNow) };
    });
  const handler = routes({
    "/healthz": probeOf("healthz", eligibility),
    "/livez": probeOf("livez", () => undefined),
    "/readyz": probe("/readyz", log, () => readyVerdict(health(), clock), false),
  });
  await serveOwn("healthz", config.healthzBindAddress, handler, options, signal);
}

/** @throws {ProxyError} with bindAddressHardFail. */
async function serveOwn(
  name: OwnServer,
  address: BindAddress,
  handler: Handler,
  { config, world, onEvent }: DaemonTaskOptions,
  signal: AbortSignal,
): Promise<void> {
  const { clock, log } = world;
  const onListenError = (error: ProxyError): void => onEvent?.(ownServerEvent(name, error));
  await serveHttp({ name, address, handler, hardFail: config.bindAddressHardFail, onListenError, clock, log }, signal);
}

/**
 * Answer what kube-proxy's metrics server answers until aborted, if an address is configured: `/metrics`, `/metrics/slis`, `/proxyMode`,
 * `/configz`, `/healthz`; by gates `/statusz` and `/flagz`; with profiling `/debug/pprof/`. And to this host alone what Turnout tells of itself,
 * `/turnout/…`; the socket of `turnout why` belongs to it.
 * @source kube-proxy cmd/kube-proxy/app/server.go serveMetrics
 * @throws {ProxyError} with bindAddressHardFail.
 */
export async function serveMetrics(options: DaemonTaskOptions, signal: AbortSignal): Promise<void> {
  const { config, world, metrics, view, hostAddresses } = options;
  if (config.metricsBindAddress === undefined) return;
  const { slis } = metrics;
  const insight = { proxy: view, hostAddresses, signal, hasPage: config.hasWebPage, clock: world.clock };
  const text = (body: string): Reply => ({ status: 200, headers: TEXT_HEADERS, body });
  const table = {
    "/healthz": () => {
      slis.checked("healthz", "ping", true);
      return text("ok");
    },
    "/metrics": () => metrics.reply(),
    "/metrics/slis": ({ method }: HttpRequest) => {
      if (method !== "DELETE") return slis.reply();
      slis.reset();
      return text("metrics reset\n");
    },
    "/proxyMode": () => text(config.proxyMode),
    "/configz": () => jsonReply(200, config.configz),
    ...(config.isProfiled ? new Profiling(world.clock, signal).routes() : {}),
    ...insightRoutes(insight),
    ...(config.hasFlagz ? { "/flagz": (request: HttpRequest) => flagzReply(config.flagz, request) } : {}),
  };
  const statusz = (request: HttpRequest): Reply =>
    statuszReply(
      {
        startedMs: processTimeMs(),
        nowMs: processTimeMs(performance.timeOrigin + performance.now()),
        runtimeVersion: process.version,
        version: metrics.version,
        // Of Kubernetes' effective versions only the two first numbers are told.
        emulationVersion: KUBE_PROXY_VERSION.split(".", 2).join("."),
        paths: Object.keys(table),
      },
      request,
    );
  const handler = routes(config.hasStatusz ? { ...table, "/statusz": statusz } : table);
  const { port: metricsPort } = config.metricsBindAddress;
  const socket = { metricsPort, directory: options.runDirectory, handler: whyHandler(insight), clock: world.clock, log: world.log };
  await Promise.all([serveOwn("metrics", config.metricsBindAddress, handler, options, signal), serveWhySocket(socket, signal)]);
}

/** Look at the configuration file until aborted. @throws {ProxyError} `canceled` once it is another: the process is to be started with it. */
export async function watchConfigFile({ config, world, readFile }: DaemonTaskOptions, signal: AbortSignal): Promise<void> {
  const { configFile } = config;
  if (configFile === undefined || readFile === undefined) return;
  if (await fileChanged(configFile, readFile, world.clock, signal)) {
    throw new ProxyError("restart_needed", "the configuration file changed", {
      object: configFile.path,
      hint: "exiting so that a supervisor starts the proxy with it; rules stay in force",
    });
  }
}
