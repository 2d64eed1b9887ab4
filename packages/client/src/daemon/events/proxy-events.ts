import { getSystemErrorMap } from "node:util";
import { serviceKeyOf, type IPFamily, type Issue, type ProxyError, type Refusal, type ServiceEventReason } from "@turnout/core";

/** One word for programs. */
export type EventReason =
  | "Starting"
  | "FailedToStartProxierHealthcheck"
  | "FailedToStartMetricServer"
  | "FailedToStartServiceHealthcheck"
  | "RulesChangedByOthers"
  | "ServiceProblem"
  | "RefusedByHost"
  | ServiceEventReason;

/** What events of a reason have in common. */
export interface EventKind {
  readonly type: "Normal" | "Warning";
  /** One word: what the proxy does or did. */
  readonly action: string;
  /** The kind of object that it is about. */
  readonly object: "Node" | "Service";
}

/**
 * All events that Turnout sends to an API server, by reason. Reasons, types, actions and objects are kube-proxy's, so that what looks for its events
 * finds ours; `RulesChangedByOthers` and those behind it are Turnout's own. The table of docs/operations.md is held to this one by a test.
 * @source kube-proxy cmd/kube-proxy/app/server.go Run and birthCry; pkg/proxy/healthcheck/service_health.go SyncServices
 */
export const PROXY_EVENTS: Readonly<Record<EventReason, EventKind>> = {
  Starting: { type: "Normal", action: "StartKubeProxy", object: "Node" },
  FailedToStartProxierHealthcheck: { type: "Warning", action: "StartKubeProxy", object: "Node" },
  FailedToStartMetricServer: { type: "Warning", action: "StartKubeProxy", object: "Node" },
  FailedToStartServiceHealthcheck: { type: "Warning", action: "Listen", object: "Service" },
  RulesChangedByOthers: { type: "Warning", action: "RepairRules", object: "Node" },
  ServiceProblem: { type: "Warning", action: "ReadService", object: "Service" },
  RefusedByHost: { type: "Warning", action: "ProgramService", object: "Service" },
  FamilyWithoutSourceRanges: { type: "Warning", action: "ReadSourceRanges", object: "Service" },
  AddressContested: { type: "Warning", action: "AssignAddress", object: "Service" },
};

/** Something of this proxy that people are to see at an object of the API. */
export interface ProxyEvent {
  readonly reason: EventReason;
  readonly type: EventKind["type"];
  readonly action: string;
  /** For people; the API takes 1,024 bytes. */
  readonly note: string;
  /** The Service that it is about; undefined: this Node. */
  readonly service?: { readonly namespace: string; readonly name: string };
  /** Of events about the same matter one a minute is sent; undefined: there is one matter for each reason and object. */
  readonly matter?: string;
  /** The proxies of all nodes send it, and it is one event of the API for each version of the Service and matter; absent: it is about this node. */
  readonly isOfCluster?: true;
}

/** A server of the proxy itself. */
export type OwnServer = "healthz" | "metrics";

/** A health check node port that can't be opened. */
export interface ClosedHealthPort {
  /** Of the Service, `namespace/name`. */
  readonly service: string;
  readonly port: number;
  readonly family: IPFamily;
  readonly error: ProxyError;
}

/** Tell of the start. kube-proxy's note is empty; this one says who it is. */
export const STARTING: ProxyEvent = eventOf("Starting", "Turnout is this node's service proxy");

/** Tell that a server of the proxy itself can't listen, in kube-proxy's words. Pure. */
export function ownServerEvent(server: OwnServer, error: ProxyError): ProxyEvent {
  const problem = goText(error, "tcp");
  if (server === "metrics") return eventOf("FailedToStartMetricServer", problem);
  const where = error.object ?? "its address";
  return eventOf("FailedToStartProxierHealthcheck", `healthz server failed: failed to start proxy healthz on ${where}: ${problem}`);
}

/** Tell that a health check node port can't be opened, in kube-proxy's words. Pure. */
export function closedHealthPortEvent(nodeName: string, { service, port, family, error }: ClosedHealthPort): ProxyEvent {
  const [namespace = "", name = ""] = service.split("/");
  const problem = goText(error, family === "IPv4" ? "tcp4" : "tcp6");
  const note = `node ${nodeName} failed to start healthcheck "${service}" on port ${port}: ${problem}`;
  // The families fail apart, each with its own reason.
  return { ...eventOf("FailedToStartServiceHealthcheck", note), service: { namespace, name }, matter: family };
}

/** What somebody did to our rules. */
export interface ReportedChange {
  readonly who: string;
  readonly objects: number;
  /** What was done to some of them. */
  readonly some: readonly string[];
}

/** Tell that somebody changed our rules, and that they are as they were. Pure. */
export function externalChangeEvent(family: IPFamily, { who, objects, some }: ReportedChange): ProxyEvent {
  const count = objects === 1 ? "1 object" : `${objects} objects`;
  // Last, because a long note is cut.
  const what = some.length === 0 ? "" : `; ${some.join(", ")}${objects > some.length ? ", …" : ""}`;
  const note = `Turnout's rules for ${family} were changed and are repaired (${count}): ${who}${what}`;
  // One command may change both families, and of one matter only the last event is sent.
  return { ...eventOf("RulesChangedByOthers", note), matter: family };
}

/** What reports call a Service, or a port of one. */
const SERVICE = /^Service (?:port )?([^/ ]+\/[^/: ]+)/;

/**
 * Make the events of a report about API objects: those that it asks for, and for every other report that concerns a Service `ServiceProblem`. All nodes
 * make the same ones. Pure.
 *
 * Edges: two reports of one kind (the text before the first colon, behind which are values) about one version of a Service are one event.
 */
export function issueEvents({ object, what, hint, events = [], service = SERVICE.exec(object)?.[1] }: Issue): readonly ProxyEvent[] {
  const asked = events.map(({ reason, service: regarding, note }) => clusterEvent(eventOf(reason, note), regarding, note));
  if (service === undefined || events.some((event) => event.service === service)) return asked;
  const about = object === `Service ${service}` ? "" : `${object}: `;
  const [kind = ""] = what.split(": ", 1);
  return [...asked, clusterEvent(eventOf("ServiceProblem", `${about}${what}; ${hint}`), service, `${object} ${kind}`)];
}

/**
 * Make an event for each Service of which the host refuses something. What the first node reports stands for all: with many nodes one host is rarely the
 * only one. Pure.
 */
export function refusalEvents(nodeName: string, refusals: readonly Refusal[]): ReadonlyMap<string, ProxyEvent> {
  const events = new Map<string, ProxyEvent>();
  for (const { rows, error } of refusals)
    for (const row of rows) {
      const service = serviceKeyOf(row);
      if (events.has(service)) continue;
      const note = `port ${row.slice(service.length + 1)} is not in force on node ${nodeName}, or only in part: ${error.message}; it is tried again by itself, see turnout status there`;
      events.set(service, clusterEvent(eventOf("RefusedByHost", note), service, ""));
    }
  return events;
}

function clusterEvent(event: ProxyEvent, service: string, matter: string): ProxyEvent {
  const [namespace = "", name = ""] = service.split("/");
  return { ...event, service: { namespace, name }, matter, isOfCluster: true };
}

function eventOf(reason: EventReason, note: string): ProxyEvent {
  const { type, action } = PROXY_EVENTS[reason];
  return { reason, type, action, note };
}

/** As Go's net package tells why it can't listen; other reasons in our words. */
function goText({ what, object, cause }: ProxyError, network: string): string {
  const code = cause instanceof Error ? (cause as NodeJS.ErrnoException).code : undefined;
  const system = getSystemErrorMap();
  // Where libuv has other words than Linux.
  const words = code === "EADDRNOTAVAIL" ? "cannot assign requested address" : [...system.values()].find(([name]) => name === code)?.[1];
  return words === undefined || object === undefined ? what : `listen ${network} ${object}: bind: ${words}`;
}
