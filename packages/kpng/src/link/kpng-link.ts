import { FAMILIES, NodeView, OBJECT_KINDS, ProxyError, Store, type ChangeSet, type IPFamily } from "@turnout/core";
import { GlobalWatchReq } from "../gen/kpng/globalv1/globalv1.ts";
import { WatchReq } from "../gen/kpng/localv1/localv1.ts";
import { eligibilityOf, IssueLog, type Eligibility } from "@turnout/client";
import { openByteStream, type OtherProtocol, type OtherProtocolOptions } from "@turnout/client/protocol";
import { KpngObjects } from "./kpng-objects.ts";
import { OpCollector } from "./op-collector.ts";
import { GLOBAL_WATCH_PATH, LOCAL_WATCH_PATH } from "./paths.ts";
import { RemovalDelay } from "./removal-delay.ts";
import { SCOPE_ZONE } from "./scopes.ts";

/** kpng's protocols, the one that says more first. */
export type KpngProtocol = "globalv1" | "localv1";

/** What the protocols can't say, in a few words for the log; docs/kpng.md has it all. */
const LOST: Readonly<Record<KpngProtocol, string>> = {
  globalv1: "terminating endpoints, node hints, ages of Services, node addresses and pod CIDRs, service ranges, drains",
  localv1:
    "all but the endpoints the node-state server chose for this node, ages of Services, node addresses and pod CIDRs, service ranges, drains",
};
const FIRST_OP_MS = 10_000;
/** grpc-go drops a client that pings more often than every 5 minutes. @source grpc-go keepalive.EnforcementPolicy.MinTime */
const KEEPALIVE_MS = 330_000;

/** What one protocol has told so far; outlives its streams. */
interface Reported {
  readonly protocol: KpngProtocol;
  readonly store: Store;
  readonly issues: IssueLog;
  readonly ops: OpCollector;
  readonly objects: KpngObjects;
  readonly removals: RemovalDelay;
  readonly views: Readonly<Record<IPFamily, NodeView>>;
}

/**
 * A node-state server that speaks kpng's protocols: a store of what it says, and one node's views of that.
 *
 * Edges: neither a Reset nor a stream that breaks takes anything away; what is not told again goes when the node-state server told as much as before, or
 * is quiet.
 */
export class KpngLink implements OtherProtocol {
  readonly #options: OtherProtocolOptions;
  #reported: Reported | undefined;
  /** What there is comes from here. */
  #isActive = false;

  constructor(options: OtherProtocolOptions) {
    this.#options = options;
  }

  /** Whether load balancers should send the node traffic, as far as kpng says. */
  get eligibility(): Eligibility {
    if (this.#reported === undefined) return eligibilityOf(undefined);
    return eligibilityOf(this.#reported.store.node(this.#options.nodeName));
  }

  /** Follow until the stream ends; resolves to why: `host_unsupported` when neither protocol is there. */
  async follow(signal: AbortSignal): Promise<ProxyError> {
    const reason = await this.#followWith("globalv1", signal);
    if (!ProxyError.is(reason, "host_unsupported") || signal.aborted) return reason;
    return await this.#followWith("localv1", signal);
  }

  /** What changed in a family since the last call; the first is full. */
  pull(family: IPFamily): ChangeSet | undefined {
    return this.#isActive ? this.#reported?.views[family].pull() : undefined;
  }

  /** Want everything of a family with the next change set. */
  askFull(family: IPFamily): void {
    this.#reported?.views[family].askFull();
  }

  /** The node-state server speaks something better now. */
  rest(): void {
    this.#isActive = false;
    for (const family of FAMILIES) this.askFull(family);
  }

  /** Let go of what was told. */
  close(): void {
    this.#isActive = false;
    this.#reported?.removals.stop();
    if (this.#reported !== undefined) for (const family of FAMILIES) this.#reported.views[family].close();
    this.#reported?.issues.close();
    this.#reported = undefined;
  }

  async #followWith(protocol: KpngProtocol, signal: AbortSignal): Promise<ProxyError> {
    const { target, tls, clock } = this.#options;
    const heard = new AbortController();
    const hear = (bytes: Buffer): void => {
      if (!heard.signal.aborted) {
        this.#enter(protocol);
        heard.abort();
      }
      if (this.#hear(bytes)) stream.send(this.#request(protocol));
    };
    const path = protocol === "globalv1" ? GLOBAL_WATCH_PATH : LOCAL_WATCH_PATH;
    const [opened] = await Promise.allSettled([openByteStream(target, { path, tls, keepaliveMs: KEEPALIVE_MS, onMessage: hear })]);
    if (opened.status === "rejected") return ProxyError.from(opened.reason, "feed_lost", "no stream can be opened", { object: target });
    const stream = opened.value;
    signal.addEventListener("abort", stream.cancel, { once: true });
    if (signal.aborted) stream.cancel();
    stream.send(this.#request(protocol));
    const over = new AbortController();
    const giveUp = async (either: AbortSignal): Promise<void> => {
      await clock.sleep(FIRST_OP_MS, either);
      if (!either.aborted) stream.cancel();
    };
    const silent = giveUp(AbortSignal.any([over.signal, heard.signal]));
    const reason = await stream.ended;
    over.abort();
    this.#reported?.removals.stop();
    await silent;
    signal.removeEventListener("abort", stream.cancel);
    if (heard.signal.aborted || signal.aborted || !ProxyError.is(reason, "canceled")) return reason;
    return new ProxyError("timed_out", `kpng's ${protocol} did not begin within ${FIRST_OP_MS / 1_000} s`, { object: target });
  }

  #request(protocol: KpngProtocol): Uint8Array {
    if (protocol === "globalv1") return GlobalWatchReq.encode({}).finish();
    return WatchReq.encode({ NodeName: this.#options.nodeName }).finish();
  }

  /** A stream speaks: what it says is the whole state, from its first op on. */
  #enter(protocol: KpngProtocol): void {
    const { log, target } = this.#options;
    if (this.#reported?.protocol !== protocol) {
      this.close();
      this.#reported = this.#begin(protocol);
    }
    if (!this.#isActive) {
      log.warn(`the node-state server speaks kpng's ${protocol} and no turnout.node.v1; some of what Services say is lost`, {
        target,
        lost: LOST[protocol],
      });
    } else log.info(`following kpng's ${protocol} again`, { target });
    this.#isActive = true;
    this.#reported?.ops.restart();
  }

  #begin(protocol: KpngProtocol): Reported {
    const { log, clock, nodeName, settings, bindAddress } = this.#options;
    const issues = new IssueLog({ log, clock });
    const { report } = issues;
    const store = new Store({ report });
    const viewOf = (family: IPFamily): NodeView =>
      new NodeView(store, { nodeName, family, settings, report, ...(bindAddress === undefined ? {} : { bindAddress }) });
    if (protocol === "localv1") {
      // The node-state server knows the node, or it would not have an answer.
      const labels = { "topology.kubernetes.io/zone": SCOPE_ZONE };
      store.upsert("Node", { metadata: { name: nodeName, labels } });
    }
    const ops = new OpCollector();
    const objects = new KpngObjects(store, nodeName, report);
    const onRelease = (): void => {
      objects.apply(ops.release());
      this.#options.onNews();
    };
    return {
      protocol,
      store,
      issues,
      ops,
      objects,
      removals: new RemovalDelay({ clock, log, missing: () => ops.missing, onRelease }),
      views: { IPv4: viewOf("IPv4"), IPv6: viewOf("IPv6") },
    };
  }

  /** Tells whether it was a Sync, for which another request is due. */
  #hear(bytes: Buffer): boolean {
    const reported = this.#reported;
    reported?.removals.heard();
    const news = reported?.ops.receive(bytes);
    if (reported === undefined || news === undefined) return false;
    reported.objects.apply(news);
    reported.removals.synced();
    for (const kind of OBJECT_KINDS) reported.store.markSynced(kind);
    this.#options.onNews();
    return true;
  }
}
