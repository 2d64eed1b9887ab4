import type { NodeEventQueue } from "./event-queue.ts";
import { sendEvent, type EventSender, type EventSource, type NodeEvent } from "./node-events.ts";

/** Whose start is told of. */
export interface StartedProxy extends EventSource {
  /** What is told of it later. */
  readonly later?: NodeEventQueue;
}

/**
 * The event with which kube-proxy begins: the same reason, action and controller, so that what looks for it finds it. The note says who it is;
 * kube-proxy's is empty.
 * @source kube-proxy cmd/kube-proxy/app/server.go birthCry
 */
const STARTING: NodeEvent = {
  action: "StartKubeProxy",
  reason: "Starting",
  note: "Turnout is this node's service proxy",
  type: "Normal",
};

/** Send the event of the start, then what is to be told later, until `signal` aborts. Never rejects for what the server says or doesn't. */
export async function tellEvents(proxy: StartedProxy, sender: EventSender, signal: AbortSignal): Promise<void> {
  await Promise.all([sendEvent(proxy, STARTING, sender, signal), proxy.later?.run(proxy, sender, signal)]);
}
