import { FAMILIES, fitRow, hostPort, openDataplane, planRows, probeModule, ProxyError, SyncLoop, walkPacket } from "@turnout/core";
import type {
  AskedPacket,
  Backend,
  Capabilities,
  ChangeSet,
  ExplainedState,
  Fate,
  FateEndpoint,
  IPFamily,
  Issue,
  KernelObject,
  Rendering,
  ServicePort,
  SyncObserver,
  Walk,
} from "@turnout/core";
import { UPLINK } from "@turnout/conformance";
import type { FakeHost, HostAddress, Packet, Trace } from "@turnout/conformance";
import { createRandom } from "@turnout/core/testing";
import type { BackendRun } from "./backends.ts";
import type { Cluster } from "./cluster.ts";

/** What became of a packet in the host's memory, tried often enough to see all of a few endpoints. */
export interface Tried {
  readonly is: Trace["is"];
  /** `ip:port` and whether the source was rewritten, sorted; empty unless it was forwarded. */
  readonly endpoints: readonly string[];
  /** The way of one try, a line each. */
  readonly path: readonly string[];
}

/** What one backend makes of a cluster, and of a packet. */
export interface Trial {
  readonly backend: string;
  /** One for each family that it serves. */
  readonly renderings: readonly Rendering[];
  /** What the rules say of the packet; absent: no packet, or a family that it doesn't serve. */
  readonly walk?: Walk;
  /** What the backend's own rules did with it; absent where the host in memory refused them. */
  readonly tried?: Tried;
  /** Whether both are the same. */
  readonly isAsRuled?: boolean;
  /** Reported while rows were fitted to the backend, or written to the host. */
  readonly complaints: readonly string[];
}

const TRIES = 200;
/** Of so many endpoints one is missed in one of a thousand trials. */
const ALL_MET_MAX = 20;
const ENDPOINTS_SHOWN = 6;
const HOUR_MS = 3_600_000;

/**
 * Have a backend serve a cluster on its host in memory, by the sync loop of the product, and send the packet through it.
 *
 * Edges: what the host refuses is among the complaints.
 * @throws {ProxyError} what the backend's probe fails with
 */
export async function tryBackend(
  { module, createFakeHost }: BackendRun,
  cluster: Cluster,
  packet: AskedPacket | undefined,
): Promise<Trial> {
  const host = createFakeHost();
  host.setAddresses(FAMILIES.flatMap((family) => cluster.hostAddresses[family].map((ip) => linkOf(ip, family))));
  const { signal } = new AbortController();
  const options = module.parseOptions({});
  const { facts, capabilities, variants } = await probeModule(module, options, host.world, signal);
  const dataplane = await openDataplane(module, options, host.world, signal);
  const renderings: Rendering[] = [];
  const complaints: string[] = [];
  let refusal: ProxyError | undefined;
  for (const family of FAMILIES) {
    if (capabilities[family] !== true) continue;
    const backend = dataplane.family(family);
    const changes = cluster.changes[family];
    const { node } = changes;
    if (node === undefined) throw new Error("a full change set has the node");
    const rows = fitted(changes.set, capabilities, complaints);
    const { objects, text } = planRows(backend, rows, { node, host: facts }, host.world.clock.nowMs());
    renderings.push({ backend: module.name, family, objects, plan: text });
    refusal ??= await serve({ backend, changes, facts, capabilities, host, complaints }, signal);
  }
  const trial = { backend: module.name, renderings, complaints: [...new Set(complaints)] };
  if (packet === undefined || capabilities[packet.family] !== true) return trial;
  const { node, set } = cluster.changes[packet.family];
  if (node === undefined) throw new Error("a full change set has the node");
  const state: ExplainedState = {
    node,
    rows: fitted(set, capabilities, []),
    hostAddresses: cluster.hostAddresses[packet.family],
    nodePortAddressesDefault: module.nodePortAddressesDefault ?? [],
    capabilities,
    variants,
    issues: cluster.issues,
    hidden: cluster.hidden,
    objects: cluster.objects,
  };
  const walk = walkPacket(state, packet);
  if (refusal !== undefined) return { ...trial, walk };
  const tried = send(host, packet);
  return { ...trial, walk, tried, isAsRuled: isAsRuled(walk.fate, tried) };
}

function linkOf(ip: string, family: IPFamily): HostAddress {
  const isLoopback = ip === "::1" || ip.startsWith("127.");
  const full = family === "IPv4" ? 32 : 128;
  return { ip, prefixLength: isLoopback ? (family === "IPv4" ? 8 : 128) : full, link: isLoopback ? "lo" : UPLINK };
}

function fitted(rows: readonly ServicePort[], capabilities: Capabilities, complaints: string[]): readonly ServicePort[] {
  return rows.flatMap((row) => {
    const { row: fit, issues } = fitRow(row, capabilities);
    complaints.push(...issues.map(issueText));
    return fit ?? [];
  });
}

/** Write a report about an object for people. Pure. */
export function issueText({ object, what, hint }: Issue): string {
  return `${object}: ${what}: ${hint}`;
}

interface Serving {
  readonly backend: Backend<unknown, KernelObject, unknown>;
  readonly changes: ChangeSet;
  readonly facts: unknown;
  readonly capabilities: Capabilities;
  readonly host: FakeHost;
  readonly complaints: string[];
}

/** Bring rows into force; gives what the host refused of them. */
async function serve(
  { backend, changes, facts, capabilities, host, complaints }: Serving,
  signal: AbortSignal,
): Promise<ProxyError | undefined> {
  const refused = (what: string, fields: Readonly<Record<string, unknown>> = {}): void =>
    void complaints.push(
      `${what}${Object.values(fields)
        .map((value) => ` ${JSON.stringify(value)}`)
        .join("")}`,
    );
  const loop = new SyncLoop({
    backend,
    feed: { next: () => Promise.resolve(changes) },
    family: changes.family,
    host: facts,
    clock: host.world.clock,
    log: { debug: ignore, info: ignore, warn: refused, error: refused },
    observer: SILENT,
    minIntervalMs: 0,
    maxIntervalMs: HOUR_MS,
    retryMs: HOUR_MS,
    capabilities,
  });
  try {
    await loop.once(signal);
    return undefined;
  } catch (error) {
    if (!(error instanceof ProxyError)) throw error;
    complaints.push(error.message);
    return error;
  }
}

const ignore = (): void => undefined;
const SILENT: SyncObserver = { queued: ignore, synced: ignore, failed: ignore, flowsForgotten: ignore, quarantined: ignore };

function send(host: FakeHost, { device, ...packet }: AskedPacket): Tried {
  const random = createRandom(1);
  const sent: Packet = { ...packet, link: device };
  const traces = Array.from({ length: TRIES }, () => host.trace(sent, random));
  const [first] = traces;
  if (first === undefined) throw new ProxyError("invalid_object", "nothing was tried");
  const endpoints = new Set(
    traces.flatMap(({ endpoint, masquerade }) => (endpoint === undefined ? [] : [endpointText(endpoint, masquerade === true)])),
  );
  return { is: first.is, endpoints: [...endpoints].toSorted(), path: first.path };
}

/** Whether as many tries show what the rules say; of many endpoints not each is met. */
function isAsRuled(fate: Fate, { is, endpoints }: Tried): boolean {
  if (fate.is !== "forward" || is !== "forward") return fate.is === is;
  const ruled = new Set(fateEndpoints(fate.endpoints));
  return endpoints.every((one) => ruled.has(one)) && (endpoints.length === ruled.size || ruled.size > ALL_MET_MAX);
}

function fateEndpoints(endpoints: readonly FateEndpoint[]): readonly string[] {
  return endpoints.map(({ ip, port, masquerade }) => endpointText(hostPort(ip, port), masquerade)).toSorted();
}

function endpointText(endpoint: string, masquerade: boolean): string {
  return masquerade ? `${endpoint} (sees the node)` : endpoint;
}

/** Say what the rules make of a packet, in the words of {@link triedText}. Pure. */
export function fateText(fate: Fate): string {
  if (fate.is !== "forward") return FATES[fate.is];
  return forwardText(fateEndpoints(fate.endpoints));
}

/** Say what became of a packet. Pure. */
export function triedText({ is, endpoints }: Pick<Tried, "is" | "endpoints">): string {
  return is === "forward" ? forwardText(endpoints) : FATES[is];
}

const FATES = { reject: "refused", drop: "dropped", pass: "left alone" } as const;

function forwardText(endpoints: readonly string[]): string {
  const more = endpoints.length - ENDPOINTS_SHOWN;
  return `to ${endpoints.slice(0, ENDPOINTS_SHOWN).join(" or ")}${more > 0 ? ` or ${more} more` : ""}`;
}
