import { parseBindAddress, probe, routes, serveHttp, type BindAddress } from "@turnout/client/daemon";
import { ProxyError, type Clock, type Log } from "@turnout/core";
import { judgeBrain, type BrainCondition, type BrainProbe } from "./brain-health.ts";
import type { BrainMetrics } from "./brain-metrics.ts";

/** Ports of addresses that are given without one. */
export const BRAIN_PORTS = { metrics: 12_091, healthz: 12_092 } as const;

/** Where a brain is asked how it is; undefined: nowhere. */
export interface BrainAddresses {
  readonly metrics: BindAddress | undefined;
  readonly healthz: BindAddress | undefined;
}

/** Read the addresses; "" is none. @throws {ProxyError} `invalid_object` for what is no address. */
export function brainAddresses(texts: {
  readonly metricsBindAddress?: string | undefined;
  readonly healthzBindAddress?: string | undefined;
}): BrainAddresses {
  return {
    metrics: read("--metrics-bind-address", texts.metricsBindAddress, BRAIN_PORTS.metrics),
    healthz: read("--healthz-bind-address", texts.healthzBindAddress, BRAIN_PORTS.healthz),
  };
}

function read(flag: string, text: string | undefined, port: number): BindAddress | undefined {
  if (text === undefined || text === "") return undefined;
  const address = parseBindAddress(text, port);
  if (address !== undefined) return address;
  throw new ProxyError("invalid_object", `"${text}" is no address to listen on`, {
    object: flag,
    hint: `write IP:PORT, e.g. 127.0.0.1:${port}`,
  });
}

/** What the ports answer from. */
export interface BrainPorts {
  readonly addresses: BrainAddresses;
  readonly metrics: BrainMetrics;
  readonly condition: () => BrainCondition;
  readonly clock: Clock;
  readonly log: Log;
}

/** Answer metrics and probes until `signal` aborts. An address that can't be had is tried again every 5 s. */
export async function serveBrainPorts(ports: BrainPorts, signal: AbortSignal): Promise<void> {
  const { addresses, metrics, condition, clock, log } = ports;
  const probeOf = (path: BrainProbe): ReturnType<typeof probe> =>
    probe(`/${path}`, log, () => judgeBrain(path, condition(), clock.nowMs()));
  const common = { hardFail: false, clock, log };
  const tasks: Promise<void>[] = [];
  if (addresses.healthz !== undefined) {
    const handler = routes({ "/livez": probeOf("livez"), "/healthz": probeOf("healthz"), "/readyz": probeOf("readyz") });
    tasks.push(serveHttp({ ...common, name: "healthz", address: addresses.healthz, handler }, signal));
  }
  if (addresses.metrics !== undefined) {
    tasks.push(
      serveHttp({ ...common, name: "metrics", address: addresses.metrics, handler: routes({ "/metrics": () => metrics.reply() }) }, signal),
    );
  }
  await Promise.all(tasks);
}
