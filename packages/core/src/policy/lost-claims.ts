import { hostPort } from "../model/addresses.ts";
import { serviceKeyOf } from "../model/names.ts";
import type { DestinationKind } from "../model/rows.ts";
import type { Claimant, ClaimedAddress, LostClaim, ResolvedClaims } from "./claims.ts";
import type { Issue, ServiceEvent } from "../model/api-objects.ts";

interface Named {
  readonly name: Pick<Claimant["name"], "protocol">;
}

/** In words, as what a Service has a place. */
const AS: Readonly<Record<DestinationKind | "endpoint", string>> = {
  clusterIP: "cluster IP",
  nodePort: "node port",
  loadBalancerIP: "load-balancer IP",
  externalIP: "external IP",
  endpoint: "endpoint",
};
/** Addresses of one row that a report names, and that have an Event. */
const SHOWN_MAX = 10;
const SERVICES_HINT = "give one of them another address or port";

/** What was reported about a row. */
interface Said {
  /** Names of destinations: lost, in use, or held for now while other rows want them. */
  readonly names: ReadonlySet<string>;
  /** None: the row has all that it wants, and nothing else uses it. */
  readonly issues: readonly Issue[];
}

/**
 * Reports which rows go without an address, or have one that something else uses: once, until they have it again and no other row wants it.
 *
 * Edges: an address that passes from one row to another is reported when it does so for the first time, for each row that loses it.
 */
export class LostClaimReports {
  readonly #said = new Map<string, Said>();
  readonly #report: ((issue: Issue) => void) | undefined;

  constructor(report: ((issue: Issue) => void) | undefined) {
    this.#report = report;
  }

  /** What rows go without or share now. */
  *issues(): Iterable<Issue> {
    for (const { issues } of this.#said.values()) yield* issues;
  }

  /** Note what a row has lost now; undefined: there is no such row any more. */
  note(key: string, resolved: ResolvedClaims<Named> | undefined): void {
    const said = this.#said.get(key);
    if (said === undefined && (resolved === undefined || resolved.lost.length + resolved.inUse.length === 0)) return;
    const { row, lost, inUse, contested } = resolved ?? { row: undefined, lost: [], inUse: [], contested: [] };
    const nameOf = (destination: ClaimedAddress): string => (row === undefined ? "" : destinationName(destination, row));
    const usedName = ({ destination }: LostClaim): string => `${nameOf(destination)} in use`;
    const lostName = ({ destination }: LostClaim): string => nameOf(destination);
    const stillSaid = contested.map(nameOf).filter((name) => said?.names.has(name) === true);
    const names = new Set([...lost.map(lostName), ...inUse.map(usedName), ...stillSaid]);
    if (row === undefined || names.size === 0) return void this.#said.delete(key);
    this.#said.set(key, { names, issues: [...lossesOf(key, row, lost), ...usesOf(key, row, inUse)] });
    const news = lost.filter((claim) => said?.names.has(lostName(claim)) !== true);
    const events = news.slice(0, SHOWN_MAX).flatMap((claim) => eventsOf(key, row, claim));
    for (const issue of lossesOf(key, row, news)) this.#report?.({ ...issue, events });
    const newUses = inUse.filter((claim) => said?.names.has(usedName(claim)) !== true);
    for (const issue of usesOf(key, row, newUses)) this.#report?.(issue);
  }
}

function lossesOf(key: string, row: Named, lost: readonly LostClaim[]): readonly Issue[] {
  if (lost.length === 0) return [];
  return [{ object: `Service port ${key}`, what: `an address it can't have is left out: ${textOf(lost, row)}`, hint: hintFor(lost) }];
}

function usesOf(key: string, row: Named, inUse: readonly LostClaim[]): readonly Issue[] {
  if (inUse.length === 0) return [];
  const isExternal = inUse.some(({ destination }) => destination.kind === "externalIP");
  const hint = `give the Service an address that nothing else uses${isExternal ? "; --strict-external-ips leaves external IPs in use out" : ""}`;
  return [{ object: `Service port ${key}`, what: `an address that is in use is taken from what uses it: ${textOf(inUse, row)}`, hint }];
}

function textOf(claims: readonly LostClaim[], row: Named): string {
  const texts = claims.slice(0, SHOWN_MAX).map((claim) => `${destinationName(claim.destination, row)} is ${ownerOf(claim)}`);
  return `${texts.join(", ")}${claims.length > SHOWN_MAX ? ` and ${claims.length - SHOWN_MAX} more` : ""}`;
}

function hintFor(lost: readonly LostClaim[]): string {
  if (lost.every(({ wonAs }) => wonAs === "serviceRange" || wonAs === "podRange"))
    return "give the Service an external IP outside of that range";
  if (lost.every(({ wonAs }) => !isOfServices(wonAs) || wonAs === "endpoint"))
    return "give the Service an external IP that nothing else uses";
  if (lost.every(({ isForNow }) => isForNow))
    return `it comes back by itself with a usable endpoint; ${SERVICES_HINT} if both are to be reached`;
  return `${SERVICES_HINT}; it gets the address by itself when the other no longer has it`;
}

/** What both Services are shown: the same, whichever of them holds the address now, so that a Service whose endpoints come and go is shown it once. */
function eventsOf(key: string, row: Named, { destination, winner, wonAs }: LostClaim): readonly ServiceEvent[] {
  const [loser, holder] = [serviceKeyOf(key), wonAs === "endpoint" ? winner : serviceKeyOf(winner)];
  if (!isOfServices(wonAs) || loser === holder) return [];
  const { kind } = destination;
  const isOutside = kind === "externalIP" || kind === "loadBalancerIP";
  const rule =
    kind !== wonAs
      ? `${withArticle(wonAs)} has precedence`
      : `the oldest Service has it${isOutside ? ", or the oldest of its namespace with a usable endpoint" : ""}`;
  const event = (service: string, otherKind: keyof typeof AS, other: string): ServiceEvent => ({
    reason: "AddressContested",
    service,
    note: `${destinationName(destination, row)} is also ${withArticle(otherKind)} of Service ${other}: ${rule}; ${SERVICES_HINT}`,
  });
  return [event(loser, wonAs, holder), event(holder, kind, loser)];
}

function withArticle(kind: keyof typeof AS): string {
  return `${/^[aeiou]/.test(AS[kind]) ? "an" : "a"} ${AS[kind]}`;
}

/** Name a destination for people: `10.96.0.1:80/TCP`, `node port 30080/TCP`. */
export function destinationName({ address, port }: Pick<ClaimedAddress, "address" | "port">, { name }: Named): string {
  return address === "" ? `node port ${port}/${name.protocol}` : `${hostPort(address, port)}/${name.protocol}`;
}

/** Tell whether another Service has it, and not the cluster itself. */
function isOfServices(wonAs: LostClaim["wonAs"]): wonAs is keyof typeof AS {
  return wonAs in AS;
}

function ownerOf({ winner, wonAs, isForNow }: LostClaim): string {
  if (wonAs === "serviceRange") return `in the service range ${winner}, where no external IP may be`;
  if (wonAs === "podRange") return `in the pod range ${winner}`;
  if (wonAs === "source") return "where proxies reach the API server";
  if (wonAs === "node") return "an address of a Node";
  if (wonAs === "endpoint") return `an endpoint of Service ${winner}`;
  return `${winner}'s ${AS[wonAs]}${isForNow === true ? " as long as this one has no usable endpoint" : ""}`;
}
