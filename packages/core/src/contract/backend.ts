import type { IPFamily } from "../model/api-objects.ts";
import type { NodeContext, ServicePort } from "../model/rows.ts";
import type { ProxyError } from "../model/errors.ts";
import type { FlowFilter, World } from "./world.ts";

/** JSON-like data. */
export type Plain = string | number | boolean | readonly Plain[] | { readonly [key: string]: Plain };

/**
 * Something a backend keeps on the host.
 *
 * Shape: identity is kind + key, equality is deep equality of `value`; a value depends on one row or on the
 * skeleton only. An object's grain is what the kernel replaces in one step.
 * Edges: ids given by the kernel belong in neither key nor value.
 */
export interface KernelObject {
  readonly kind: string;
  readonly key: string;
  readonly value: Plain;
}

/**
 * What a service proxy may be asked for beyond plain forwarding.
 *
 * Edges: what the core leaves out of the rows, see {@link fitRow}. For the rest the oracle expects of a backend without `drop` that it
 * rejects (all but UDP: not to answer a datagram takes nothing), without `clientAddress` that every endpoint sees the node and interfaces
 * tell no pods, without `hairpin` that a pod which reaches itself is treated like any other, and without `hostOrigin` that the host's own
 * packets pass.
 */
export type Capability =
  "IPv4" | "IPv6" | "TCP" | "UDP" | "SCTP" | "sessionAffinity" | "sourceRanges" | "clientAddress" | "hairpin" | "hostOrigin" | "drop";

/** Behaviours in which today's proxiers legitimately differ; a backend declares its choice, the oracle takes it as input. */
export interface Variants {
  /** A port nobody defined on a known cluster IP. */
  readonly undefinedClusterIPPort: "reject" | "pass";
  /** An address inside a ServiceCIDR that no Service has. */
  readonly unallocatedClusterIP: "drop" | "pass";
  /** Which node addresses refuse a node port that has no endpoint to go to, or drop it. */
  readonly nodePortRejectScope: "nodePortAddresses" | "anyLocalAddress";
  /** Whether packets that the host itself sends to external and load-balancer IPs elsewhere are refused (or dropped, by policy) too; others always are. */
  readonly rejectFromHost: boolean;
  /** A source outside the ranges of a load-balancer IP that has no endpoints. */
  readonly blockedWithoutEndpoints: "drop" | "reject";
  /** What one affinity entry is for. */
  readonly affinityScope: "row" | "address";
  /** Whether node ports answer the host itself on 127.0.0.1, where the node-port addresses hold it; no kernel can on ::1. */
  readonly nodePortsOnLoopback: "IPv4" | "never";
}

/** What a probe found. `problems` non-empty: the backend can't run here. */
export interface HostReport<H> {
  readonly facts: H;
  /** Tool and kernel versions, for people. */
  readonly versions: Readonly<Record<string, string>>;
  readonly problems: readonly ProxyError[];
}

/** What rendering may look at besides the row. */
export interface Context<H> {
  readonly node: NodeContext;
  readonly host: H;
}

/** An unwanted object that is still on the host for a reason, and since when. */
export interface Lingering<K> {
  readonly object: K;
  readonly sinceMs: number;
}

/** What the host holds of ours, keyed by {@link objectId}, in render's canonical form. */
export interface Observed<K> {
  readonly objects: ReadonlyMap<string, K>;
  readonly lingering: readonly Lingering<K>[];
}

/** One object to bring into force; `before` is what the host holds under its identity. */
export interface Put<K> {
  readonly before?: K;
  readonly after: K;
}

/** The difference between what the host holds and what it should. */
export interface Delta<K> {
  readonly put: readonly Put<K>[];
  readonly remove: readonly K[];
  readonly lingering: readonly Lingering<K>[];
  readonly nowMs: number;
}

/** Ordered steps; `after` is carried out later, in a transaction of its own. */
export interface Plan<S> {
  readonly steps: readonly S[];
  readonly after?: readonly S[];
}

/** What apply has to say when it did not throw. */
export interface Outcome<K> {
  /** Objects that could not be brought into force, by {@link objectId}; everything else is. They concern the rows that own them and nobody else. */
  readonly failed?: ReadonlyMap<string, ProxyError>;
  /** Everything that lingers now; absent: nothing does. */
  readonly lingering?: readonly Lingering<K>[];
  /** Ask for another sync after this long, e.g. to finish off what lingers. */
  readonly revisitAfterMs?: number;
}

/**
 * Something changed under us.
 *
 * Edges: `drift` is a suspicion: what is ours may be touched. Everything is compared then, and only a difference is told, with `what`.
 */
export type HostEvent<H> = { readonly kind: "facts"; readonly facts: H } | { readonly kind: "drift"; readonly what: string };

/** Rules that a service proxy which was there before left in force. */
export interface Leftover {
  /** For people, e.g. `table ip kube-proxy`. */
  readonly what: string;
  /** Take it away and nothing else. @throws {ProxyError} what the host failed with. */
  remove(signal: AbortSignal): Promise<void>;
}

/** One number that a backend counts for operators. */
export interface BackendMetric {
  /** As Prometheus has it, units last: kube-proxy's name where its dashboards have one. */
  readonly name: string;
  readonly help: string;
  readonly kind: "counter" | "gauge";
  /** Besides `ip_family`, which is added. The same names whenever this metric is told. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** One family's dataplane on one host. Only probe, observe, apply, forgetFlows and watch touch anything. */
export interface Backend<H, K extends KernelObject, S> {
  /** What exists whatever the services are. Pure. */
  skeleton(context: Context<H>): readonly K[];
  /** What one row needs. Pure and cheap; a new context renders all rows again. */
  render(row: ServicePort, context: Context<H>): readonly K[];
  /** Whether rows that the ledger doesn't know may need this object, too, e.g. a chain that rows of one shape share. Pure; absent: never. */
  isShared?(object: K): boolean;
  /** Put the difference in an order the kernel accepts. Pure. */
  plan(delta: Delta<K>): Plan<S>;
  /** The plan as text for people. Pure. */
  explain?(plan: Plan<S>): string;
  /** Read what the host holds of ours; undefined when that can't be told. */
  observe(signal: AbortSignal): Promise<Observed<K> | undefined>;
  /**
   * Carry a plan out, as atomically as the kernel allows.
   * @throws {ProxyError} the host's state is unknown then. Whatever else is thrown, here or elsewhere, is a defect and ends the process, except
   * for what Node says of a failed system call.
   */
  apply(plan: Plan<S>, signal: AbortSignal): Promise<Outcome<K>>;
  /**
   * Make the kernel forget connections; off the sync path. Resolves to how many.
   *
   * Edges: once `signal` aborts no more may be chosen: the rules are about to change, and what they then let in must stay.
   */
  forgetFlows?(flows: readonly FlowFilter[], signal: AbortSignal): Promise<number>;
  /**
   * Whether {@link Backend.watch} tells of whatever somebody else does to our objects. Absent: it doesn't, and everything is compared
   * ({@link Backend.observe}) once each sync period, or as rarely as that takes a tenth of the time; otherwise once an hour.
   */
  readonly tellsDrift?: boolean;
  /** Host facts changed, or somebody touched our objects. Goes on until the signal aborts. */
  watch?(signal: AbortSignal): AsyncIterable<HostEvent<H>>;
  /** Numbers of its own, from its start on; asked for when somebody reads the metrics, so cheap. */
  metrics?(): readonly BackendMetric[];
  /** Remove everything of ours; by default what observe finds is removed. */
  cleanup?(signal: AbortSignal): Promise<void>;
  /**
   * Find what service proxies that were here before left in force in this dataplane, ours and kube-proxy's. Reads only; by default there is none.
   * `isInUse`: this backend serves from now on, so what it has, and what it adopts, is no leftover.
   * @throws {ProxyError} `tool_missing` where nobody can look.
   */
  leftovers?(isInUse: boolean, signal: AbortSignal): Promise<readonly Leftover[]>;
  /** Let go of handles. In-kernel state stays; a process-resident backend drains. */
  close(signal: AbortSignal): Promise<void>;
}

/** A backend package's default export. */
export interface BackendModule<O = unknown, H = unknown, K extends KernelObject = KernelObject, S = unknown> {
  readonly name: string;
  readonly contract: 1;
  /** `process`: the dataplane lives and dies with us, so there is no --once and no adoption. */
  readonly residence: "kernel" | "process";
  /** A string says why not. */
  readonly capabilities: Readonly<Record<Capability, true | string>>;
  readonly variants: Variants;
  /**
   * The most that it should carry of one Service: endpoints times addresses, summed over the Service's ports. A larger Service is left out, because
   * it would keep the changes of all others waiting. Default {@link SERVICE_ENTRIES_MAX}.
   */
  readonly serviceEntriesMax?: number;
  /** Check options given by name. Pure. @throws {ProxyError} `invalid_object` naming the option. */
  parseOptions(raw: Readonly<Record<string, Plain>>): O;
  /** Look at tools, kernel, rights and host facts. Reads only. */
  probe(options: O, world: World, signal: AbortSignal): Promise<HostReport<H>>;
  /** Make the backend for one family. Touches nothing yet. */
  open(options: O, family: IPFamily, world: World, signal: AbortSignal): Promise<Backend<H, K, S>>;
}

/** The identity of an object as one string. */
export function objectId(object: KernelObject): string {
  return `${object.kind} ${object.key}`;
}
