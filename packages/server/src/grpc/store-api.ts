import type { Issue, Log, Store } from "@turnout/core";
import type { GrpcService } from "./grpc-server.ts";
import type { PeerRightsOf } from "./peer-rights.ts";
import type { Admit } from "./refuse.ts";
import type { Traffic } from "./traffic.ts";

/** What further protocols are served with. */
export interface StoreApiOptions {
  readonly store: Store;
  readonly onlyNode: string | undefined;
  /** Nodes, and the cluster, that are answered for at a time. */
  readonly imagesMax: number;
  readonly traffic: Traffic;
  readonly log: Log;
  /** Called with contested addresses. */
  readonly report: (issue: Issue) => void;
  /** Runs a stream if there is room for one more. */
  readonly admit: Admit;
}

/** Protocols next to the node-state API that are served from the same store, such as kpng's: to be served at any number of entry points. */
export interface StoreApi {
  /** Full names of the services. */
  readonly names: readonly string[];
  /** The FileDescriptorSet of their proto files: base64. */
  readonly descriptors: string;
  /** Whole states that are held: of each node that is watched, and of the cluster. */
  readonly images: number;
  /** The services for one entry point. */
  services(rightsOf: PeerRightsOf): readonly GrpcService[];
}
