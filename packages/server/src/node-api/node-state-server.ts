import { DESCRIPTORS, WATCH_PATH, type TlsFiles } from "@turnout/client/protocol";
import { IssueLog } from "@turnout/client";
import type { Clock, Log } from "@turnout/core";
import type { Socket } from "node:net";
import { Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import { DESCRIPTORS as OWN_DESCRIPTORS } from "../gen/descriptors.ts";
import { createKpngApi, KPNG_SERVICES, type GrpcService } from "../kpng-api/kpng-services.ts";
import { HEALTH_DEFINITION, HealthService } from "../grpc/health-service.ts";
import { listenAll } from "../grpc/listeners.ts";
import type { NodeOrigin } from "./node-origin.ts";
import { admitBy, type WatchCall } from "../grpc/refuse.ts";
import { ALL_RIGHTS, certificateRights, type PeerRightsOf } from "../grpc/peer-rights.ts";
import { REFLECTION_DEFINITIONS, reflectionHandlers } from "../grpc/reflection-service.ts";
import { RowBytes } from "./row-bytes.ts";
import { StreamGate } from "../grpc/stream-gate.ts";
import { Traffic, type TrafficCounts } from "../grpc/traffic.ts";
import type { UnixListenerOptions } from "../grpc/unix-listener.ts";
import { Turnstile } from "../grpc/turnstile.ts";
import { ViewRegistry } from "./view-registry.ts";
import { WatchSession } from "./watch-session.ts";

/** What a brain serves with. */
export interface NodeStateServerOptions {
  readonly origin: NodeOrigin;
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
}

/** Bounds, and times in ms. */
export interface ServerLimits {
  /** Watch streams at a time that have said what they want; default 5,000. */
  readonly streamsMax: number;
  /** Streams of one certificate, or, of one that may ask for any node and over a socket, for one node; default 16. */
  readonly streamsOfClientMax: number;
  /** Nodes times settings that are answered at a time; default 5,000. */
  readonly questionsMax: number;
  /** Nodes, and the cluster, whose state is held whole for kpng's protocols at a time; default 64. */
  readonly kpngImagesMax: number;
  /** Bytes of a client's message; default 64 KiB. */
  readonly requestBytesMax: number;
  /** How long a view nobody watches is kept; default 2 minutes. */
  readonly lingerMs: number;
  /** A client is pinged so often, and gone when it does not answer in time; default 30 s and 10 s. */
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
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
  readonly listenTrouble: string;
}

/** A brain that serves. */
export interface NodeStateServer {
  /** Say to whoever checks health whether state is complete. */
  setServing(isServing: boolean): void;
  /** What is going on, for metrics and tests. */
  readonly stats: ServerStats;
  /** Ports of the TLS addresses, in their order. */
  readonly ports: readonly number[];
  /** Stop; streams end with UNAVAILABLE, and their clients wait for the next brain. */
  close(): Promise<void>;
}

const LIMITS: ServerLimits = {
  streamsMax: 5_000,
  streamsOfClientMax: 16,
  questionsMax: 5_000,
  kpngImagesMax: 64,
  requestBytesMax: 65_536,
  lingerMs: 120_000,
  keepaliveMs: 30_000,
  keepaliveTimeoutMs: 10_000,
};
const STREAMS_OF_ONE_CONNECTION = 100;
/** Clients that are told everything at a time, and how long one of them may hold up the next. */
const FIRST_STATES_MAX = 16;
const FIRST_STATE_MS = 2_000;
const SERVICE = WATCH_PATH.slice(1, WATCH_PATH.lastIndexOf("/"));
const TOOL_SERVICES: readonly string[] = ["grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];

const same = (bytes: Buffer): Buffer => bytes;
const NODE_STATE_DEFINITION: ServiceDefinition = {
  watch: {
    path: WATCH_PATH,
    requestStream: true,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  },
};

/**
 * Serve node states, gRPC health and reflection on unix sockets, and over mutual TLS.
 * @throws {ProxyError} `invalid_object` for an address that is none, or files that can't be used; `already_exists` when
 * somebody listens there; `permission_denied`, `not_found` when the socket can't be made.
 */
export async function serveNodeState(options: NodeStateServerOptions): Promise<NodeStateServer> {
  const limits = { ...LIMITS, ...options.limits };
  const { origin, clock, log, version, onlyNode } = options;
  const instance = options.instance ?? crypto.randomUUID();
  const { lingerMs, questionsMax, kpngImagesMax: imagesMax } = limits;
  const registry = new ViewRegistry({ origin, instance, clock, lingerMs, questionsMax });
  const bytes = new RowBytes();
  const { store } = origin;
  const services = [SERVICE, ...(store === undefined ? [] : KPNG_SERVICES), ...TOOL_SERVICES];
  const health = new HealthService(services);
  const reflection = reflectionHandlers(services, [DESCRIPTORS, OWN_DESCRIPTORS]);
  const tools = [
    { definition: HEALTH_DEFINITION, handlers: health.handlers },
    ...REFLECTION_DEFINITIONS.map((definition) => ({ definition, handlers: reflection })),
  ];
  const traffic = new Traffic();
  const issues = new IssueLog({ log, clock });
  const { streamsMax, streamsOfClientMax } = limits;
  const gate = new StreamGate({ streamsMax, streamsOfClientMax, clock, report: issues.report });
  const admit = admitBy(gate, { traffic, log });
  const turnstile = new Turnstile({ most: FIRST_STATES_MAX, patienceMs: FIRST_STATE_MS, clock });
  const common = { registry, bytes, turnstile, traffic, streams: () => gate.streams, version, onlyNode, log };
  const watchWith =
    (rightsOf: PeerRightsOf) =>
    (call: WatchCall): Promise<void> => {
      const rights = rightsOf(call.getAuthContext().sslPeerCertificate);
      return admit(call, rights, (place) => new WatchSession(call, rights, place, common).run());
    };
  const { report } = issues;
  const kpng = store === undefined ? undefined : createKpngApi({ store, onlyNode, imagesMax, traffic, log, report, admit });
  // Two servers, so that what a connection may do hangs on the door it came through, and not on what is found out about it.
  const unix = makeDoor(
    watchWith(() => ALL_RIGHTS),
    [...(kpng?.services(() => ALL_RIGHTS) ?? []), ...tools],
    limits,
  );
  const rightsOf = certificateRights(new Set(options.anyNode));
  const tls = makeDoor(watchWith(rightsOf), [...(kpng?.services(rightsOf) ?? []), ...tools], limits);
  const doors = [unix, tls];
  const listeners = await listenAll(options, { unix: unix.take, tls: tls.take });
  return {
    ports: listeners.flatMap(({ port }) => port ?? []),
    setServing: (isServing) => health.setServing(isServing),
    get stats() {
      const { changeSets, fullStates, operations, bytes: sent, refused } = traffic;
      const listenTrouble = listeners.map(({ trouble = "" }) => trouble).find((trouble) => trouble !== "") ?? "";
      const counts = { changeSets, fullStates, operations, bytes: sent, refused };
      return {
        ...counts,
        streams: gate.streams,
        silentStreams: gate.silent,
        questions: registry.size,
        kpngImages: kpng?.images ?? 0,
        rowsEncoded: bytes.made,
        listenTrouble,
      };
    },
    async close() {
      for (const listener of listeners) await listener.close();
      registry.close();
      for (const door of doors) door.close();
      issues.close();
    },
  };
}

/** A gRPC server that is handed its connections. */
interface GrpcDoor {
  readonly take: (socket: Socket) => void;
  close(): void;
}

function makeDoor(watch: (call: WatchCall) => Promise<void>, more: readonly GrpcService[], limits: ServerLimits): GrpcDoor {
  const server = new Server({
    "grpc.max_receive_message_length": limits.requestBytesMax,
    "grpc.max_concurrent_streams": STREAMS_OF_ONE_CONNECTION,
    "grpc.keepalive_time_ms": limits.keepaliveMs,
    "grpc.keepalive_timeout_ms": limits.keepaliveTimeoutMs,
  });
  server.addService(NODE_STATE_DEFINITION, { watch: (call: WatchCall) => void watch(call) });
  for (const { definition, handlers } of more) server.addService(definition, handlers);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  return {
    take: (socket) => injector.injectConnection(socket),
    close() {
      injector.destroy();
      server.forceShutdown();
    },
  };
}
