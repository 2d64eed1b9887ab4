import type { Socket } from "node:net";
import {
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import type { PeerRights, PeerRightsOf } from "./peer-rights.ts";
import type { WatchCall } from "./refuse.ts";

/** A gRPC service, to be added to a server. */
export interface GrpcService {
  readonly definition: ServiceDefinition;
  readonly handlers: UntypedServiceImplementation;
}

/** Bounds of what a client may send and how long it may be silent. */
export interface EntryPointLimits {
  readonly requestBytesMax: number;
  readonly keepaliveMs: number;
  readonly keepaliveTimeoutMs: number;
}

/** A gRPC server that is handed its connections. */
export interface GrpcServer {
  readonly accept: (socket: Socket) => void;
  close(): void;
}

const STREAMS_OF_ONE_CONNECTION = 100;
const same = (bytes: Buffer): Buffer => bytes;
/** Messages are bytes, so that bad ones can be answered, and rows are encoded once for all watchers. */
const WATCH_METHOD = {
  requestStream: true,
  responseStream: true,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
};

/**
 * Sends a list of messages without waiting for each: a stream takes one in only when the one before is out, which for a hundred thousand small ones
 * takes longer than all else. HTTP/2 then has several in one frame.
 */
export const sendLists: ServerInterceptor = (_method, call) =>
  new ServerInterceptingCall(call, {
    start: (next) => next(),
    sendMetadata: (metadata, next) => next(metadata),
    sendMessage: (message: unknown, next) => {
      const list: readonly unknown[] = Array.isArray(message) ? message : [message];
      for (let index = 0; index < list.length - 1; index++) call.sendMessage(list[index], () => undefined);
      next(list.at(-1));
    },
    sendStatus: (status, next) => next(status),
  });

/** Make the service of one method `Watch`, at one door: whoever calls there has the rights that `rightsOf` says. */
export function watchService(
  path: string,
  rightsOf: PeerRightsOf,
  serve: (call: WatchCall, rights: PeerRights) => Promise<void>,
): GrpcService {
  const watch = (call: WatchCall): void => void serve(call, rightsOf(call.getAuthContext().sslPeerCertificate));
  return { definition: { watch: { ...WATCH_METHOD, path } }, handlers: { watch } };
}

/** Open a server with these services. */
export function openGrpcServer(services: readonly GrpcService[], limits: EntryPointLimits): GrpcServer {
  const server = new Server({
    "grpc.max_receive_message_length": limits.requestBytesMax,
    "grpc.max_concurrent_streams": STREAMS_OF_ONE_CONNECTION,
    "grpc.keepalive_time_ms": limits.keepaliveMs,
    "grpc.keepalive_timeout_ms": limits.keepaliveTimeoutMs,
    interceptors: [sendLists],
  });
  for (const { definition, handlers } of services) server.addService(definition, handlers);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  return {
    accept: (socket) => injector.injectConnection(socket),
    close() {
      injector.destroy();
      server.forceShutdown();
    },
  };
}
