import {
  processMetrics,
  registerHeard,
  registerIssues,
  registerNotInForce,
  registerRestClient,
  registerSource,
  type MetricSet,
  type NotInForce,
  type Reply,
  type RestClientMetrics,
} from "@turnout/client/daemon";
import { type ClockReading, OBJECT_KINDS, type ObjectKind, type Store } from "@turnout/core";
import type { ServerStats } from "@turnout/server/serve";
import type { NodeStateCondition } from "./node-state-health.ts";

/** Where a node-state server's metrics are read from. */
export interface NodeStateReadings {
  readonly stats: () => ServerStats;
  readonly condition: () => NodeStateCondition;
  readonly notInForce: () => NotInForce;
  /** Undefined for a relay, which holds no objects. */
  readonly store: Store | undefined;
}

/** The metrics of a process that serves node states. */
export class NodeStateMetrics {
  readonly #set: MetricSet = processMetrics();
  readonly #countIssue: (object: string) => void;
  readonly #changes = new Map<ObjectKind, number>();

  /** Note that the API server said something of a kind of objects. */
  readonly heard: (kind: ObjectKind) => void;
  /** Hears of each request to the API server. */
  readonly restClient: RestClientMetrics;

  constructor(clock: ClockReading) {
    this.heard = registerHeard(this.#set, clock);
    this.restClient = registerRestClient(this.#set, clock);
    this.#countIssue = registerIssues(this.#set);
  }

  /** Count one API object that came or went. */
  objectChanged(kind: ObjectKind): void {
    this.#changes.set(kind, (this.#changes.get(kind) ?? 0) + 1);
  }

  /** Count one report about an API object; `object` is e.g. `Service shop/cart`. */
  objectIssue(object: string): void {
    this.#countIssue(object);
  }

  /** Say where everything else is read from; once. */
  watch({ stats, condition, notInForce, store }: NodeStateReadings): void {
    const one = (type: "gauge" | "counter", name: string, help: string, read: (now: ServerStats) => number): void =>
      this.#set.computed(type, `turnout_api_${name}`, help, [], () => [[{}, read(stats())]]);
    one("gauge", "watchers", "Watch streams that have said what they want", ({ streams }) => streams);
    one("gauge", "silent_streams", "Watch streams that have not said yet what they want", ({ silentStreams }) => silentStreams);
    one("gauge", "views", "Nodes times settings that are answered", ({ questions }) => questions);
    one("gauge", "kpng_views", "Nodes, and the cluster, of which kpng's protocols are watched", ({ kpngImages }) => kpngImages);
    one("gauge", "listening", "1 while everybody can connect to every address", ({ listenProblem }) => (listenProblem === "" ? 1 : 0));
    one("counter", "change_sets_total", "Change sets sent", ({ changeSets }) => changeSets);
    one("counter", "full_states_total", "Change sets sent that were whole states", ({ fullStates }) => fullStates);
    one("counter", "operations_total", "Rows set and deleted in the change sets sent", ({ operations }) => operations);
    one("counter", "sent_bytes_total", "Bytes of messages sent", ({ bytes }) => bytes);
    one("counter", "encoded_rows_total", "Rows encoded; one for many watchers counts once", ({ rowsEncoded }) => rowsEncoded);
    this.#set.computed("counter", "turnout_api_refused_total", "Streams ended with an error, by its gRPC name", ["code"], () =>
      [...stats().refused].map(([code, count]) => [{ code }, count] as const),
    );
    this.#set.computed("gauge", "turnout_source_complete", "1 once the source has said what there is", [], () => [
      [{}, condition().isComplete ? 1 : 0],
    ]);
    registerSource(this.#set, () => condition().sources);
    registerNotInForce(this.#set, notInForce);
    if (store === undefined) return;
    this.#set.computed("gauge", "turnout_store_objects", "API objects held", ["kind"], () =>
      OBJECT_KINDS.map((kind) => [{ kind }, store.sizes[kind]] as const),
    );
    this.#set.computed("counter", "turnout_object_changes_total", "API objects that came, changed or went", ["kind"], () =>
      OBJECT_KINDS.map((kind) => [{ kind }, this.#changes.get(kind) ?? 0] as const),
    );
  }

  /** What a scrape is answered with. */
  reply(): Promise<Reply> {
    return this.#set.reply();
  }

  /** Stop measuring. */
  close(): void {
    this.#set.close();
  }
}
