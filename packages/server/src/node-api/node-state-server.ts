import type { PeerCertificate } from "node:tls";
import { IssueLog } from "@turnout/client";
import { DESCRIPTORS, WATCH_PATH, type TlsFiles } from "@turnout/client/protocol";
import type { Clock, Log } from "@turnout/core";
import { DESCRIPTORS as OWN_DESCRIPTORS } from "../gen/descriptors.ts";
import { ConnectionGate, type ConnectionShare } from "../grpc/connection-gate.ts";
import { openGrpcServer, watchService, type GrpcService } from "../grpc/grpc-server.ts";
import { listenAll, type Listener } from "../grpc/listeners.ts";
import { ALL_RIGHTS, certificateRights, type PeerRightsOf } from "../grpc/peer-rights.ts";
import { admitBy, type Admit } from "../grpc/refuse.ts";
import { StreamGate } from "../grpc/stream-gate.ts";
import { createToolServices } from "../grpc/tool-services.ts";
import { Traffic, type TrafficCounts } from "../grpc/traffic.ts";
import type { UnixListenerOptions } from "../grpc/unix-listener.ts";
import type { StoreApi, StoreApiOptions } from "../grpc/store-api.ts";
import type { NodeStateProvider } from "./node-state-provider.ts";
import { SERVER_LIMITS, type ServerLimits } from "./server-limits.ts";
import { Semaphore } from "../grpc/semaphore.ts";
import { PartBuffers } from "./part-buffers.ts";
import { RowBytes } from "./row-bytes.ts";
import { ViewRegistry } from "./view-registry.ts";
import { WatchSession } from "./watch-session.ts";

/** What the node-state API is served with. */
interface NodeStateApiOptions {
  readonly provider: NodeStateProvider;
  /** Identity of this run. */
  readonly instance: string;
  /** Program and version, for the clients' logs. */
  readonly version: string;
  /** The one node that may be asked for; undefined: any. */
  readonly onlyNode: string | undefined;
  readonly limits: Pick<ServerLimits, "lingerMs" | "requestsMax">;
  readonly clock: Clock;
  readonly traffic: Traffic;
  readonly log: Log;
  /** Watch streams that are open. */
  readonly streams: () => number;
  /** Runs a stream if there is room for one more. */
  readonly admit: Admit;
}

/** The node-state API, to be served at any number of doors. */
interface NodeStateApi {
  /** Nodes times settings that are answered, those kept for whoever comes back included. */
  readonly questions: number;
  readonly rowsEncoded: number;
  /** The services for one door. */
  services(rightsOf: PeerRightsOf): readonly GrpcService[];
  close(): void;
}

/** Full names of its services. */
const NODE_STATE_SERVICES: readonly string[] = [WATCH_PATH.slice(1, WATCH_PATH.lastIndexOf("/"))];
/** Clients that are told everything at a time, and how long one of them may hold up the next. */
const FIRST_STATES_MAX = 16;
const FIRST_STATE_MS = 2_000;

const CONNECTIONS_PER_STREAM = 2;

/** Serve the node-state API; one set of views for all doors, which differ in rights. */
function createNodeStateApi(options: NodeStateApiOptions): NodeStateApi {
  const { provider, instance, version, onlyNode, limits, clock, traffic, log, streams, admit } = options;
  const registry = new ViewRegistry({ provider, instance, clock, lingerMs: limits.lingerMs, requestsMax: limits.requestsMax });
  const bytes = new RowBytes();
  const buffers = new PartBuffers();
  const semaphore = new Semaphore({ most: FIRST_STATES_MAX, patienceMs: FIRST_STATE_MS, clock });
  const context = { registry, bytes, buffers, semaphore, traffic, streams, version, onlyNode, log };
  return {
    get questions() {
      return registry.size;
    },
    get rowsEncoded() {
      return bytes.made;
    },
    services: (rightsOf) => [
      watchService(WATCH_PATH, rightsOf, (call, rights) =>
        admit(call, rights, (slot) => new WatchSession(call, rights, slot, context).run()),
      ),
    ],
    close: () => registry.close(),
  };
}

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
  const connections = new ConnectionGate({ clock, report: issues.report });
  const onGreedy = (client: string): void => connections.streamRefused(client);
  const common = { onlyNode, traffic, log, admit: admitBy(gate, { traffic, log, onGreedy }) };
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
  const rightsOf = certificateRights(new Set(options.anyNode));
  const tls = openGrpcServer(servicesFor(rightsOf), limits);
  const shareOf = (certificate: PeerCertificate): ConnectionShare => {
    const { client, mayAskForAll } = rightsOf(certificate);
    // A relay has a connection for each node; others that have more than their streams take are refused streams, and hear why.
    return { client, connectionsMax: mayAskForAll ? streamsMax : CONNECTIONS_PER_STREAM * streamsOfClientMax };
  };
  const listeners = await listenAll(options, {
    unix: unix.accept,
    tls: { handshakeMs: limits.handshakeMs, gate: connections, shareOf, onConnection: tls.accept },
  });
  return {
    ports: listeners.flatMap(({ port }) => port ?? []),
    setServing: (isServing) => tools.setServing(isServing),
    get stats() {
      return statsOf({ traffic, gate, api, kpng, listeners });
    },
    async close() {
      for (const listener of listeners) await listener.close();
      connections.close();
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
