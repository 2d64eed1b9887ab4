import type { Destination, DestinationKind, Endpoint } from "../model/rows.ts";
import type { Protocol } from "../model/api-objects.ts";
import { addMoved, goesBefore, holderOf, isOneLine, isOutside } from "./contenders.ts";
import type { Contender } from "./contenders.ts";
import { EndpointsInUse } from "./endpoints-in-use.ts";
import type { EndpointOwner, SlicesByService } from "./endpoints-in-use.ts";
import { isRefusedFor, NO_GROUND, useOf } from "./ground.ts";
import type { AddressUse, AddressWanted, Ground } from "./ground.ts";

/** What of a destination is claimed: its address and port, in its row's protocol, and as what. */
export type ClaimedAddress = Pick<Destination, "kind" | "address" | "port">;

/** What of a row decides its claims. */
export interface Claimant {
  readonly createdMs: number;
  readonly name: { readonly namespace: string; readonly protocol: Protocol };
  readonly destinations: readonly ClaimedAddress[];
}

/** A destination that a row wants and something else has or uses. */
export interface LostClaim {
  readonly destination: ClaimedAddress;
  /** Who has it: a row's key, or what {@link AddressUse.by} says. */
  readonly winner: string;
  readonly wonAs: DestinationKind | AddressUse["as"];
  /** The row has precedence over the winner, and lost because it has no usable endpoint now. */
  readonly isForNow?: true;
}

/** What a row holds of all that it wants. */
export interface ResolvedClaims<Wanted> {
  /** With the destinations that it holds. */
  readonly row: Wanted;
  readonly lost: readonly LostClaim[];
  /** Of the destinations that it holds, those that something else uses. */
  readonly inUse: readonly LostClaim[];
  /** What it wants and other rows want, too, whichever of them holds it. */
  readonly contested: readonly ClaimedAddress[];
}

/** The only row that wants a place. One object for all places that a row wants as the same kind. */
type OnlyContender = Pick<Contender, "key" | "kind">;

const NONE: ReadonlySet<string> = new Set();

/** Tell whether a row has an endpoint that is ready, or serves while it terminates, on whatever node. */
export function hasUsableEndpoint({ endpoints }: { readonly endpoints: readonly Endpoint[] }): boolean {
  return endpoints.some(({ ready, serving, terminating }) => ready || (serving && terminating));
}

/**
 * Settles which row has an address and port when several want it: the kind decides (cluster IP, node port, load-balancer IP,
 * external IP), then age, then the key. An external or load-balancer IP is held within the namespace of the row that this chooses, by the
 * first row of the same kind there that has a usable endpoint.
 *
 * Shape: a node port stands for its number on the address of every Node that is known. An external IP in a service range is
 * nobody's, and neither is one that something else uses. Who goes without says so in {@link Claims.resolve}.
 * Edges: the loser's destination comes back when the winner goes. Result never depends on the order of calls.
 * @source rules
 */
export class Claims<Wanted extends Claimant> {
  /** All rows as they would be if they were alone. */
  readonly #wanted = new Map<string, Wanted>();
  readonly #isUsable: (row: Wanted) => boolean;
  /** Rows with a usable endpoint: looked at once, whatever number of places they want. */
  readonly #usable = new Set<string>();
  /** Who wants what, in order of precedence. */
  readonly #contenders = new Map<string, OnlyContender | readonly Contender[]>();
  /** Rows with an external or load-balancer IP, by port and protocol: what a node port or the ground may take from. */
  readonly #outside = new Map<string, Set<string>>();
  readonly #endpoints = new EndpointsInUse();
  #ground = NO_GROUND;

  /** `isUsable` tells whether a row has a usable endpoint, on whatever node: all nodes have to agree on it. */
  constructor(isUsable: (row: Wanted) => boolean) {
    this.#isUsable = isUsable;
  }

  /**
   * Put a row in, change it or (undefined) take it out; the keys of all rows whose destinations may have changed are added to `affected`, this one first.
   * False: it wants what it wanted before, and has what it had.
   */
  set(key: string, row: Wanted | undefined, affected: Set<string>): boolean {
    const before = this.#wanted.get(key);
    const wasUsable = this.#usable.has(key);
    if (row === undefined) this.#wanted.delete(key);
    else this.#wanted.set(key, row);
    if (row !== undefined && this.#isUsable(row)) this.#usable.add(key);
    else this.#usable.delete(key);
    let [released, claimed] = [before?.destinations ?? [], row?.destinations ?? []];
    if (before !== undefined && row !== undefined && hasSameClaims(before, row)) {
      // The usual change is one of endpoints, of a row that is the only one to want its addresses.
      if (wasUsable === this.#usable.has(key)) return false;
      released = claimed = claimed.filter((one) => isOutside(one) && this.#isContested(one, row.name.protocol));
      if (claimed.length === 0) return false;
    }
    affected.add(key);
    for (const one of released) this.#release(one, before as Wanted, key, affected);
    const only = new Map<DestinationKind, OnlyContender>();
    for (const one of claimed) {
      const own = only.get(one.kind) ?? { key, kind: one.kind };
      only.set(one.kind, own);
      this.#claim(one, row as Wanted, own, affected);
    }
    return true;
  }

  /** Take in what the cluster has now; returns the keys of rows whose destinations may have changed. */
  setGround(ground: Ground): ReadonlySet<string> {
    const before = this.#ground;
    this.#ground = ground;
    const textOf = (one: ClaimedAddress, row: Wanted, of: Ground): string => {
      const { as = "", by = "", isRefused = false } = useOf(one, wantedBy(row), of) ?? {};
      return `${as} ${by} ${isRefused}`;
    };
    const isTouched = (one: ClaimedAddress, row: Wanted): boolean =>
      before.nodeAddresses.has(one.address) !== ground.nodeAddresses.has(one.address) ||
      before.isStrict !== ground.isStrict ||
      textOf(one, row, before) !== textOf(one, row, ground);
    const affected = new Set<string>();
    for (const keys of this.#outside.values())
      for (const key of keys) {
        const row = this.#wanted.get(key);
        if (row?.destinations.some((one) => isTouched(one, row)) === true) affected.add(key);
      }
    return affected;
  }

  /**
   * Take in the slices of Services that changed, after the rows of all that changed; the keys of rows whose destinations may have changed are added
   * to `affected`.
   */
  setEndpoints(changed: Iterable<string>, source: SlicesByService, affected: Set<string>): void {
    for (const key of this.#endpoints.update(changed, source)) affected.add(key);
  }

  /** A row with the destinations it holds, and those it lost; undefined when there is no such row. */
  resolve(key: string): ResolvedClaims<Wanted> | undefined {
    const row = this.#wanted.get(key);
    if (row === undefined) return undefined;
    const lost: LostClaim[] = [];
    const inUse: LostClaim[] = [];
    const contested: ClaimedAddress[] = [];
    for (const destination of row.destinations) {
      const use = useOf(destination, wantedBy(row), this.#ground, this.#endpoints);
      const claim = use === undefined ? undefined : { destination, winner: use.by, wonAs: use.as };
      const one = use?.isRefused === true ? claim : this.#lostTo(destination, row.name.protocol, key);
      if (one !== undefined) lost.push(one);
      else if (claim !== undefined) inUse.push(claim);
      if (this.#isContested(destination, row.name.protocol)) contested.push(destination);
    }
    if (lost.length === 0) return { row, lost, inUse, contested };
    const gone = new Set<ClaimedAddress>(lost.map(({ destination }) => destination));
    return { row: { ...row, destinations: row.destinations.filter((destination) => !gone.has(destination)) }, lost, inUse, contested };
  }

  #isContested(claimed: ClaimedAddress, protocol: Protocol): boolean {
    return isSeveral(this.#contenders.get(claimOf(claimed, protocol)));
  }

  #lostTo(destination: ClaimedAddress, protocol: Protocol, key: string): LostClaim | undefined {
    // Nearly always: nobody else wants it.
    const isOnNode = destination.kind !== "clusterIP" && this.#ground.nodeAddresses.has(destination.address);
    if (!isOnNode && !this.#isContested(destination, protocol)) return undefined;
    const holder = this.#holder(destination, protocol);
    if (holder === undefined || holder.key === key) return undefined;
    const contenders = this.#contendersOf(claimOf(destination, protocol));
    const own = contenders[0]?.key === holder.key ? undefined : contenders.find((one) => one.key === key);
    const isForNow = own !== undefined && isOneLine(own, holder) && goesBefore(own, holder);
    return { destination, winner: holder.key, wonAs: holder.kind, ...(isForNow ? { isForNow } : {}) };
  }

  /** Who has a place. */
  #holder({ kind, address, port }: ClaimedAddress, protocol: Protocol): Contender | undefined {
    const holder = this.#first(this.#contendersOf(claimOf({ address, port }, protocol)), { address, port }, protocol);
    if (!this.#ground.nodeAddresses.has(address) || kind === "clusterIP" || holder?.kind === "clusterIP") return holder;
    return holderOf(this.#contendersOf(claimOf({ address: "", port }, protocol))) ?? holder;
  }

  /** Who of the contenders, in order of precedence, gets a place: no external IP that is refused because something else uses it. */
  #first(contenders: readonly Contender[], { address, port }: Omit<ClaimedAddress, "kind">, protocol: Protocol): Contender | undefined {
    if (contenders.at(-1)?.kind !== "externalIP") return holderOf(contenders);
    const ground = this.#ground;
    const use = useOf({ kind: "externalIP", address, port }, { namespace: "", createdMs: 0, protocol }, ground);
    if (use?.isRefused === true) return holderOf(contenders, ({ kind }) => kind === "externalIP");
    const owners = new Map<string, EndpointOwner | undefined>();
    const ownerFor = (namespace: string): EndpointOwner | undefined => {
      if (!owners.has(namespace)) owners.set(namespace, this.#endpoints.ownerOf(address, port, protocol, namespace));
      return owners.get(namespace);
    };
    return holderOf(contenders, ({ kind, namespace, createdMs }) => {
      return kind === "externalIP" && isRefusedFor(ownerFor(namespace), createdMs, ground);
    });
  }

  #contendersOf(claim: string): readonly Contender[] {
    const contenders = this.#contenders.get(claim);
    if (contenders === undefined) return [];
    if (isSeveral(contenders)) return contenders;
    const row = this.#wanted.get(contenders.key);
    return row === undefined ? [] : [this.#contender(contenders, row)];
  }

  #contender({ key, kind }: OnlyContender, { createdMs, name }: Wanted): Contender {
    return { key, kind, createdMs, namespace: name.namespace, isUsable: this.#usable.has(key) };
  }

  #claim(claimed: ClaimedAddress, row: Wanted, own: OnlyContender, affected: Set<string>): void {
    const { name } = row;
    const claim = claimOf(claimed, name.protocol);
    if (this.#contenders.has(claim)) {
      const contender = this.#contender(own, row);
      const others = this.#contendersOf(claim);
      const next = others.findIndex((other) => goesBefore(contender, other));
      const all = others.toSpliced(next === -1 ? others.length : next, 0, contender);
      this.#contenders.set(claim, all);
      addMoved(this.#first(others, claimed, name.protocol), this.#first(all, claimed, name.protocol), affected);
    } else {
      this.#contenders.set(claim, own);
    }
    if (claimed.kind === "nodePort") this.#touchNodeAddresses(claimed, name.protocol, affected);
    if (!isOutside(claimed)) return;
    this.#note(claimed, name.protocol, own.key);
    this.#endpoints.watch(claimed.address, own.key);
  }

  #release(claimed: ClaimedAddress, { name }: Claimant, key: string, affected: Set<string>): void {
    const claim = claimOf(claimed, name.protocol);
    const contenders = this.#contenders.get(claim);
    if (!isSeveral(contenders)) {
      this.#contenders.delete(claim);
    } else {
      const others = contenders.filter((contender) => contender.key !== key);
      const [only] = others.length === 1 ? others : [];
      // With the last of the others the contest is over.
      if (only !== undefined) affected.add(only.key);
      addMoved(this.#first(contenders, claimed, name.protocol), this.#first(others, claimed, name.protocol), affected);
      this.#contenders.set(claim, only === undefined ? others : { key: only.key, kind: only.kind });
    }
    if (claimed.kind === "nodePort") this.#touchNodeAddresses(claimed, name.protocol, affected);
    if (!isOutside(claimed)) return;
    this.#unnote(claimed, name.protocol, key);
    this.#endpoints.unwatch(claimed.address, key);
  }

  /** Another row has a node port now: whoever has its number on a node's address may get or lose that. */
  #touchNodeAddresses({ port }: ClaimedAddress, protocol: Protocol, affected: Set<string>): void {
    // Nearly always: nobody has an address from outside.
    if (this.#outside.size === 0) return;
    const { nodeAddresses } = this.#ground;
    for (const key of this.#outside.get(`${port} ${protocol}`) ?? NONE)
      if (this.#wanted.get(key)?.destinations.some(({ address }) => nodeAddresses.has(address)) === true) affected.add(key);
  }

  #note({ port }: ClaimedAddress, protocol: Protocol, key: string): void {
    const keys = this.#outside.get(`${port} ${protocol}`);
    if (keys === undefined) this.#outside.set(`${port} ${protocol}`, new Set([key]));
    else keys.add(key);
  }

  #unnote({ port }: ClaimedAddress, protocol: Protocol, key: string): void {
    const keys = this.#outside.get(`${port} ${protocol}`);
    keys?.delete(key);
    if (keys?.size === 0) this.#outside.delete(`${port} ${protocol}`);
  }
}

function isSeveral(contenders: OnlyContender | readonly Contender[] | undefined): contenders is readonly Contender[] {
  return Array.isArray(contenders);
}

/** Write a claim as text; equal texts want the same. */
export function claimOf({ address, port }: Pick<ClaimedAddress, "address" | "port">, protocol: Protocol): string {
  return `${address} ${port} ${protocol}`;
}

function wantedBy({ createdMs, name }: Claimant): AddressWanted {
  return { namespace: name.namespace, protocol: name.protocol, createdMs };
}

/** The usual change is one of endpoints: nobody's claims are touched. */
function hasSameClaims(a: Claimant, b: Claimant): boolean {
  if (a.createdMs === b.createdMs && a.destinations === b.destinations) return true;
  if (a.createdMs !== b.createdMs || a.destinations.length !== b.destinations.length) return false;
  return a.destinations.every(({ kind, address, port }, index) => {
    const other = b.destinations[index];
    return other?.kind === kind && other.address === address && other.port === port;
  });
}
