import { cidrContains, familyOf, parseCIDR, parseIP } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";
import type { Destination, DestinationKind, ServicePort } from "../model/rows.ts";
import type { IPFamily, Protocol } from "../model/api-objects.ts";

/** What of a destination is claimed: its address and port, in its row's protocol, and as what. */
export type ClaimedAddress = Pick<Destination, "kind" | "address" | "port">;

/** What of a row decides its claims. */
export interface Claimant {
  readonly createdMs: number;
  readonly name: { readonly protocol: Protocol };
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
}

/** A row that wants a place. */
interface Contender {
  readonly key: string;
  readonly kind: DestinationKind;
  readonly createdMs: number;
}

const NOBODY: ReadonlySet<string> = new Set();
const NO_GROUND: Ground = { serviceRanges: [], nodeAddresses: NOBODY };
/** Which kind goes first. Everybody who may write a Service may name external IPs; cluster IPs and node ports are handed out by the API server. */
const RANK: Readonly<Record<DestinationKind, number>> = { clusterIP: 0, nodePort: 1, loadBalancerIP: 2, externalIP: 3 };

/** Tell the ground that a store knows, in one family. */
export function groundOf(store: { serviceCIDRs(): readonly string[]; nodeAddresses(): Iterable<string> }, family: IPFamily): Ground {
  return {
    serviceRanges: store.serviceCIDRs().flatMap((text) => parseCIDR(text) ?? []),
    nodeAddresses: new Set([...store.nodeAddresses()].filter((address) => familyOf(address) === family)),
  };
}

/**
 * Settles which row has an address and port when several want it: the kind decides (cluster IP, node port, load-balancer IP,
 * external IP), then age, then the key.
 *
 * Shape: a node port stands for its number on the address of every Node that is known. An external IP in a service range is
 * nobody's. Who goes without says so in {@link Claims.resolve}.
 * Edges: the loser's destination comes back when the winner goes. Result never depends on the order of calls.
 * @source rules
 */
export class Claims<Wanted extends Claimant = ServicePort> {
  /** All rows as they would be if they were alone. */
  readonly #wanted = new Map<string, Wanted>();
  /** Who wants what, the first to have it first; a plain key while there is only one. */
  readonly #contenders = new Map<string, string | readonly Contender[]>();
  /** Rows with an external or load-balancer IP, by port and protocol: what a node port or the ground may take from. */
  readonly #outside = new Map<string, Set<string>>();
  #ground = NO_GROUND;

  /**
   * Put a row in, change it or (undefined) take it out; the keys of all rows whose destinations may have changed are added to `affected`, this one first.
   * False: it wants what it wanted before, and has what it had.
   */
  set(key: string, row: Wanted | undefined, affected: Set<string>): boolean {
    const before = this.#wanted.get(key);
    if (row === undefined) this.#wanted.delete(key);
    else this.#wanted.set(key, row);
    if (before !== undefined && row !== undefined && hasSameClaims(before, row)) return false;
    affected.add(key);
    for (const claimed of before?.destinations ?? []) this.#release(claimed, before as Wanted, key, affected);
    for (const claimed of row?.destinations ?? []) this.#claim(claimed, row as Wanted, key, affected);
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
  resolve(key: string): { readonly row: Wanted; readonly lost: readonly LostClaim[] } | undefined {
    const row = this.#wanted.get(key);
    if (row === undefined) return undefined;
    const lost: LostClaim[] = [];
    for (const destination of row.destinations) {
      const one = this.#lostTo(destination, row.name.protocol, key);
      if (one !== undefined) lost.push(one);
    }
    if (lost.length === 0) return { row, lost };
    const gone = new Set<ClaimedAddress>(lost.map(({ destination }) => destination));
    return { row: { ...row, destinations: row.destinations.filter((destination) => !gone.has(destination)) }, lost };
  }

  #lostTo(destination: ClaimedAddress, protocol: Protocol, key: string): LostClaim | undefined {
    const range = destination.kind === "externalIP" ? rangeAround(destination.address, this.#ground) : undefined;
    if (range !== undefined) return { destination, winner: range, wonAs: "serviceRange" };
    // Nearly always: nobody else wants it.
    const isAlone = this.#contenders.get(claimOf(destination, protocol)) === key;
    if (isAlone && (destination.kind === "clusterIP" || !this.#ground.nodeAddresses.has(destination.address))) return undefined;
    const first = this.#first(destination, protocol);
    return first === undefined || first.key === key ? undefined : { destination, winner: first.key, wonAs: first.kind };
  }

  /** Who has a place. */
  #first({ kind, address, port }: ClaimedAddress, protocol: Protocol): Contender | undefined {
    const first = this.#firstOf(claimOf({ address, port }, protocol));
    if (!this.#ground.nodeAddresses.has(address) || kind === "clusterIP" || first?.kind === "clusterIP") return first;
    return this.#firstOf(claimOf({ address: "", port }, protocol)) ?? first;
  }

  #firstOf(claim: string): Contender | undefined {
    const contenders = this.#contenders.get(claim);
    return typeof contenders === "string" ? this.#contender(claim, contenders) : contenders?.[0];
  }

  #contender(claim: string, key: string): Contender | undefined {
    const row = this.#wanted.get(key);
    const claimed = row?.destinations.find((destination) => claimOf(destination, row.name.protocol) === claim);
    return row === undefined || claimed === undefined ? undefined : { key, kind: claimed.kind, createdMs: row.createdMs };
  }

  #claim(claimed: ClaimedAddress, { createdMs, name }: Claimant, key: string, affected: Set<string>): void {
    const claim = claimOf(claimed, name.protocol);
    const contenders = this.#contenders.get(claim);
    if (contenders === undefined) {
      this.#contenders.set(claim, key);
    } else {
      const contender = { key, kind: claimed.kind, createdMs };
      const others = typeof contenders === "string" ? [this.#contender(claim, contenders)].filter((one) => one !== undefined) : contenders;
      const next = others.findIndex((other) => goesBefore(contender, other));
      this.#contenders.set(claim, others.toSpliced(next === -1 ? others.length : next, 0, contender));
      // All others went without before, too.
      if (next === 0 && others[0] !== undefined) affected.add(others[0].key);
    }
    if (claimed.kind === "nodePort") this.#touchNodeAddresses(claimed, name.protocol, affected);
    if (isOutside(claimed)) this.#note(claimed, name.protocol, key);
  }

  #release(claimed: ClaimedAddress, { name }: Claimant, key: string, affected: Set<string>): void {
    const claim = claimOf(claimed, name.protocol);
    const contenders = this.#contenders.get(claim);
    if (contenders === undefined || typeof contenders === "string") {
      this.#contenders.delete(claim);
    } else {
      const others = contenders.filter((contender) => contender.key !== key);
      const [first] = others;
      if (first !== undefined && contenders[0]?.key === key) affected.add(first.key);
      this.#contenders.set(claim, others.length === 1 && first !== undefined ? first.key : others);
    }
    if (claimed.kind === "nodePort") this.#touchNodeAddresses(claimed, name.protocol, affected);
    if (isOutside(claimed)) this.#unnote(claimed, name.protocol, key);
  }

  /** Another row has a node port now: whoever has its number on a node's address may get or lose that. */
  #touchNodeAddresses({ port }: ClaimedAddress, protocol: Protocol, affected: Set<string>): void {
    // Nearly always: nobody has an address from outside.
    if (this.#outside.size === 0) return;
    const { nodeAddresses } = this.#ground;
    for (const key of this.#outside.get(`${port} ${protocol}`) ?? NOBODY)
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

/** Write a claim as text; equal texts want the same. */
export function claimOf({ address, port }: Pick<ClaimedAddress, "address" | "port">, protocol: Protocol): string {
  return `${address} ${port} ${protocol}`;
}

function goesBefore(a: Contender, b: Contender): boolean {
  if (a.kind !== b.kind) return RANK[a.kind] < RANK[b.kind];
  return a.createdMs === b.createdMs ? a.key < b.key : a.createdMs < b.createdMs;
}

function isOutside({ kind }: ClaimedAddress): boolean {
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
