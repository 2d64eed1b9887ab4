import { ProxyError, type Clock, type Log } from "@turnout/core";
import type { KubeClient } from "./kube-client.ts";
import { collect } from "./list-page.ts";
import { HTTP, refusalError, type Refusal } from "./refusal.ts";

/** The proxy that events are of. */
export interface EventSource {
  /** The Node that they are about. */
  readonly nodeName: string;
  /** Of the host; it tells the proxies of one Node apart. */
  readonly hostname: string;
}

/** What an event says. */
export interface NodeEvent {
  /** One word for programs, e.g. `Starting`. */
  readonly reason: string;
  /** One word: what the proxy does or did. */
  readonly action: string;
  /** For people; cut after a thousand characters, which is what the API takes. */
  readonly note: string;
  readonly type: "Normal" | "Warning";
}

/** What is needed to send events. */
export interface EventSender {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly log: Log;
}

/** Namespace of events about objects that have none. */
const NAMESPACE = "default";
const PATH = `/apis/events.k8s.io/v1/namespaces/${NAMESPACE}/events`;
const NOTE_MAX = 1_000;
/** As client-go's broadcaster has them. */
const TRIES_MAX = 12;
const PAUSE_MS = 10_000;
const IDLE_MS = 30_000;
const ANSWER_BYTES_MAX = 1024 * 1024;

/**
 * Make an event about a Node, from the controller that kube-proxy calls itself, so that what looks for its events finds ours.
 *
 * Units: `nowMs` since the epoch.
 * @source client-go v0.36.3 tools/events/event_recorder.go makeEvent
 */
export function nodeEvent({ nodeName, hostname }: EventSource, { reason, action, note, type }: NodeEvent, nowMs: number): object {
  const wholeMs = Math.floor(nowMs);
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    // Nanoseconds, as client-go names events.
    metadata: { name: `${nodeName}.${(BigInt(wholeMs) * 1_000_000n).toString(16)}`, namespace: NAMESPACE },
    // The API reads exactly six digits.
    eventTime: new Date(wholeMs).toISOString().replace("Z", "000Z"),
    reportingController: "kube-proxy",
    reportingInstance: `kube-proxy-${hostname}`,
    action,
    reason,
    regarding: { apiVersion: "v1", kind: "Node", name: nodeName },
    note: note.slice(0, NOTE_MAX),
    type,
  };
}

/**
 * Send an event, once; never rejects for what the server says or doesn't.
 *
 * Edges: a refusal is final, and one line; a server that is away is tried again for two minutes. Nothing waits for it.
 * @source client-go v0.36.3 tools/events/event_broadcaster.go attemptRecording
 */
export async function sendEvent(source: EventSource, event: NodeEvent, sender: EventSender, signal: AbortSignal): Promise<void> {
  const { client, clock, random, log } = sender;
  const body = nodeEvent(source, event, clock.nowMs());
  for (let triesLeft = TRIES_MAX - 1; ; triesLeft--) {
    const trouble = await send(client, body, signal);
    if (trouble === undefined || signal.aborted) return;
    if (triesLeft === 0 || trouble.isFinal) {
      return log.info(`the event ${event.reason} was not written; nothing depends on it`, { error: trouble.error.message });
    }
    await clock.sleep(Math.round(PAUSE_MS * (1 + random() / 4)), signal);
    if (signal.aborted) return;
  }
}

interface Trouble {
  readonly error: ProxyError;
  /** Asking again won't help. */
  readonly isFinal: boolean;
}

async function send(client: KubeClient, event: object, signal: AbortSignal): Promise<Trouble | undefined> {
  try {
    const answer = await client.ask({ path: PATH, body: event, idleMs: IDLE_MS }, signal);
    if (answer.kind === "unreached") return { error: answer.error, isFinal: false };
    if (answer.kind === "refused") return { error: refusalError(answer), isFinal: isFinal(answer) };
    await collect(answer.chunks, ANSWER_BYTES_MAX);
    return undefined;
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    return { error, isFinal: false };
  }
}

/** Credentials may come good, a busy or broken server may recover. */
function isFinal({ status }: Refusal): boolean {
  return status < HTTP.serverError && status !== HTTP.unauthorized && status !== HTTP.tooMany;
}
