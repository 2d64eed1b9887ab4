import { hash, randomUUID } from "node:crypto";
import type { ProxyEvent } from "@turnout/client/daemon";
import { ProxyError, type Clock, type ServiceIdentity } from "@turnout/core";
import type { KubeClient } from "../kube-client.ts";
import { collect } from "../list-page.ts";
import { HTTP, refusalError, type Refusal } from "../refusal.ts";

/** The proxy that events are of. */
export interface EventSource {
  /** The Node that they are about, unless they are about a Service. */
  readonly nodeName: string;
  /** Of the host; it tells the proxies of one Node apart. */
  readonly hostname: string;
}

/** What is needed to send one event. */
export interface EventSender {
  readonly client: KubeClient;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
}

/** Namespace of events about objects that have none. */
const NAMESPACE = "default";
/** What the API takes. @source kubernetes pkg/apis/core/validation/events.go NoteLengthLimit, in bytes */
const NOTE_BYTES_MAX = 1_024;
/** A DNS subdomain. @source kubernetes apimachinery NameIsDNSSubdomain */
const NAME = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
/** As many hexadecimal digits as a time has. */
const NAME_DIGITS = 16;
/** As client-go's broadcaster has them. */
const TRIES_MAX = 12;
const PAUSE_MS = 10_000;
const IDLE_MS = 30_000;
const ANSWER_BYTES_MAX = 1024 * 1024;

/**
 * Make an event from the controller that kube-proxy calls itself, so that what looks for its events finds ours.
 *
 * Units: `atNs` since the epoch; it makes the name, so no two events have the same. The name of an event of the cluster is made of the Service's UID and
 * version, of reason and matter, so all nodes make one object. It has the Service's UID, by which `kubectl describe` looks; kube-proxy's have none.
 * @source client-go v0.36.3 tools/events/event_recorder.go makeEvent; tools/record/util GenerateEventName
 */
export function eventObject(
  { nodeName, hostname }: EventSource,
  event: ProxyEvent,
  atNs: bigint,
  identity?: ServiceIdentity,
): Readonly<Record<string, unknown>> {
  const { reason, type, action, note, service, matter = "" } = event;
  const uid = identity === undefined || identity.uid === "" ? {} : { uid: identity.uid };
  const object = service === undefined ? { kind: "Node", name: nodeName } : { kind: "Service", ...service, ...uid };
  const said = identity && [identity.uid, identity.version, reason, matter].join(" ");
  const own = said === undefined ? atNs.toString(16) : hash("sha256", said).slice(0, NAME_DIGITS);
  const name = `${object.name}.${own}`;
  const namespace = service?.namespace ?? NAMESPACE;
  return {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: NAME.test(name) ? name : randomUUID(), namespace },
    // The API reads exactly six digits.
    eventTime: new Date(Number(atNs / 1_000_000n)).toISOString().replace("Z", "000Z"),
    reportingController: "kube-proxy",
    reportingInstance: `kube-proxy-${hostname}`,
    action,
    reason,
    regarding: { apiVersion: "v1", ...object },
    note: firstBytes(note, NOTE_BYTES_MAX),
    type,
  };
}

/** Cut a text without cutting a character. */
function firstBytes(text: string, bytesMax: number): string {
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytesMax), { stream: true });
}

/**
 * Send what {@link eventObject} made, once. Never rejects for what the server says or doesn't.
 *
 * Edges: a refusal is final, but that there is an event of this name is none: another node has written it (`isKnown`); a server that is away is tried again
 * for two minutes.
 * @source client-go v0.36.3 tools/events/event_broadcaster.go attemptRecording
 */
export async function sendEvent(
  event: Readonly<Record<string, unknown>>,
  namespace: string | undefined,
  { client, clock, random }: EventSender,
  signal: AbortSignal,
): Promise<Sent> {
  const path = `/apis/events.k8s.io/v1/namespaces/${encodeURIComponent(namespace ?? NAMESPACE)}/events`;
  for (let triesLeft = TRIES_MAX - 1; ; triesLeft--) {
    const sent = await send(client, path, event, signal);
    if (sent.error === undefined || signal.aborted) return sent;
    if (triesLeft === 0 || sent.isFinal === true) return sent;
    await clock.sleep(Math.round(PAUSE_MS * (1 + random() / 4)), signal);
    if (signal.aborted) return sent;
  }
}

/** What came of sending an event. */
export interface Sent {
  /** Why it was not written. */
  readonly error?: ProxyError;
  /** Asking again won't help. */
  readonly isFinal?: boolean;
  /** It was there already. */
  readonly isKnown?: true;
}

async function send(client: KubeClient, path: string, event: object, signal: AbortSignal): Promise<Sent> {
  try {
    const answer = await client.ask({ path, body: event, idleMs: IDLE_MS }, signal);
    if (answer.kind === "unreached") return { error: answer.error, isFinal: false };
    if (answer.kind === "refused" && answer.status === HTTP.conflict) return { isKnown: true };
    if (answer.kind === "refused") return { error: refusalError(answer), isFinal: isFinal(answer) };
    await collect(answer.chunks, ANSWER_BYTES_MAX);
    return {};
  } catch (error) {
    if (!ProxyError.is(error)) throw error;
    return { error, isFinal: false };
  }
}

/** Credentials may come good, a busy or broken server may recover. */
function isFinal({ status }: Refusal): boolean {
  return status < HTTP.serverError && status !== HTTP.unauthorized && status !== HTTP.tooMany;
}
