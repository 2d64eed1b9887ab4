import type { EndpointSlice, Issue, Node, ObjectKind, Service, ServiceCIDR, ServiceIdentity } from "../model/api-objects.ts";
import { OBJECT_KINDS } from "../model/api-objects.ts";
import { isEqual, withEqual } from "../model/equal.ts";
import { namespacedName } from "../model/names.ts";
import type { IndexedRange } from "../model/range-index.ts";
import type { AllowedAddresses } from "../intake/allowed-addresses.ts";
import { readEndpointSlice, serviceOfSlice } from "../intake/endpoint-slice.ts";
import type { SliceReading } from "../intake/endpoint-slice.ts";
import { Findings, isObject, objectField, objectName, shown, textField } from "../intake/fields.ts";
import type { ObjectName, Raw } from "../intake/fields.ts";
import { readNode, readServiceCIDR } from "../intake/node.ts";
import { readBoundedService } from "../intake/object-bounds.ts";
import { lastingNode } from "../policy/lasting-node.ts";
import { HealthPortConflicts } from "./health-port-conflicts.ts";
import { SourceAddresses } from "./source-addresses.ts";

/** What changed in a store: a Service (itself or its slices), a Node, which addresses Nodes, their pods and the source have, or the service ranges. */
export type StoreChange =
  | { readonly kind: "service"; readonly key: string; readonly triggeredMs: number | undefined }
  | { readonly kind: "node"; readonly key: string }
  | { readonly kind: "nodeAddresses" }
  | { readonly kind: "serviceCIDRs" }
  | { readonly kind: "synced" };

const INTERNED_MAX = 50_000;
/** Nodes that are gone and remembered: whose proxies still run. Nodes come and go for years. */
const LASTING_NODES_MAX = 1_000;
const NO_SLICES: ReadonlyMap<string, EndpointSlice> = new Map();

/** Where a slice is. */
interface SlicePlace {
  /** `namespace/name` of its Service. */
  readonly owner: string;
  /** All slices of that. */
  readonly slices: Map<string, EndpointSlice>;
}

/** How a store treats what it hears. */
export interface StoreOptions {
  /** Hear of bad objects. */
  readonly report?: (issue: Issue) => void;
  /** Keep each endpoint's {@link SliceEndpoint.podName}; default false: at 100,000 endpoints that is several MB. */
  readonly keepsPodNames?: boolean;
  /** Which addresses Services may have besides their cluster IPs; default: any. */
  readonly allowedAddresses?: AllowedAddresses | undefined;
}

/**
 * The API objects as last heard of, reduced to what a proxy reads.
 *
 * Edges: a bad object counts as absent and is reported; nothing here throws for bad input. Nothing may be published
 * from a store before {@link Store.isSynced}.
 */
export class Store {
  readonly #report: (issue: Issue) => void;
  readonly #reading: SliceReading;
  #allowed: AllowedAddresses | undefined;
  readonly #services = new Map<string, Service>();
  readonly #identities = new Map<string, ServiceIdentity>();
  readonly #slices = new Map<string, Map<string, EndpointSlice>>();
  /** Of each slice, where it is. */
  readonly #places = new Map<string, SlicePlace>();
  readonly #nodes = new Map<string, Node>();
  /** Nodes that say less than they did, as they are taken to be; the one that changed last at the end. */
  readonly #lastingNodes = new Map<string, Node>();
  readonly #serviceCIDRs = new Map<string, ServiceCIDR>();
  readonly #unsynced = new Set<ObjectKind>(OBJECT_KINDS);
  readonly #listeners = new Set<(change: StoreChange) => void>();
  readonly #interned = new Map<string, string>();
  /** What was last said of each object that something is wrong with: a repeated list says nothing new. */
  readonly #said = new Map<string, readonly Issue[]>();
  readonly #healthPorts: HealthPortConflicts;
  /** What the source says is wrong with what it reads, as it is now. */
  #sourceIssues: readonly Issue[] = [];
  readonly #sourceAddresses = new SourceAddresses();

  constructor(options: StoreOptions = {}) {
    this.#report = options.report ?? ((): void => undefined);
    this.#healthPorts = new HealthPortConflicts(this.#report);
    this.#reading = { intern: this.#intern, keepsPodNames: options.keepsPodNames ?? false };
    this.#allowed = options.allowedAddresses;
  }

  /** Limit which addresses Services may have, in place of what was said before. Those that are known already stay as they are. */
  limitAddresses(allowed: AllowedAddresses): void {
    this.#allowed = allowed;
  }

  /** Every source has told its first complete list of every kind. */
  get isSynced(): boolean {
    return this.#unsynced.size === 0;
  }

  /** How many objects of each kind are held; bad ones count as absent. */
  get sizes(): Readonly<Record<ObjectKind, number>> {
    return {
      Service: this.#services.size,
      EndpointSlice: this.#places.size,
      Node: this.#nodes.size,
      ServiceCIDR: this.#serviceCIDRs.size,
    };
  }

  /**
   * What is wrong with the objects as they are now, and with what the source reads them from. Objects without a usable name are not among them.
   */
  *issues(): Iterable<Issue> {
    for (const issues of [this.#sourceIssues, ...this.#said.values(), this.#healthPorts.issues()]) yield* issues;
  }

  /** Take a new or changed API object, as JSON. Never throws for bad input. */
  upsert(kind: ObjectKind, raw: unknown): void {
    const name = isObject(raw) ? objectName(raw) : undefined;
    if (!isObject(raw) || name === undefined) {
      const given = isObject(raw) ? raw["metadata"] : raw;
      this.#report({ object: kind, what: `no usable name, the object is skipped: ${shown(given)}`, hint: "set metadata.name" });
      return;
    }
    this.#accept(kind, raw, kind === "Node" || kind === "ServiceCIDR" ? { namespace: "", name: name.name } : name);
  }

  /** Forget an object; unknown ones are ignored. `namespace` is "" for cluster-scoped kinds. */
  remove(kind: ObjectKind, namespace: string, name: string): void {
    const key = namespacedName(namespace, name);
    this.#said.delete(`${kind} ${key}`);
    if (kind === "Service") this.#identities.delete(key);
    if (kind === "EndpointSlice") this.#setSlice(key, undefined);
    else if (kind === "Service") this.#setService(key, undefined);
    else if (kind === "Node") this.#setNode(key, undefined);
    else this.#setServiceCIDR(key, undefined);
  }

  /** Take all that is wrong now with what the source reads objects from; it has reported that itself. */
  holdIssues(issues: readonly Issue[]): void {
    this.#sourceIssues = issues;
  }

  /** Take the addresses of a server that objects come from, each `address port`: no external IP may claim them. */
  noteSourceAddresses(addresses: readonly string[]): void {
    if (this.#sourceAddresses.note(addresses)) this.#notify({ kind: "nodeAddresses" });
  }

  /** Note that the first list of a kind is complete. */
  markSynced(kind: ObjectKind): void {
    if (this.#unsynced.delete(kind) && this.isSynced) this.#notify({ kind: "synced" });
  }

  /** Hear of changes; called synchronously, must not throw. Returns the way to stop hearing. */
  onChange(listener: (change: StoreChange) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** `namespace/name` of every Service that exists. */
  serviceKeys(): Iterable<string> {
    return this.#services.keys();
  }

  /** The Service under `namespace/name`. */
  service(key: string): Service | undefined {
    return this.#services.get(key);
  }

  /** Which Service is under `namespace/name`, also where nothing else of it can be read. */
  serviceIdentity(key: string): ServiceIdentity | undefined {
    return this.#identities.get(key);
  }

  /** The slices of the Service under `namespace/name`, by slice name. */
  slices(serviceKey: string): ReadonlyMap<string, EndpointSlice> {
    return this.#slices.get(serviceKey) ?? NO_SLICES;
  }

  /** `namespace/name` of every Service that has slices. */
  sliceOwners(): Iterable<string> {
    return this.#slices.keys();
  }

  /** A node by name. */
  node(name: string): Node | undefined {
    return this.#nodes.get(name);
  }

  /** What is known of a node: as it is, and where it says nothing any more, or is gone, as it was last. @see lastingNode */
  lastingNode(name: string): Node | undefined {
    return this.#lastingNodes.get(name) ?? this.#nodes.get(name);
  }

  /** Name of every Node that exists. */
  nodeNames(): Iterable<string> {
    return this.#nodes.keys();
  }

  /** Addresses of every Node, of both families; of one that says none any more, or is gone, those it had. @see lastingNode */
  *nodeAddresses(): Iterable<string> {
    for (const { addresses } of this.#allNodes()) yield* addresses;
  }

  /** Pod ranges of every Node, of both families; as {@link Store.nodeAddresses}. */
  *podRanges(): Iterable<IndexedRange<string>> {
    for (const { name, podCIDRs } of this.#allNodes()) for (const range of podCIDRs) yield { range, of: name };
  }

  /** `address port` of the servers that objects come from. */
  get sourceAddresses(): Iterable<string> {
    return this.#sourceAddresses;
  }

  /** External IPs that something else uses are left out. */
  get refusesAddressesInUse(): boolean {
    return this.#allowed?.strictExternalIPs === true;
  }

  /** All service ranges of both families. */
  serviceCIDRs(): readonly string[] {
    return [...this.#serviceCIDRs.values()].flatMap(({ cidrs }) => cidrs);
  }

  *#allNodes(): Iterable<Node> {
    for (const [name, node] of this.#nodes) if (!this.#lastingNodes.has(name)) yield node;
    yield* this.#lastingNodes.values();
  }

  #readService(key: string, raw: Raw, name: ObjectName, findings: Findings): Service | undefined {
    const identity = identityOf(raw);
    // Another Service of this name keeps nothing of the one before.
    const before = this.#identities.get(key)?.uid === identity.uid ? this.#services.get(key) : undefined;
    this.#identities.set(key, identity);
    return readBoundedService(raw, name, findings, this.#allowed, before);
  }

  #accept(kind: ObjectKind, raw: Raw, name: ObjectName): void {
    const key = namespacedName(name.namespace, name.name);
    const findings = new Findings(`${kind} ${key}`, kind === "EndpointSlice" ? serviceOfSlice(raw, name.namespace) : undefined);
    if (kind === "Service") this.#setService(key, this.#readService(key, raw, name, findings));
    else if (kind === "EndpointSlice") this.#setSlice(key, readEndpointSlice(raw, name, findings, this.#reading, this.#slice(key)));
    else if (kind === "Node") this.#setNode(key, readNode(raw, name.name, findings));
    else this.#setServiceCIDR(key, readServiceCIDR(raw, name.name, findings));
    this.#say(findings.object, findings.issues());
  }

  #say(object: string, issues: readonly Issue[]): void {
    if (issues.length === 0) {
      if (this.#said.size > 0) this.#said.delete(object);
      return;
    }
    const before = this.#said.get(object);
    this.#said.set(object, issues);
    if (before !== undefined && isEqual(before, issues)) return;
    for (const issue of issues) this.#report(issue);
  }

  #setService(key: string, service: Service | undefined): void {
    const before = this.#services.get(key);
    this.#healthPorts.set(key, before, service);
    if (service === undefined) {
      if (!this.#services.delete(key)) return;
    } else {
      const after = withEqual(before, service);
      // Much of what is written to a Service nobody here reads.
      if (after === before) return;
      this.#services.set(key, after);
    }
    this.#notify({ kind: "service", key, triggeredMs: undefined });
  }

  /** The slice under `namespace/name`. */
  #slice(key: string): EndpointSlice | undefined {
    return this.#places.get(key)?.slices.get(key);
  }

  #setSlice(key: string, slice: EndpointSlice | undefined): void {
    const place = this.#places.get(key);
    const before = place?.slices.get(key);
    if (slice !== undefined && slice === before) return;
    if (slice !== undefined && place !== undefined && slice.service === before?.service) {
      place.slices.set(key, slice);
      this.#notify({ kind: "service", key: place.owner, triggeredMs: slice.triggeredMs });
      return;
    }
    // A changed service-name label moves the slice; the old owner loses it (upstream leaves it behind).
    if (place !== undefined) this.#dropSlice(place, key);
    if (slice === undefined) return;
    const owner = `${slice.namespace}/${slice.service}`;
    let slices = this.#slices.get(owner);
    if (slices === undefined) this.#slices.set(owner, (slices = new Map<string, EndpointSlice>()));
    slices.set(key, slice);
    this.#places.set(key, { owner, slices });
    this.#notify({ kind: "service", key: owner, triggeredMs: slice.triggeredMs });
  }

  #dropSlice({ owner, slices }: SlicePlace, key: string): void {
    this.#places.delete(key);
    slices.delete(key);
    if (slices.size === 0) this.#slices.delete(owner);
    this.#notify({ kind: "service", key: owner, triggeredMs: undefined });
  }

  #setNode(name: string, node: Node | undefined): void {
    const before = this.lastingNode(name);
    const lasting = lastingNode(before, node);
    this.#lastingNodes.delete(name);
    if (lasting !== undefined && lasting !== node) this.#lastingNodes.set(name, lasting);
    const [oldest] = this.#lastingNodes.size > LASTING_NODES_MAX ? this.#lastingNodes.keys() : [];
    if (oldest !== undefined) this.#lastingNodes.delete(oldest);
    if (node === undefined) this.#nodes.delete(name);
    else this.#nodes.set(name, node);
    this.#notify({ kind: "node", key: name });
    const after = this.lastingNode(name);
    const isMoved = !isEqual(before?.addresses, after?.addresses) || !isEqual(before?.podCIDRs, after?.podCIDRs);
    if (oldest !== undefined || isMoved) this.#notify({ kind: "nodeAddresses" });
  }

  #setServiceCIDR(name: string, cidr: ServiceCIDR | undefined): void {
    if (cidr === undefined) this.#serviceCIDRs.delete(name);
    else this.#serviceCIDRs.set(name, cidr);
    this.#notify({ kind: "serviceCIDRs" });
  }

  #notify(change: StoreChange): void {
    for (const listener of this.#listeners) listener(change);
  }

  readonly #intern = (text: string): string => {
    const known = this.#interned.get(text);
    if (known !== undefined) return known;
    // Nodes come and go for years: start over rather than remember every name that ever was.
    if (this.#interned.size >= INTERNED_MAX) this.#interned.clear();
    this.#interned.set(text, text);
    return text;
  };
}

function identityOf(raw: Raw): ServiceIdentity {
  const metadata = objectField(raw, "metadata");
  const { generation } = metadata;
  const version = typeof generation === "number" ? String(generation) : textField(metadata, "resourceVersion");
  return { uid: textField(metadata, "uid") ?? "", version: version ?? "" };
}
