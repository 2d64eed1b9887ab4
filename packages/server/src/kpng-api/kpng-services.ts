import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "@turnout/client/protocol";
import type { Issue, Log, Store } from "@turnout/core";
import { watchService, type GrpcService } from "../grpc/grpc-server.ts";
import type { PeerRightsOf } from "../grpc/peer-rights.ts";
import type { Traffic } from "../grpc/traffic.ts";
import type { Admit } from "../grpc/refuse.ts";
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
  readonly log: Log;
  /** Hears of contested addresses. */
  readonly report: (issue: Issue) => void;
  /** Runs a stream if there is room for one more. */
  readonly admit: Admit;
}

/** kpng's two protocols, to be served at any number of doors. */
export interface KpngApi {
  /** Whole states that are held: of each node that is watched, and of the cluster. */
  readonly images: number;
  /** The services for one door. */
  services(rightsOf: PeerRightsOf): readonly GrpcService[];
}

/** Serve kpng's two protocols from a store; one set of images for all doors, which differ in rights. */
export function createKpngApi(options: KpngApiOptions): KpngApi {
  const { store, onlyNode, imagesMax, traffic, log, report, admit } = options;
  const registry = new ImageRegistry(store, imagesMax, report);
  const services = (rightsOf: PeerRightsOf): readonly GrpcService[] => {
    const service = (path: string, question: KpngQuestion): GrpcService =>
      watchService(path, rightsOf, (call, rights) =>
        admit(call, rights, (slot) => new KpngSession(call, question, { registry, rights, slot, onlyNode, traffic, log }).run()),
      );
    return [service(LOCAL_WATCH_PATH, "node"), service(GLOBAL_WATCH_PATH, "cluster")];
  };
  return {
    services,
    get images() {
      return registry.size;
    },
  };
}
