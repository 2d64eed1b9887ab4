import type { ServiceDefinition, UntypedServiceImplementation } from "@grpc/grpc-js";
import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "@turnout/client/protocol";
import { IssueLog } from "@turnout/client";
import type { Clock, Log, Store } from "@turnout/core";
import type { PeerRightsOf } from "../node-api/peer-rights.ts";
import type { Traffic } from "../node-api/traffic.ts";
import type { WatchCall } from "../node-api/watch-session.ts";
import { ImageRegistry } from "./image-registry.ts";
import { KpngSession, type KpngQuestion } from "./kpng-session.ts";

/** Full names of kpng's services. */
export const KPNG_SERVICES: readonly string[] = ["localv1.Sets", "globalv1.Sets"];

/** What kpng's services are served with. */
export interface KpngApiOptions {
  readonly store: Store;
  readonly onlyNode: string | undefined;
  /** Nodes, and the cluster, that are answered for at a time. */
  readonly imagesMax: number;
  readonly traffic: Traffic;
  readonly clock: Clock;
  readonly log: Log;
  /** Runs a stream if there is room for one more. */
  readonly admit: (call: WatchCall, run: () => Promise<void>) => Promise<void>;
}

/** A gRPC service, to be added to a server. */
export interface GrpcService {
  readonly definition: ServiceDefinition;
  readonly handlers: UntypedServiceImplementation;
}

const same = (bytes: Buffer): Buffer => bytes;
const method = {
  requestStream: true,
  responseStream: true,
  requestSerialize: same,
  requestDeserialize: same,
  responseSerialize: same,
  responseDeserialize: same,
};

/** kpng's two protocols, to be served at any number of doors. */
export interface KpngApi {
  /** Whole states that are held: of each node that is watched, and of the cluster. */
  readonly images: number;
  /** The services for one door. */
  services(rightsOf: PeerRightsOf): readonly GrpcService[];
  /** Say what of the issues was left out of the log. */
  close(): void;
}

/** Serve kpng's two protocols from a store; one set of images for all doors, which differ in rights. */
export function createKpngApi(options: KpngApiOptions): KpngApi {
  const { store, onlyNode, imagesMax, traffic, clock, log, admit } = options;
  // Not counted: these were found in the store's own tables as well.
  const issues = new IssueLog({ log, clock });
  const registry = new ImageRegistry(store, imagesMax, issues.report);
  const services = (rightsOf: PeerRightsOf): readonly GrpcService[] => {
    const service = (path: string, question: KpngQuestion): GrpcService => ({
      definition: { watch: { ...method, path } },
      handlers: {
        watch: (call: WatchCall) => {
          const rights = rightsOf(call.getAuthContext().sslPeerCertificate);
          void admit(call, () => new KpngSession(call, question, { registry, rights, onlyNode, traffic, log }).run());
        },
      },
    });
    return [service(LOCAL_WATCH_PATH, "node"), service(GLOBAL_WATCH_PATH, "cluster")];
  };
  return {
    services,
    close: () => issues.close(),
    get images() {
      return registry.size;
    },
  };
}
