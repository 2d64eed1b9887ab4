import { hostPort } from "./addresses.ts";
import type { Destination, ServicePort } from "./model.ts";
import type { Issue, Protocol } from "./objects.ts";

/** What of a destination is claimed: its address and port, in its row's protocol. */
export type ClaimedPlace = Pick<Destination, "address" | "port">;

/** What of a row claims are settled by. */
export interface Claimant {
  readonly createdMs: number;
  readonly name: { readonly protocol: Protocol };
  readonly destinations: readonly ClaimedPlace[];
}

/** A destination a row wanted and did not get. */
export interface LostClaim {
  readonly row: string;
  readonly destination: ClaimedPlace;
  readonly winner: string;
}

const NOBODY: ReadonlySet<string> = new Set();

/**
 * Settles which row has an address and port when several want it: the oldest, ties broken by key.
 *
 * Edges: the loser's destination comes back when the winner goes. Result never depends on the order of calls.
 */
export class Claims<Wanted extends Claimant = ServicePort> {
  /** All rows as they would be if they were alone. */
  readonly #wanted = new Map<string, Wanted>();
  /** Who wants what; a plain string while there is only one. */
  readonly #claimants = new Map<string, string | readonly string[]>();

  /** Put a row in, change it or (undefined) take it out; returns the keys of all other rows whose destinations may have changed. */
  set(key: string, row: Wanted | undefined): ReadonlySet<string> {
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
  settled(key: string): { readonly row: Wanted; readonly lost: readonly LostClaim[] } | undefined {
    const row = this.#wanted.get(key);
    if (row === undefined) return undefined;
    const lost = row.destinations.flatMap((destination) => {
      const winner = this.#winner(claimOf(destination, row.name.protocol));
      return winner === key ? [] : [{ row: key, destination, winner }];
    });
    if (lost.length === 0) return { row, lost };
    const gone = new Set<ClaimedPlace>(lost.map(({ destination }) => destination));
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

/** Reports which rows go without an address, each time that changes. */
export class LostClaimReports {
  readonly #said = new Map<string, string>();
  readonly #report: ((issue: Issue) => void) | undefined;

  constructor(report: ((issue: Issue) => void) | undefined) {
    this.#report = report;
  }

  /** Note what a row has lost now; `row` may be undefined when that is nothing. */
  note(key: string, row: Claimant | undefined, lost: readonly LostClaim[]): void {
    if (lost.length === 0 && !this.#said.has(key)) return;
    const text =
      row === undefined ? "" : lost.map(({ destination, winner }) => `${destinationName(destination, row)} is ${winner}'s`).join(", ");
    if (text === (this.#said.get(key) ?? "")) return;
    if (text === "") {
      this.#said.delete(key);
      return;
    }
    this.#said.set(key, text);
    this.#report?.({
      object: `Service port ${key}`,
      what: `an older Service has its address, left out: ${text}`,
      hint: "give one of them another address or port; it comes back by itself when the other goes",
    });
  }
}

/** Name a destination for people: `10.96.0.1:80/TCP`, `node port 30080/TCP`. */
export function destinationName({ address, port }: ClaimedPlace, { name }: Pick<Claimant, "name">): string {
  return address === "" ? `node port ${port}/${name.protocol}` : `${hostPort(address, port)}/${name.protocol}`;
}

/** Write a claim as text; equal texts want the same. */
export function claimOf({ address, port }: ClaimedPlace, protocol: Protocol): string {
  return `${address} ${port} ${protocol}`;
}

/** The usual change is one of endpoints: nobody's claims are touched. */
function hasSameClaims(a: Claimant, b: Claimant): boolean {
  if (a.createdMs !== b.createdMs || a.destinations.length !== b.destinations.length) return false;
  return a.destinations.every(({ address, port }, index) => {
    const other = b.destinations[index];
    return other?.address === address && other.port === port;
  });
}

function claimsOf(row: Claimant | undefined): readonly string[] {
  return row === undefined ? [] : row.destinations.map((destination) => claimOf(destination, row.name.protocol));
}
