import type { IPFamily } from "../model/api-objects.ts";
import type { NodeContext, ServicePort } from "../model/rows.ts";
import type { ProxyError } from "../model/errors.ts";
import type { Capabilities, Variants } from "./capabilities.ts";
import type { OptionKinds } from "./options.ts";
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
  /** What sort of thing it is, in the tool's word, e.g. `chain`; without a space. `sysctl` is a kernel parameter: `--init-only` applies these alone. */
  readonly kind: string;
  /** Which one of its kind, e.g. a chain's name. */
  readonly key: string;
  /** What it should be; in the same form from `render` and `observe`. */
  readonly value: Plain;
}

/** What a probe found. */
export interface HostReport<H> {
  /** What rendering may know of the host; plain data. */
  readonly facts: H;
  /** Tool and kernel versions, for people. */
  readonly versions: Readonly<Record<string, string>>;
  /** Why the backend can't run here; empty: it can. */
  readonly problems: readonly ProxyError[];
  /** What is wrong on this host although the backend can run: logged at the start, and a finding of `turnout doctor`. */
  readonly warnings?: readonly ProxyError[];
  /** What this host lacks of the module's capabilities, and why: texts count; true counts for nothing, and is refused where the module says no. */
  readonly capabilities?: Readonly<Partial<Capabilities>>;
  /** What is otherwise on this host than the module says. */
  readonly variants?: Readonly<Partial<Variants>>;
}

/** What rendering may look at besides the row. */
export interface Context<H> {
  /** The node that is served, and its settings. */
  readonly node: NodeContext;
  /** What the probe, or `watch`, said of the host last. */
  readonly host: H;
  /** All rows together have more than 1,000 endpoints: what is only for people, such as comments in rules, costs much then. Absent: they have not. */
  readonly hasManyEndpoints?: boolean;
}

/** An unwanted object of which the host still holds something for a reason: connections that end by themselves, packets under way, others who use it. */
export interface Lingering<K> {
  /** What the host holds of it now. */
  readonly object: K;
  /** When to see to it again, in ms from now: then it is in {@link Delta.lingering}, if it is still unwanted. */
  readonly afterMs: number;
}

/** Something that lingers and is due to be seen to. */
export interface Due<K> {
  /** What the host holds of it, as the backend told it last. */
  readonly object: K;
  /** Since when it has lingered, ms since the epoch; after a restart, since this process first saw it. */
  readonly sinceMs: number;
}

/** What the host holds of ours, keyed by {@link objectId}, in render's canonical form. */
export interface Observed<K> {
  /** But for what lingers. */
  readonly objects: ReadonlyMap<string, K>;
  /** It is due with the next plan. Empty where what lingers can't be told from the rest: that is among `objects` then, and is removed once more. */
  readonly lingering: readonly K[];
}

/** One object to bring into force. */
export interface Put<K> {
  /** What is in force under its identity; absent: nothing. */
  readonly before?: K;
  /** What is to be in force. */
  readonly after: K;
  /** What the host still holds under its identity since that was unwanted, as the backend told it; absent: nothing lingers. Never with `before`. */
  readonly lingering?: K;
}

/**
 * The difference between what the host holds and what it should.
 *
 * Shape: where an earlier turn deferred something, what changed since and what was deferred come by turns, else everything is in the order in which
 * it changed. A backend that defers does well to keep to this order among objects of a kind: then a newer change does not wait for all that was deferred.
 */
export interface Delta<K> {
  /** What is to be made or changed. */
  readonly put: readonly Put<K>[];
  /** What is to go, as the host holds it. */
  readonly remove: readonly K[];
  /** What lingers and is due: remove it, or say again that it lingers. What isn't due yet is not here. */
  readonly lingering: readonly Due<K>[];
  /** When this was worked out, ms since the epoch. */
  readonly nowMs: number;
}

/** Ordered steps. */
export interface Plan<S> {
  /** The first is carried out first. */
  readonly steps: readonly S[];
}

/** The time that an application should keep to, see {@link Backend.apply}. */
export interface Turn {
  /** By the world's clock, in ms since the epoch. */
  readonly untilMs: number;
}

/**
 * What apply has to say when it did not throw.
 *
 * Shape: every object of the difference that was planned is done (in force, or gone) but for those named here; each is named once at most.
 */
export interface Outcome<K> {
  /**
   * Objects that the host refused, by {@link objectId}, and what it said. That is ordinary: ipvs refuses a real server without a route, a Windows
   * host fails per object, a BPF map is full. They concern the rows that own them and nobody else: they rest, and are planned again when they
   * change or after a wait that doubles. Throw only when no object is to blame, or when nobody can tell what the host holds.
   */
  readonly failed?: ReadonlyMap<string, ProxyError>;
  /**
   * Objects not tried yet, by {@link objectId}, because the time of this turn was up: the host holds of them what it held before. They count
   * neither as in force nor as failed; a plan for them, and for what has changed since, comes at once.
   */
  readonly deferred?: ReadonlySet<string>;
  /** Objects that were to be removed, or were due, of which the host still holds something. The core remembers them, and since when they linger. */
  readonly lingering?: readonly Lingering<K>[];
}

/** What is ours may be touched: a suspicion. */
export interface Drift {
  readonly kind: "drift";
  /** Who did what, as far as the host tells, for people: `nft (pid 812) changed table ip turnout`. */
  readonly what: string;
  /**
   * All that was done: what the host holds now of these objects, by {@link objectId}; nothing else of ours was touched. Absent: anything may have
   * been done, so everything is compared. Otherwise the difference is planned at once without comparing, and where that fails everything is
   * compared. So it may be told of something that is only likely, as long as a plan that rests on a wrong guess fails.
   */
  readonly left?: LeftObjects;
}

/** What the host still holds of one object of ours, worked out of what it held (undefined: nothing) before somebody touched it. Pure. */
export type WhatIsLeft = (held: KernelObject | undefined) => KernelObject | undefined;

/** A part of the host that was looked at after somebody touched it. */
export interface SeenPart {
  /** Whether an object would be in this part. Pure. */
  covers(object: KernelObject): boolean;
  /** All that was found in it, by {@link objectId}, in render's canonical form. */
  readonly objects: ReadonlyMap<string, KernelObject>;
  /** Whether we have written nothing since; otherwise everything is compared. */
  isCurrent(): boolean;
}

/** What is left of objects, by {@link objectId}; or what was seen in a part of the host; `nothing`: of none of ours anything is left. */
export type LeftObjects = ReadonlyMap<string, WhatIsLeft> | SeenPart | "nothing";

/** Something changed under us. Of a {@link Drift} people are told where there was a difference. */
export type HostEvent<H> = { readonly kind: "facts"; readonly facts: H } | Drift;

/** Rules that a service proxy which was there before left in force. */
export interface Leftover {
  /** For people, e.g. `table ip kube-proxy`. */
  readonly what: string;
  /** Whose it is; absent: both make it alike, as with the chains that are adopted. */
  readonly by?: "turnout" | "kube-proxy";
  /** Whether packets still go by it; absent: they do. Where no backend was asked for, one takes over what is live. */
  readonly isLive?: boolean;
  /** Options of this backend with which it adopts just this, as {@link BackendModule.parseOptions} takes them; absent: any. */
  readonly options?: Readonly<Record<string, Plain>>;
  /**
   * Why nobody can tell whether there is anything: a place, such as one variant of a tool, that can't be looked into, while others can. It is not
   * removed, and not live. Absent: it was seen.
   */
  readonly unseen?: ProxyError;
  /**
   * Take it away and nothing else. `mayWait`: there is time to wait until connections have ended that need it; default true.
   * @throws {ProxyError} what the host failed with, or what stays because connections need it.
   */
  remove(signal: AbortSignal, mayWait?: boolean): Promise<void>;
}

/** One number that a backend counts for operators. */
export interface BackendMetric {
  /** As Prometheus has it, units last: kube-proxy's name where its dashboards have one. */
  readonly name: string;
  /** One line for people. */
  readonly help: string;
  /** A counter only grows while the process lives. */
  readonly kind: "counter" | "gauge";
  /** It is about the host, and both families tell the same: told once, without `ip_family`. Default: it is about the family. */
  readonly isOfHost?: true;
  /** Besides `ip_family`, which is added. The same names whenever this metric is told. */
  readonly labels?: Readonly<Record<string, string>>;
  /** In the units of its name. */
  readonly value: number;
}

/**
 * What a dataplane can count of one object:
 * - `connections`: new connections, and flows of UDP, that it sent to an endpoint;
 * - `datagrams`: datagrams that it sent to an endpoint one by one, without a flow;
 * - `bytesIn`, `bytesOut`: from clients to endpoints and back;
 * - `rejects`: connections or packets that were refused, for want of endpoints;
 * - `dropsWithoutLocal`: those that were dropped because the policy is Local and no endpoint is on this node;
 * - `dropsOutsideRanges`: those that were dropped because their source is in none of the source ranges.
 */
export type CountName = "connections" | "datagrams" | "bytesIn" | "bytesOut" | "rejects" | "dropsWithoutLocal" | "dropsOutsideRanges";

/** What was counted, as whole numbers. What is never counted in this dataplane is absent; 0 may be absent too. */
export type Counts = Readonly<Partial<Record<CountName, number>>>;

/** How an object is called in the tool's words, for people. */
export interface ObjectWords {
  /** E.g. `the element 10.96.0.1 . tcp . 80 of map services in table ip turnout`. */
  readonly what: string;
  /** A command that shows what the host holds of it; absent: there is none. */
  readonly show?: string;
  /** Of one that the host holds otherwise: how, as a sentence, e.g. `the kernel sends 10.96.0.10:80 to A, should: B`. Absent: values are compared. */
  readonly differs?: string;
  /** Of one that the host holds otherwise: what `what` names is gone, and the rest of it is of no use. */
  readonly isGone?: true;
  /**
   * The one that the host holds is whole, as we make it with other settings or in another version; `differs` is then what settings need not explain. Of
   * one that the host lacks: other settings make none, and packets go as well without it.
   */
  readonly isOfOtherSettings?: boolean;
}

/** One family of a dataplane. Only probe, observe, lookup, apply, forgetFlows and watch touch anything. */
export interface Backend<H, K extends KernelObject, S> {
  /** What exists whatever the services are. Pure. */
  skeleton(context: Context<H>): readonly K[];
  /**
   * What one row needs. Pure and cheap.
   *
   * Edges: rows are rendered again when a field of the node, or of host facts that are a plain object, changes that some row's render has read
   * (of `context.host.addresses` it is `addresses`), or `hasManyEndpoints` where it was read; the skeleton is then made again in any case. So read facts from the context, and nowhere else.
   */
  render(row: ServicePort, context: Context<H>): readonly K[];
  /**
   * Lay out what `render` made so that as much of it as can be stays where `held` of the same identity has it: packets pick any place of a list, so a pool
   * that loses an endpoint fills the gap with its last one, and is not written anew behind it. Pure; absent: objects are wanted as they are rendered.
   *
   * Edges: packets are treated alike by what comes back and by `wanted`. Of a `held` that differs from `wanted` in its layout only, it is equal to `held`.
   */
  keepPlaces?(wanted: K, held: K): K;
  /** Whether rows that the ledger doesn't know may need this object, too, e.g. a chain that rows of one shape share. Pure; absent: never. */
  isShared?(object: K): boolean;
  /** Whether packets go by the rules without this object of the skeleton, e.g. a kernel parameter. Pure; absent: they don't without any. */
  isOptional?(object: K): boolean;
  /** Put the difference in an order the kernel accepts. Pure. */
  plan(delta: Delta<K>): Plan<S>;
  /** The plan as text for people. Pure. */
  explain?(plan: Plan<S>): string;
  /** Read what the host holds of ours; undefined when that can't be told. */
  observe(signal: AbortSignal): Promise<Observed<K> | undefined>;
  /**
   * Read what the host holds under the identities of these objects, by {@link objectId}; somebody waits for the answer. It says
   * of each what {@link Backend.observe} would. Absent: everything is observed.
   *
   * Edges: it may tell, too, of what is a part of one of these and would be asked for with it, if it were wanted, such as a server too many in a pool
   * or a rule too many about an address: people who ask about a packet are told of it.
   */
  lookup?(objects: readonly K[], signal: AbortSignal): Promise<ReadonlyMap<string, K>>;
  /**
   * Whether {@link Backend.lookup} costs only what is asked for, however much the host holds: no more than some tens of microseconds for each object.
   * Then the core looks up all that is in force, some objects at a time, in at most a thousandth of the time, round and round; and everything is
   * compared once an hour, not once each sync period. Absent: it doesn't.
   */
  readonly looksUpCheaply?: boolean;
  /** Call an object by the tool's words, and where the host holds another one (`held`) say how that differs. Pure; absent: its kind and key have to do. */
  describe?(object: K, held?: K): ObjectWords;
  /**
   * Whether packets that come in by a device ("": that this host sends) come to what rows need by this object of the skeleton, e.g. by a jump from a chain
   * of the kernel's: of what differs, people are told of it first. Pure; absent: none is one.
   */
  isWayIn?(object: K, device: string): boolean;
  /**
   * Say whom this dataplane leaves out, for people who ask about one packet: of packets that come in by a device of this name, why they are not served;
   * of "", the programs and pods whose sockets are translated, who of them is served. Undefined: all are, or nobody can tell. Absent: nobody is left out.
   */
  unserved?(device: string, context: Context<H>): string | undefined;
  /**
   * Carry a plan out, as atomically as the kernel allows. What single objects fail with is in the outcome, and nothing exceptional.
   *
   * Edges: a backend whose plans may take long looks at `turn` between objects: once `untilMs` has passed it stops, and names the rest in
   * {@link Outcome.deferred}. In each turn it does at least one thing, however late it is: where nothing was done the sync has failed. Absent,
   * as in cleaning up, there is no end. One whose plans are a few transactions needs none of this.
   * @throws {ProxyError} the host's state is unknown then. Whatever else is thrown, here or elsewhere, is a defect and ends the process, except
   * for what Node says of a failed system call.
   */
  apply(plan: Plan<S>, signal: AbortSignal, turn?: Turn): Promise<Outcome<K>>;
  /**
   * Make the kernel forget connections; off the sync path. Resolves to how many.
   *
   * Edges: once `signal` aborts no more may be chosen: the rules are about to change, and what they then let in must stay.
   */
  forgetFlows?(flows: readonly FlowFilter[], signal: AbortSignal): Promise<number>;
  /**
   * Whether {@link Backend.watch} tells of whatever somebody else does to our objects. Absent: it doesn't, and everything is compared
   * ({@link Backend.observe}) once each sync period, or as rarely as that takes a two-hundredth of the time (where repairs on notice are off, once each sync period); otherwise once an hour. It is asked each time
   * that everything is compared, so a getter may answer by what was found on the host.
   */
  readonly reportsDrift?: boolean;
  /**
   * Tell of changed host facts, and of what somebody else did to our objects. Goes on until the signal aborts.
   *
   * Edges: it begins with the facts as they are then, since they may have changed after the probe: it is called when the first sync is done, which
   * waits for the API server, and again when it has ended or failed. Listen before you read them, so that no change is lost in between. Facts
   * that are equal to those the core knows change nothing.
   */
  watch?(signal: AbortSignal): AsyncIterable<HostEvent<H>>;
  /** Numbers of its own, from its start on; asked for when somebody reads the metrics, so cheap. */
  metrics?(): readonly BackendMetric[] | Promise<readonly BackendMetric[]>;
  /**
   * What the dataplane counted for each object since the host has it, by {@link objectId}; what was never met may be left out. The core knows whose
   * an object is, so count where one row owns the object, and no count in two objects. Asked for when somebody reads, a few times a minute at most.
   *
   * Shape: `isKnown` tells whether rows own an object of an identity, where what is read doesn't say which kind of object it is.
   * Edges: a count that is smaller than before has begun anew. Called only where the module's {@link BackendModule.countingOptions} were passed.
   */
  counts?(signal: AbortSignal, isKnown: (object: string) => boolean): Promise<ReadonlyMap<string, Counts>>;
  /** What it has a finite amount of, for rows of this family. Asked with each change set; always the same ones in the same order. Default: nothing. */
  capacities?(): readonly Capacity[];
  /** Remove everything of ours; by default what observe finds is removed. */
  cleanup?(signal: AbortSignal): Promise<void>;
  /**
   * Find what service proxies that were here before left in force in this dataplane, ours and kube-proxy's. Reads only; by default there is none.
   * `isInUse`: this backend serves from now on, so what it has, and what it adopts, is no leftover.
   * @throws {ProxyError} `tool_missing` where nobody can look.
   */
  leftovers?(isInUse: boolean, signal: AbortSignal): Promise<readonly Leftover[]>;
}

/**
 * Something of which a backend has a finite amount, such as elements of a kernel's table. The core shares it by namespace: a backend is never
 * asked for rows that need more. Leave space for what is written before what it replaces goes.
 */
export interface Capacity {
  /** What it counts, as a plural: `destinations`. */
  readonly name: string;
  /** How many there may be. */
  readonly max: number;
  /** What makes it larger, as a verb: `raise the option max-services`. */
  readonly hint: string;
  /** How many a row takes at most. Pure. */
  readonly sizeOf: (row: ServicePort) => number;
  /**
   * What a row takes, by content, where the backend keeps equal contents of several rows once; their sizes are not more than `sizeOf` together. Asked
   * for only if the sizes of all rows are more than `max`. Default: rows share nothing. Pure.
   */
  readonly contentsOf?: (row: ServicePort) => readonly Content[];
}

/** A part of a row that other rows may have too, such as a list of endpoints. */
export interface Content {
  /** Equal for equal contents. */
  readonly key: string;
  /** How many it takes. */
  readonly size: number;
}

/** What a module keeps on one host: whatever both families share is made once, here. */
export interface Dataplane<H = unknown, K extends KernelObject = KernelObject, S = unknown> {
  /** Make one family's backend; called once for each family in use. Touches nothing yet. @throws {ProxyError} why this family can't be served. */
  family(family: IPFamily): Backend<H, K, S>;
  /** Let go of all families' handles. In-kernel state stays; a process-resident backend drains until `signal` aborts. */
  close(signal: AbortSignal): Promise<void>;
}

/**
 * A backend package's default export.
 *
 * Shape: options O, host facts H, kernel objects K, steps of a plan S, and the world W that the backend touches.
 */
export interface BackendModule<O = unknown, H = unknown, K extends KernelObject = KernelObject, S = unknown, W extends World = World> {
  /** How people ask for it and logs call it, e.g. `nft`. */
  readonly name: string;
  /** Which contract it is written for; what may change within one is in docs/contract.md. */
  readonly contract: 2;
  /** `process`: the dataplane lives and dies with us, so there is no --once and no adoption. */
  readonly residence: "kernel" | "process";
  /** What it can do on some host; what is left out has its default. */
  readonly capabilities: Readonly<Partial<Capabilities>>;
  /** How it behaves where service proxies differ; what is left out has its default. */
  readonly variants?: Readonly<Partial<Variants>>;
  /** Which node addresses answer node ports where the settings don't say: CIDRs, `primary`, `localhost`, `all`. Default: all. */
  readonly nodePortAddressesDefault?: readonly string[];
  /** kube-proxy's mode word, e.g. `nftables`: which section of kube-proxy's configuration counts. Default: the module's name. */
  readonly proxyMode?: string;
  /**
   * The most that it should carry of one Service: endpoints times addresses, summed over the Service's ports. Of a larger Service some endpoints are
   * left out, because it would keep the changes of all others waiting. Default 100,000; no more than 500,000 count.
   */
  readonly serviceEntriesMax?: number;
  /** Options with which its backends have {@link Backend.counts}, `{}` where they always do; put beside those that were given. Default: it can't count. */
  readonly countingOptions?: Readonly<Record<string, Plain>>;
  /**
   * The Linux capabilities that it needs, in this process or in the programs that it starts, each with what it is needed for: `{ CAP_NET_ADMIN:
   * "change the network" }`. The process around it gives up all others before {@link open} is called; {} asks for none. What the host doesn't
   * grant is told to people, and the probe says whether the backend can go without. Default: nobody knows, so nothing is given up.
   */
  readonly rights?: Rights;
  /**
   * Make what this backend touches of what every backend may touch; its `close` is called when it is not needed any more. Touches nothing yet.
   * Tests and the conformance kit make none: they pass a fake W. Default: W is the {@link World} as it is.
   */
  createWorld?(base: World): W & { close?(): void };
  /** Its options by name, each with its kind, so that a flag or a file's field becomes such a value. Default: each is `any`, and the last flag of a name counts. */
  readonly options?: OptionKinds;
  /** Check options given by name. Pure. @throws {ProxyError} `invalid_object` naming the option. */
  parseOptions(raw: Readonly<Record<string, Plain>>): O;
  /** Look at tools, kernel, rights and host facts. Reads only. */
  probe(options: O, world: W, signal: AbortSignal): Promise<HostReport<H>>;
  /** Make the dataplane of this host. Touches nothing yet. */
  open(options: O, world: W, signal: AbortSignal): Promise<Dataplane<H, K, S>>;
}

/** Linux capabilities by their names in capabilities(7), e.g. `CAP_NET_ADMIN`, each with what it is needed for, as a verb: `change the network`. */
export type Rights = Readonly<Record<`CAP_${string}`, string>>;

/** The identity of an object as one string. */
export function objectId(object: KernelObject): string {
  return `${object.kind} ${object.key}`;
}
