import { hostPort } from "../model/addresses.ts";
import { serviceKeyOf } from "../model/names.ts";
import type { DestinationKind } from "../model/rows.ts";
import type { Claimant, ClaimedAddress, LostClaim, ResolvedClaims } from "./claims.ts";
import type { Issue, ServiceEvent } from "../model/api-objects.ts";

interface Named {
  readonly name: Pick<Claimant["name"], "protocol">;
}

/** In words, as what a row has a place. */
const AS: Readonly<Record<DestinationKind, string>> = {
  clusterIP: "cluster IP",
  nodePort: "node port",
  loadBalancerIP: "load-balancer IP",
  externalIP: "external IP",
};
/** Addresses of one row that a report names, and that have an Event. */
const SHOWN_MAX = 10;
const SERVICES_HINT = "give one of them another address or port";

/** What was reported about a row. */
interface Said {
  /** Names of destinations: lost, or held for now while other rows want them. */
  readonly names: ReadonlySet<string>;
  /** Undefined: the row has all that it wants. */
  readonly issue: Issue | undefined;
}

/**
 * Reports which rows go without an address: once, until they have it again and no other row wants it.
 *
 * Edges: an address that passes from one row to another is reported when it does so for the first time, for each row that loses it.
 */
export class LostClaimReports {
  readonly #said = new Map<string, Said>();
  readonly #report: ((issue: Issue) => void) | undefined;

  constructor(report: ((issue: Issue) => void) | undefined) {
    this.#report = report;
  }

  /** What rows go without now. */
  *issues(): Iterable<Issue> {
    for (const { issue } of this.#said.values()) if (issue !== undefined) yield issue;
  }

  /** Note what a row has lost now; undefined: there is no such row any more. */
  note(key: string, resolved: ResolvedClaims<Named> | undefined): void {
    const said = this.#said.get(key);
    if (said === undefined && (resolved === undefined || resolved.lost.length === 0)) return;
    const { row, lost, contested } = resolved ?? { row: undefined, lost: [], contested: [] };
    const nameOf = (destination: ClaimedAddress): string => (row === undefined ? "" : destinationName(destination, row));
    const lostNames = lost.map(({ destination }) => nameOf(destination));
    const names = new Set([...lostNames, ...contested.map(nameOf).filter((name) => said?.names.has(name) === true)]);
    if (row === undefined || names.size === 0) return void this.#said.delete(key);
    this.#said.set(key, { names, issue: lost.length === 0 ? undefined : issueOf(key, row, lost) });
    const news = lost.filter((_claim, index) => said?.names.has(lostNames[index] ?? "") !== true);
    if (news.length === 0) return;
    const events = news.slice(0, SHOWN_MAX).flatMap((claim) => eventsOf(key, row, claim));
    this.#report?.({ ...issueOf(key, row, news), events });
  }
}

function issueOf(key: string, row: Named, lost: readonly LostClaim[]): Issue {
  const texts = lost.slice(0, SHOWN_MAX).map((claim) => `${destinationName(claim.destination, row)} is ${ownerOf(claim)}`);
  const more = lost.length > SHOWN_MAX ? ` and ${lost.length - SHOWN_MAX} more` : "";
  return { object: `Service port ${key}`, what: `an address it can't have is left out: ${texts.join(", ")}${more}`, hint: hintFor(lost) };
}

function hintFor(lost: readonly LostClaim[]): string {
  if (lost.every(({ wonAs }) => wonAs === "serviceRange")) return "give the Service an external IP outside of that range";
  if (lost.every(({ isForNow }) => isForNow))
    return `it comes back by itself with a usable endpoint; ${SERVICES_HINT} if both are to be reached`;
  return `${SERVICES_HINT}; it gets the address by itself when the other no longer has it`;
}

/** What both Services are shown: the same, whichever of them holds the address now, so that a Service whose endpoints come and go is shown it once. */
function eventsOf(key: string, row: Named, { destination, winner, wonAs }: LostClaim): readonly ServiceEvent[] {
  const [loser, holder] = [serviceKeyOf(key), serviceKeyOf(winner)];
  if (wonAs === "serviceRange" || loser === holder) return [];
  const { kind } = destination;
  const isOutside = kind === "externalIP" || kind === "loadBalancerIP";
  const rule =
    kind !== wonAs
      ? `a ${AS[wonAs]} has precedence`
      : `the oldest Service has it${isOutside ? ", or the oldest of its namespace with a usable endpoint" : ""}`;
  const event = (service: string, otherKind: DestinationKind, other: string): ServiceEvent => ({
    reason: "AddressContested",
    service,
    note: `${destinationName(destination, row)} is also ${/^[aeiou]/.test(AS[otherKind]) ? "an" : "a"} ${AS[otherKind]} of Service ${other}: ${rule}; ${SERVICES_HINT}`,
  });
  return [event(loser, wonAs, holder), event(holder, kind, loser)];
}

/** Name a destination for people: `10.96.0.1:80/TCP`, `node port 30080/TCP`. */
export function destinationName({ address, port }: Pick<ClaimedAddress, "address" | "port">, { name }: Named): string {
  return address === "" ? `node port ${port}/${name.protocol}` : `${hostPort(address, port)}/${name.protocol}`;
}

function ownerOf({ winner, wonAs, isForNow }: LostClaim): string {
  if (wonAs === "serviceRange") return `in the service range ${winner}, where no external IP may be`;
  return `${winner}'s ${AS[wonAs]}${isForNow === true ? " as long as this one has no usable endpoint" : ""}`;
}
