import { IssueLog } from "@turnout/client";
import { DESCRIPTORS, type TlsFiles } from "@turnout/client/protocol";
import type { Clock, Log } from "@turnout/core";
import { DESCRIPTORS as OWN_DESCRIPTORS } from "../gen/descriptors.ts";
import { openGrpcServer, type GrpcService } from "../grpc/grpc-server.ts";
import { listenAll, type Listener } from "../grpc/listeners.ts";
import { ALL_RIGHTS, certificateRights, type PeerRightsOf } from "../grpc/peer-rights.ts";
import { admitBy } from "../grpc/refuse.ts";
import { StreamGate } from "../grpc/stream-gate.ts";
import { createToolServices } from "../grpc/tool-services.ts";
import { Traffic, type TrafficCounts } from "../grpc/traffic.ts";
import type { UnixListenerOptions } from "../grpc/unix-listener.ts";
import type { StoreApi, StoreApiOptions } from "../grpc/store-api.ts";
import type { NodeStateProvider } from "./node-state-provider.ts";
import { createNodeStateApi, NODE_STATE_SERVICES, type NodeStateApi } from "./node-state-api.ts";
import { SERVER_LIMITS, type ServerLimits } from "./server-limits.ts";

/** What a node-state server serves with. */
export interface NodeStateServerOptions {
  readonly provider: NodeStateProvider;
  /** `unix:///absolute/path` or `tls://HOST:PORT`, each. */
  readonly listen: readonly string[];
  /** For listening on TLS; clients need a certificate of this authority. */
  readonly tls?: TlsFiles | undefined;
  /** Common names of certificates that may ask for any node; others may ask for their own: `system:node:NAME`. */
  readonly anyNode?: readonly string[] | undefined;
  /** File mode of the socket; default 0660. */
  readonly mode?: number | undefined;
  /** Numeric owner of the socket; default as the process creates it. */
  readonly owner?: UnixListenerOptions["owner"];
  /** The one node that may be asked for; default any. */
  readonly onlyNode?: string | undefined;
  /** Program and version, for the clients' logs. */
  readonly version: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Identity of this run; default a random one. */
  readonly instance?: string | undefined;
  readonly limits?: Partial<ServerLimits> | undefined;
  /** kpng's protocols (`createKpngApi` of `@turnout/kpng`), served where the provider has a store; default: they are not served. */
  readonly kpng?: ((options: StoreApiOptions) => StoreApi) | undefined;
}

/** What a server does and has done. */
export interface ServerStats extends TrafficCounts {
  /** Watch streams that have said what they want. */
  readonly streams: number;
  /** Those that have not yet. */
  readonly silentStreams: number;
  /** Nodes times settings that are answered, those kept for whoever comes back included. */
  readonly questions: number;
  /** Nodes, and the cluster, of which kpng's protocols are watched; each holds a whole state. */
  readonly kpngImages: number;
  readonly rowsEncoded: number;
  /** Why nobody new can connect to one of the addresses; "" when they can. */
  readonly listenProblem: string;
}

/** A node-state server that serves. */
export interface NodeStateServer {
  /** Say to whoever checks health whether state is complete. */
  setServing(isServing: boolean): void;
  /** What is going on, for metrics and tests. */
  readonly stats: ServerStats;
  /** Ports of the TLS addresses, in their order. */
  readonly ports: readonly number[];
  /** Stop; streams end with UNAVAILABLE, and their clients wait for the next node-state server. */
  close(): Promise<void>;
}

/**
 * Serve node states, gRPC health and reflection on unix sockets, and over mutual TLS.
 * @throws {ProxyError} `invalid_object` for an address that is none, or files that can't be used; `already_exists` when
 * somebody listens there; `permission_denied`, `not_found` when the socket can't be made.
 */
export async function serveNodeState(options: NodeStateServerOptions): Promise<NodeStateServer> {
  const limits = { ...SERVER_LIMITS, ...options.limits };
  const { provider, clock, log, version, onlyNode } = options;
  const instance = options.instance ?? crypto.randomUUID();
  const traffic = new Traffic();
  const issues = new IssueLog({ log, clock });
  const { streamsMax, streamsOfClientMax, kpngImagesMax: imagesMax } = limits;
  const gate = new StreamGate({ streamsMax, streamsOfClientMax, clock, report: issues.report });
  const common = { onlyNode, traffic, log, admit: admitBy(gate, { traffic, log }) };
  const api = createNodeStateApi({ ...common, provider, instance, version, limits, clock, streams: () => gate.streams });
  const { store } = provider;
  const kpng = store === undefined ? undefined : options.kpng?.({ ...common, store, imagesMax, report: issues.report });
  const names = [...NODE_STATE_SERVICES, ...(kpng?.names ?? [])];
  const tools = createToolServices(names, [DESCRIPTORS, OWN_DESCRIPTORS, ...(kpng === undefined ? [] : [kpng.descriptors])]);
  const servicesFor = (rightsOf: PeerRightsOf): readonly GrpcService[] => [
    ...api.services(rightsOf),
    ...(kpng?.services(rightsOf) ?? []),
    ...tools.services,
  ];
  // Two servers, so that what a connection may do hangs on the door it came through, and not on what is found out about it.
  const unix = openGrpcServer(
    servicesFor(() => ALL_RIGHTS),
    limits,
  );
  const tls = openGrpcServer(servicesFor(certificateRights(new Set(options.anyNode))), limits);
  const listeners = await listenAll(options, { unix: unix.accept, tls: tls.accept });
  return {
    ports: listeners.flatMap(({ port }) => port ?? []),
    setServing: (isServing) => tools.setServing(isServing),
    get stats() {
      return statsOf({ traffic, gate, api, kpng, listeners });
    },
    async close() {
      for (const listener of listeners) await listener.close();
      api.close();
      for (const entryPoint of [unix, tls]) entryPoint.close();
      issues.close();
    },
  };
}

/** What counts something in a server. */
interface Counting {
  readonly traffic: Traffic;
  readonly gate: StreamGate;
  readonly api: NodeStateApi;
  readonly kpng: StoreApi | undefined;
  readonly listeners: readonly Listener[];
}

function statsOf({ traffic, gate, api, kpng, listeners }: Counting): ServerStats {
  const { changeSets, fullStates, operations, bytes, refused } = traffic;
  return {
    changeSets,
    fullStates,
    operations,
    bytes,
    refused,
    streams: gate.streams,
    silentStreams: gate.silent,
    questions: api.questions,
    kpngImages: kpng?.images ?? 0,
    rowsEncoded: api.rowsEncoded,
    listenProblem: listeners.map(({ problem = "" }) => problem).find((problem) => problem !== "") ?? "",
  };
}
