import { hostPort } from "./addresses.ts";
import type { Destination, ServicePort } from "./model.ts";

/** A destination a row wanted and did not get. */
export interface LostClaim {
  readonly row: string;
  readonly destination: Destination;
  readonly winner: string;
}

const NOBODY: ReadonlySet<string> = new Set();

/**
 * Settles which row has an address and port when several want it: the oldest, ties broken by key.
 *
 * Edges: the loser's destination comes back when the winner goes. Result never depends on the order of calls.
 */
export class Claims {
  /** All rows as they would be if they were alone. */
  readonly #wanted = new Map<string, ServicePort>();
  /** Who wants what; a plain string while there is only one. */
  readonly #claimants = new Map<string, string | readonly string[]>();

  /** Put a row in, change it or (undefined) take it out; returns the keys of all other rows whose destinations may have changed. */
  set(key: string, row: ServicePort | undefined): ReadonlySet<string> {
    const before = this.#wanted.get(key);
    if (row === undefined) this.#wanted.delete(key);
    else this.#wanted.set(key, row);
    if (before !== undefined && row !== undefined && hasSameClaims(before, row)) return NOBODY;
    const affected = new Set<string>();
    for (const claim of claimsOf(before)) this.#release(claim, key, affected);
    for (const claim of claimsOf(row)) this.#claim(claim, key, affected);
    affected.delete(key);
    return affected;
  }

  /** A row with the destinations it holds, and those it lost; undefined when there is no such row. */
  settled(key: string): { readonly row: ServicePort; readonly lost: readonly LostClaim[] } | undefined {
    const row = this.#wanted.get(key);
    if (row === undefined) return undefined;
    const lost = row.destinations.flatMap((destination) => {
      const winner = this.#winner(claimOf(destination, row));
      return winner === key ? [] : [{ row: key, destination, winner }];
    });
    if (lost.length === 0) return { row, lost };
    const gone = new Set(lost.map(({ destination }) => destination));
    return { row: { ...row, destinations: row.destinations.filter((destination) => !gone.has(destination)) }, lost };
  }

  #winner(claim: string): string {
    const claimants = this.#claimants.get(claim) ?? "";
    if (typeof claimants === "string") return claimants;
    return claimants.reduce((best, key) => (this.#isOlder(key, best) ? key : best));
  }

  #isOlder(a: string, b: string): boolean {
    const createdA = this.#wanted.get(a)?.createdMs ?? 0;
    const createdB = this.#wanted.get(b)?.createdMs ?? 0;
    return createdA === createdB ? a < b : createdA < createdB;
  }

  #claim(claim: string, key: string, affected: Set<string>): void {
    const claimants = this.#claimants.get(claim);
    if (claimants === undefined) {
      this.#claimants.set(claim, key);
      return;
    }
    const others = typeof claimants === "string" ? [claimants] : claimants;
    for (const other of others) affected.add(other);
    this.#claimants.set(claim, [...others, key]);
  }

  #release(claim: string, key: string, affected: Set<string>): void {
    const claimants = this.#claimants.get(claim);
    if (claimants === undefined || typeof claimants === "string") {
      this.#claimants.delete(claim);
      return;
    }
    const others = claimants.filter((claimant) => claimant !== key);
    for (const other of others) affected.add(other);
    this.#claimants.set(claim, others.length === 1 ? (others[0] as string) : others);
  }
}

/** Name a destination for people: `10.96.0.1:80/TCP`, `node port 30080/TCP`. */
export function destinationName(destination: Destination, row: ServicePort): string {
  const { address, port } = destination;
  return address === "" ? `node port ${port}/${row.name.protocol}` : `${hostPort(address, port)}/${row.name.protocol}`;
}

/** The usual change is one of endpoints: nobody's claims are touched. */
function hasSameClaims(a: ServicePort, b: ServicePort): boolean {
  if (a.createdMs !== b.createdMs || a.destinations.length !== b.destinations.length) return false;
  return a.destinations.every(({ address, port }, index) => {
    const other = b.destinations[index];
    return other?.address === address && other.port === port;
  });
}

function claimsOf(row: ServicePort | undefined): readonly string[] {
  return row === undefined ? [] : row.destinations.map((destination) => claimOf(destination, row));
}

function claimOf({ address, port }: Destination, { name }: ServicePort): string {
  return `${address} ${port} ${name.protocol}`;
}
