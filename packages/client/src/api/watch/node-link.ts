import { systemClock } from "@turnout/core/process";
import {
  DEFAULT_SETTINGS,
  FAMILIES,
  isEqual,
  ProxyError,
  type Clock,
  type ErrorCode,
  type Feed,
  type IPFamily,
  type Log,
  type NodeSettings,
} from "@turnout/core";
import type { WatchResponse } from "../../gen/turnout/node/v1/node.ts";
import type { Eligibility } from "../eligibility.ts";
import { wireSettings } from "../wire/node-codec.ts";
import { PACKED_ROWS, type PackedReader } from "../wire/packed-rows.ts";
import { FAMILY_WORDS, notUnderstood } from "../wire/words.ts";
import { FamilyCursor } from "./family-cursor.ts";
import { NodeGate } from "./node-gate.ts";
import { NODE_WAIT_MS, NO_NODE_KNOWN } from "./node-wait.ts";
import { openNodeStream, type NodeStream } from "./node-stream.ts";
import { openOtherProtocol, type OtherProtocol } from "./other-protocol.ts";
import { ServerAddresses } from "./server-addresses.ts";
import { parseApiTarget, type TlsFiles } from "./target.ts";

/** Whom to ask, and for what. */
export interface NodeLinkOptions {
  /** `unix:///run/turnout/node.sock` or `tls://HOST:PORT`. */
  readonly target: string;
  /** For a target over TLS. */
  readonly tls?: TlsFiles | undefined;
  readonly nodeName: string;
  /** Flags and configuration of the process that programs; default kube-proxy's defaults. */
  readonly settings?: NodeSettings | undefined;
  /** Canonical; goes before the node's own addresses of its family, as the primary one. */
  readonly bindAddress?: string | undefined;
  /** Program and version, for the node-state server's log. */
  readonly version?: string | undefined;
  readonly clock?: Clock | undefined;
  readonly log?: Log | undefined;
  /** 0 up to 1; default Math.random. */
  readonly random?: (() => number) | undefined;
  /**
   * Let feeds reject when the node-state server refuses what is asked (no right to the node, another protocol) rather than try again
   * until it doesn't; default false, as a daemon wants it.
   */
  readonly failOnRefusal?: boolean | undefined;
  /**
   * Let feeds wait until the node-state server knows of the node what rules need, where it expects to: a process that programs does
   * better with the rules that stand than with new ones without node ports. Default false.
   */
  readonly awaitsNode?: boolean | undefined;
  /** Shared with the links of other nodes, so that what they are all told is read once; default none. */
  readonly packed?: PackedReader | undefined;
  /** Hears under the name `node-state API` what keeps it from being followed, and "" when it is; nothing before the first try ended. */
  readonly onHealth?: ((part: string, problem: string) => void) | undefined;
  /** Hears when the node's eligibility was told or changed, and with which family's change set; undefined: with neither's. */
  readonly onEligibility?: ((eligibility: Eligibility, family: IPFamily | undefined) => void) | undefined;
}

const RETRY_FIRST_MS = 100;
const RETRY_LAST_MS = 10_000;
/** A stream that lived so long was a good one. */
const GOOD_MS = 5_000;
const WELCOME_MS = 10_000;
/** What health is told about, as a source's part. */
const PART = "node-state API";
const SILENT: Log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

/**
 * A lasting connection to a node-state server: the node state of one node as feeds, one for each family.
 *
 * Edges: connects when first asked. A stream that breaks is opened again with growing, spread waits for ever, and goes on
 * from what was handed out last; meanwhile feeds just wait. A node-state server that was started again answers with full change sets. One
 * that does not know this API is asked for kpng's, and followed in what that can say.
 */
export class NodeLink {
  readonly #options: NodeLinkOptions;
  readonly #cursors: Readonly<Record<IPFamily, FamilyCursor>>;
  readonly #gates: Readonly<Record<IPFamily, NodeGate>> | undefined;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #server: ServerAddresses;
  readonly #closing = new AbortController();
  #running: Promise<void> | undefined;
  #stream: NodeStream | undefined;
  #kpng: OtherProtocol | undefined;
  #isWelcome = false;
  #hasSaidWaiting = false;
  #failures = 0;
  /** Code of the trouble that was told of last. */
  #said: ErrorCode | undefined;
  #eligibility: Eligibility = { isEligible: false, reason: "the node-state server has not said anything of this node yet" };

  /** @throws {ProxyError} `invalid_object` for a target that is none. */
  constructor(options: NodeLinkOptions) {
    const target = parseApiTarget(options.target, options.tls);
    this.#options = options;
    this.#clock = options.clock ?? systemClock();
    this.#log = options.log ?? SILENT;
    this.#server = new ServerAddresses(target, this.#log);
    const settings = options.settings ?? DEFAULT_SETTINGS;
    this.#gates = options.awaitsNode === true ? { IPv4: new NodeGate(), IPv6: new NodeGate() } : undefined;
    this.#cursors = { IPv4: new FamilyCursor("IPv4", settings, options.packed), IPv6: new FamilyCursor("IPv6", settings, options.packed) };
  }

  /** What the node-state server last said of the node. */
  get eligibility(): Eligibility {
    return this.#eligibility;
  }

  /** Follow one family; one consumer each. `next` rejects with `canceled`, or with `failOnRefusal` with what was refused. */
  feed(family: IPFamily): Feed {
    const feed: Feed = { next: (signal) => this.#next(family, signal) };
    const gate = this.#gates?.[family];
    return gate === undefined ? feed : { next: (signal) => gate.next(feed, signal, () => this.#sayWaiting()) };
  }

  /** Want the whole state of a family with the next change set: at once, or, if a change is asked for already, when there is one. */
  askFull(family: IPFamily): void {
    this.#cursors[family].forget();
    this.#kpng?.askFull(family);
  }

  /** Let go of the connection; feeds that wait are canceled. Resolves when it is gone. */
  async close(): Promise<void> {
    this.#closing.abort();
    await this.#running;
    this.#kpng?.close();
  }

  async #next(family: IPFamily, signal: AbortSignal): ReturnType<Feed["next"]> {
    const either = AbortSignal.any([signal, this.#closing.signal]);
    const next = this.#cursors[family].next(either);
    if (!either.aborted) this.#running ??= this.#run(this.#closing.signal);
    this.#askDue();
    return this.#server.without(await next);
  }

  /** Services matter more than what a Node object says: in the end they are followed without. */
  async #goOnWithout(node: string): Promise<void> {
    await this.#clock.sleep(NODE_WAIT_MS, this.#closing.signal);
    const waiting = FAMILIES.filter((family) => this.#gates?.[family].isOpen === false);
    if (this.#closing.signal.aborted || waiting.length === 0) return;
    for (const family of waiting) this.#gates?.[family].open();
    this.#log.warn(NO_NODE_KNOWN, { node });
  }

  #sayWaiting(): void {
    if (this.#hasSaidWaiting) return;
    this.#hasSaidWaiting = true;
    const node = this.#options.nodeName;
    this.#log.info("waiting for this node's Node object, rules stay as they are", { node });
    void this.#goOnWithout(node);
  }

  #askDue(): void {
    for (const family of FAMILIES) {
      const cursor = this.#cursors[family];
      if (!cursor.isDue) continue;
      const reported = this.#kpng?.pull(family);
      if (reported !== undefined) cursor.give(reported);
      else if (this.#isWelcome) this.#stream?.send({ request: { $case: "ask", value: cursor.ask() } });
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { random = Math.random, failOnRefusal = false } = this.#options;
    while (!signal.aborted) {
      // Rows that have been handed out may have taken an address that the name has only now.
      if (await this.#server.refresh()) for (const family of FAMILIES) this.askFull(family);
      const startedMs = this.#clock.nowMs();
      const reason = await this.#followAny(signal);
      if (signal.aborted) return;
      if (failOnRefusal && !reason.retryable) {
        this.#running = undefined;
        for (const family of FAMILIES) this.#cursors[family].fail(reason);
        return;
      }
      if (this.#clock.nowMs() - startedMs >= GOOD_MS) this.#failures = 0;
      this.#report(reason);
      const waitMs = Math.min(RETRY_LAST_MS, RETRY_FIRST_MS * 2 ** this.#failures) * (0.5 + random());
      this.#failures += 1;
      await this.#clock.sleep(waitMs, signal);
    }
  }

  /** As {@link NodeLink.#follow}, of kpng's protocols too: a node-state server without this API may have one of those. */
  async #followAny(signal: AbortSignal): Promise<ProxyError> {
    const reason = await this.#follow(signal);
    if (!ProxyError.is(reason, "host_unsupported") || signal.aborted) return reason;
    const [opened] = await Promise.allSettled([this.#kpng ?? this.#openKpng()]);
    // Without the package the server is refused for what it does not speak.
    if (opened.status === "rejected") {
      if (ProxyError.is(opened.reason, "tool_missing")) this.#log.debug("only the node-state API is tried", { error: opened.reason });
      else throw opened.reason;
      return reason;
    }
    this.#kpng = opened.value;
    const other = await this.#kpng.follow(signal);
    return ProxyError.is(other, "host_unsupported") ? reason : other;
  }

  #openKpng(): Promise<OtherProtocol> {
    const { target, tls, nodeName, settings = DEFAULT_SETTINGS, bindAddress } = this.#options;
    const onNews = (): void => {
      this.#failures = 0;
      this.#said = undefined;
      // They don't say whether a Node object is to come.
      for (const family of FAMILIES) this.#gates?.[family].open();
      this.#noteEligibility(this.#kpng?.eligibility);
      this.#askDue();
    };
    return openOtherProtocol({ target, tls, nodeName, settings, bindAddress, clock: this.#clock, log: this.#log, onNews });
  }

  #noteEligibility(eligibility: Eligibility | undefined, family?: IPFamily): void {
    if (eligibility === undefined) return;
    const isNews = !isEqual(eligibility, this.#eligibility);
    this.#eligibility = eligibility;
    if (isNews || family !== undefined) this.#options.onEligibility?.(eligibility, family);
  }

  /** One stream from start to end; resolves to why it ended. */
  async #follow(signal: AbortSignal): Promise<ProxyError> {
    const { target, tls, nodeName, settings = DEFAULT_SETTINGS, bindAddress = "", version = "unknown" } = this.#options;
    const [opened] = await Promise.allSettled([openNodeStream(target, (response) => this.#hear(response), tls)]);
    if (opened.status === "rejected") return ProxyError.from(opened.reason, "feed_lost", "no stream can be opened", { object: target });
    const stream = opened.value;
    this.#stream = stream;
    const over = new AbortController();
    signal.addEventListener("abort", stream.cancel, { once: true });
    if (signal.aborted) stream.cancel();
    stream.send({
      request: {
        $case: "hello",
        value: { nodeName, settings: wireSettings(settings), bindAddress, version, capabilities: [PACKED_ROWS] },
      },
    });
    const silent = this.#expectWelcome(stream, over.signal);
    const reason = await stream.ended;
    const wasWelcome = this.#isWelcome;
    over.abort();
    await silent;
    signal.removeEventListener("abort", stream.cancel);
    this.#isWelcome = false;
    this.#stream = undefined;
    for (const family of FAMILIES) this.#cursors[family].reset();
    if (wasWelcome || !ProxyError.is(reason, "canceled")) return reason;
    return new ProxyError("timed_out", `nothing that speaks the node-state API answered within ${WELCOME_MS / 1_000} s`, {
      object: target,
    });
  }

  async #expectWelcome(stream: NodeStream, over: AbortSignal): Promise<void> {
    await this.#clock.sleep(WELCOME_MS, over);
    if (!over.aborted && !this.#isWelcome) stream.cancel();
  }

  #hear({ response }: WatchResponse): void {
    if (response?.$case === "welcome") {
      if (this.#isWelcome) throw notUnderstood("a second welcome", response.value.version);
      this.#isWelcome = true;
      this.#kpng?.rest();
      this.#log.info("following the node-state API", { target: this.#options.target, version: response.value.version });
      this.#said = undefined;
      this.#options.onHealth?.(PART, "");
      this.#askDue();
      return;
    }
    if (response?.$case !== "changeSet" || !this.#isWelcome) throw notUnderstood("a message", response?.$case ?? "");
    const delivery = this.#cursors[FAMILY_WORDS.read(response.value.family)].receive(response.value);
    if (delivery === undefined) return;
    this.#failures = 0;
    this.#gates?.[delivery.changes.family].heard(delivery);
    this.#noteEligibility(delivery.eligibility, delivery.changes.family);
    this.#askDue();
  }

  /** An outage is told once; only when it becomes one of another kind it is told again. */
  #report(reason: ProxyError): void {
    const isNews = reason.code !== this.#said;
    this.#said = reason.code;
    this.#options.onHealth?.(PART, reason.message);
    if (isNews) this.#log.warn("the node-state API is away, rules stay as they are; trying again", { error: reason });
    else this.#log.debug("the node-state API is still away", { error: reason });
  }
}
