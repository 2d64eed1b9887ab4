import { WATCH_PATH } from "@turnout/client/protocol";
import type { Clock, Log } from "@turnout/core";
import { watchService, type GrpcService } from "../grpc/grpc-server.ts";
import type { PeerRightsOf } from "../grpc/peer-rights.ts";
import type { Admit } from "../grpc/refuse.ts";
import type { Traffic } from "../grpc/traffic.ts";
import { Semaphore } from "../grpc/semaphore.ts";
import type { NodeStateProvider } from "./node-state-provider.ts";
import { PartBuffers } from "./part-buffers.ts";
import { RowBytes } from "./row-bytes.ts";
import type { ServerLimits } from "./server-limits.ts";
import { ViewRegistry } from "./view-registry.ts";
import { WatchSession } from "./watch-session.ts";

/** What the node-state API is served with. */
export interface NodeStateApiOptions {
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
export interface NodeStateApi {
  /** Nodes times settings that are answered, those kept for whoever comes back included. */
  readonly questions: number;
  readonly rowsEncoded: number;
  /** The services for one door. */
  services(rightsOf: PeerRightsOf): readonly GrpcService[];
  close(): void;
}

/** Full names of its services. */
export const NODE_STATE_SERVICES: readonly string[] = [WATCH_PATH.slice(1, WATCH_PATH.lastIndexOf("/"))];
/** Clients that are told everything at a time, and how long one of them may hold up the next. */
const FIRST_STATES_MAX = 16;
const FIRST_STATE_MS = 2_000;

/** Serve the node-state API; one set of views for all doors, which differ in rights. */
export function createNodeStateApi(options: NodeStateApiOptions): NodeStateApi {
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
