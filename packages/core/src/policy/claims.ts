import { cidrContains, familyOf, parseCIDR, parseIP } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";
import type { Destination, DestinationKind, Endpoint } from "../model/rows.ts";
import type { IPFamily, Protocol } from "../model/api-objects.ts";

/** What of a destination is claimed: its address and port, in its row's protocol, and as what. */
export type ClaimedAddress = Pick<Destination, "kind" | "address" | "port">;

/** What of a row decides its claims. */
export interface Claimant {
  readonly createdMs: number;
  readonly name: { readonly namespace: string; readonly protocol: Protocol };
  readonly destinations: readonly ClaimedAddress[];
}

/** What the cluster has of its own, in one family: no Service can claim it by its age. */
export interface Ground {
  /** The known service ranges. */
  readonly serviceRanges: readonly CIDR[];
  /** Canonical addresses of every Node that is known. */
  readonly nodeAddresses: ReadonlySet<string>;
}

/** A destination a row wanted and did not get. */
export interface LostClaim {
  readonly destination: ClaimedAddress;
  /** Who has it: a row's key, or the service range that an external IP lies in. */
  readonly winner: string;
  readonly wonAs: DestinationKind | "serviceRange";
  /** The row has precedence over the winner, and lost because it has no usable endpoint now. */
  readonly isForNow?: true;
}

/** What a row holds of all that it wants. */
export interface ResolvedClaims<Wanted> {
  /** With the destinations that it holds. */
  readonly row: Wanted;
  readonly lost: readonly LostClaim[];
  /** What it wants and other rows want, too, whichever of them holds it. */
  readonly contested: readonly ClaimedAddress[];
}

/** A row that wants a place. */
interface Contender {
  readonly key: string;
  readonly kind: DestinationKind;
  readonly createdMs: number;
  readonly namespace: string;
  readonly isUsable: boolean;
}

/** The only row that wants a place. One object for all places that a row wants as the same kind. */
type OnlyContender = Pick<Contender, "key" | "kind">;

const NONE: ReadonlySet<string> = new Set();
const NO_GROUND: Ground = { serviceRanges: [], nodeAddresses: NONE };
/** Which kind goes first. Everybody who may write a Service may name external IPs; cluster IPs and node ports are handed out by the API server. */
const RANK: Readonly<Record<DestinationKind, number>> = { clusterIP: 0, nodePort: 1, loadBalancerIP: 2, externalIP: 3 };

/** Tell the ground that a store knows, in one family. */
export function groundOf(store: { serviceCIDRs(): readonly string[]; nodeAddresses(): Iterable<string> }, family: IPFamily): Ground {
  return {
    serviceRanges: store.serviceCIDRs().flatMap((text) => parseCIDR(text) ?? []),
    nodeAddresses: new Set([...store.nodeAddresses()].filter((address) => familyOf(address) === family)),
  };
}

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
 * nobody's. Who goes without says so in {@link Claims.resolve}.
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
    const isTouched = ({ kind, address }: ClaimedAddress): boolean =>
      before.nodeAddresses.has(address) !== ground.nodeAddresses.has(address) ||
      (kind === "externalIP" && rangeAround(address, before) !== rangeAround(address, ground));
    const affected = new Set<string>();
    for (const keys of this.#outside.values())
      for (const key of keys) if (this.#wanted.get(key)?.destinations.some(isTouched) === true) affected.add(key);
    return affected;
  }

  /** A row with the destinations it holds, and those it lost; undefined when there is no such row. */
  resolve(key: string): ResolvedClaims<Wanted> | undefined {
    const row = this.#wanted.get(key);
    if (row === undefined) return undefined;
    const lost: LostClaim[] = [];
    const contested: ClaimedAddress[] = [];
    for (const destination of row.destinations) {
      const one = this.#lostTo(destination, row.name.protocol, key);
      if (one !== undefined) lost.push(one);
      if (this.#isContested(destination, row.name.protocol)) contested.push(destination);
    }
    if (lost.length === 0) return { row, lost, contested };
    const gone = new Set<ClaimedAddress>(lost.map(({ destination }) => destination));
    return { row: { ...row, destinations: row.destinations.filter((destination) => !gone.has(destination)) }, lost, contested };
  }

  #isContested(claimed: ClaimedAddress, protocol: Protocol): boolean {
    return isSeveral(this.#contenders.get(claimOf(claimed, protocol)));
  }

  #lostTo(destination: ClaimedAddress, protocol: Protocol, key: string): LostClaim | undefined {
    const range = destination.kind === "externalIP" ? rangeAround(destination.address, this.#ground) : undefined;
    if (range !== undefined) return { destination, winner: range, wonAs: "serviceRange" };
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
    const holder = holderOf(this.#contendersOf(claimOf({ address, port }, protocol)));
    if (!this.#ground.nodeAddresses.has(address) || kind === "clusterIP" || holder?.kind === "clusterIP") return holder;
    return holderOf(this.#contendersOf(claimOf({ address: "", port }, protocol))) ?? holder;
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
      addMoved(holderOf(others), holderOf(all), affected);
    } else {
      this.#contenders.set(claim, own);
    }
    if (claimed.kind === "nodePort") this.#touchNodeAddresses(claimed, name.protocol, affected);
    if (isOutside(claimed)) this.#note(claimed, name.protocol, own.key);
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
      addMoved(holderOf(contenders), holderOf(others), affected);
      this.#contenders.set(claim, only === undefined ? others : { key: only.key, kind: only.kind });
    }
    if (claimed.kind === "nodePort") this.#touchNodeAddresses(claimed, name.protocol, affected);
    if (isOutside(claimed)) this.#unnote(claimed, name.protocol, key);
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

/** The contenders are in order of precedence. Only an external or load-balancer IP passes on for lack of endpoints, and never to another namespace. */
function holderOf(contenders: readonly Contender[]): Contender | undefined {
  const [first] = contenders;
  if (first === undefined || first.isUsable || !isOutside(first)) return first;
  return contenders.find((other) => other.isUsable && isOneLine(first, other)) ?? first;
}

/** Tell whether an address may pass from one to the other with their endpoints. */
function isOneLine(a: Contender, b: Contender): boolean {
  return isOutside(a) && a.kind === b.kind && a.namespace === b.namespace;
}

/** Adds the rows that hold an address now and before; all others go without either way. */
function addMoved(before: Contender | undefined, after: Contender | undefined, affected: Set<string>): void {
  if (before?.key === after?.key) return;
  for (const one of [after, before]) if (one !== undefined) affected.add(one.key);
}

function goesBefore(a: Contender, b: Contender): boolean {
  if (a.kind !== b.kind) return RANK[a.kind] < RANK[b.kind];
  return a.createdMs === b.createdMs ? a.key < b.key : a.createdMs < b.createdMs;
}

function isOutside({ kind }: Pick<ClaimedAddress, "kind">): boolean {
  return kind === "externalIP" || kind === "loadBalancerIP";
}

function rangeAround(address: string, { serviceRanges }: Ground): string | undefined {
  const ip = serviceRanges.length === 0 ? undefined : parseIP(address);
  return ip === undefined ? undefined : serviceRanges.find((range) => cidrContains(range, ip))?.text;
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
