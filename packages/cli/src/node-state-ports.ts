import {
  forThisHost,
  hostAddresses,
  jsonReply,
  parseBindAddress,
  probe,
  routes,
  serveHttp,
  type BindAddress,
} from "@turnout/client/daemon";
import { type Clock, type Log, ProxyError, wallMs } from "@turnout/core";
import { judgeNodeState, type NodeStateCondition, type NodeStateProbe } from "./node-state-health.ts";
import type { NodeStateStatus } from "./node-state-status.ts";
import type { NodeStateMetrics } from "./node-state-metrics.ts";

/** Ports of addresses that are given without one. */
export const NODE_STATE_PORTS = { metrics: 12_091, healthz: 12_092 } as const;

/** Where a node-state server is asked how it is; undefined: nowhere. */
export interface NodeStateAddresses {
  readonly metrics: BindAddress | undefined;
  readonly healthz: BindAddress | undefined;
}

/** Read the addresses; "" is none. @throws {ProxyError} `invalid_object` for what is no address. */
export function nodeStateAddresses(texts: {
  readonly metricsBindAddress?: string | undefined;
  readonly healthzBindAddress?: string | undefined;
}): NodeStateAddresses {
  return {
    metrics: read("--metrics-bind-address", texts.metricsBindAddress, NODE_STATE_PORTS.metrics),
    healthz: read("--healthz-bind-address", texts.healthzBindAddress, NODE_STATE_PORTS.healthz),
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
export interface NodeStatePorts {
  readonly addresses: NodeStateAddresses;
  readonly metrics: NodeStateMetrics;
  readonly condition: () => NodeStateCondition;
  /** Told to this host alone. */
  readonly status: () => NodeStateStatus;
  readonly clock: Clock;
  readonly log: Log;
}

/** Answer metrics and probes until `signal` aborts. An address that can't be had is tried again every 5 s. */
export async function serveNodeStatePorts(ports: NodeStatePorts, signal: AbortSignal): Promise<void> {
  const { addresses, metrics, condition, status, clock, log } = ports;
  const probeOf = (path: NodeStateProbe): ReturnType<typeof probe> =>
    probe(`/${path}`, log, () => judgeNodeState(path, condition(), wallMs(clock)));
  const common = { hardFail: false, clock, log };
  const tasks: Promise<void>[] = [];
  if (addresses.healthz !== undefined) {
    const handler = routes({ "/livez": probeOf("livez"), "/healthz": probeOf("healthz"), "/readyz": probeOf("readyz") });
    tasks.push(serveHttp({ ...common, name: "healthz", address: addresses.healthz, handler }, signal));
  }
  if (addresses.metrics !== undefined) {
    const handler = routes({
      "/metrics": () => metrics.reply(),
      "/turnout/status": forThisHost(() => jsonReply(200, status()), hostAddresses),
    });
    tasks.push(serveHttp({ ...common, name: "metrics", address: addresses.metrics, handler }, signal));
  }
  await Promise.all(tasks);
}
