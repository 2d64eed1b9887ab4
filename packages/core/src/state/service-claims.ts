import type { Issue } from "../model/api-objects.ts";
import { serviceKeyOf } from "../model/names.ts";
import type { ServicePort } from "../model/rows.ts";
import { claimOf, Claims } from "../policy/claims.ts";
import type { Claimant } from "../policy/claims.ts";
import { destinationsFor } from "../policy/destinations.ts";
import type { PoolSizes, RuleContext } from "../policy/destinations.ts";
import type { SlicesByService } from "../policy/endpoints-in-use.ts";
import type { Ground } from "../policy/ground.ts";
import { LostClaimReports } from "../policy/lost-claims.ts";
import { DEFAULT_SETTINGS } from "../policy/node-context.ts";
import { rowKeysOf } from "../policy/service-rows.ts";
import type { ServiceParts } from "../policy/service-rows.ts";

const NONE: ReadonlySet<string> = new Set();

/** What is kept of a row: not its endpoints. */
interface CommonClaimant extends Claimant {
  readonly hasUsable: boolean;
}
/** Neither decides on which addresses a row answers. */
const NO_POOLS: PoolSizes = { cluster: 0, local: 0, hasUsableEndpoints: false };
const NO_NODE: RuleContext = { addresses: [], detector: undefined, settings: DEFAULT_SETTINGS };

/** Which Service has a contested address; the same on every node, so it is worked out once for all. */
export class ServiceClaims {
  readonly #claims = new Claims<CommonClaimant>(({ hasUsable }) => hasUsable);
  readonly #reports: LostClaimReports;

  /** `report` hears of contested addresses, each once. */
  constructor(report: ((issue: Issue) => void) | undefined) {
    this.#reports = new LostClaimReports(report);
  }

  /** What rows go without now. */
  issues(): Iterable<Issue> {
    return this.#reports.issues();
  }

  /** Take in what the cluster has of its own; returns Services that may have lost or got something by that. */
  setGround(ground: Ground): ReadonlySet<string> {
    return new Set([...this.#claims.setGround(ground)].map(serviceKeyOf));
  }

  /** Take in the slices of Services that changed, after their claims; returns Services that may have lost or got something by that. */
  setEndpoints(changed: Iterable<string>, source: SlicesByService): ReadonlySet<string> {
    const affected = new Set<string>();
    this.#claims.setEndpoints(changed, source, affected);
    return new Set([...affected].map(serviceKeyOf));
  }

  /** Put a Service's new claims in the place of its old ones; returns other Services whose destinations may have changed. */
  set(before: ServiceParts | undefined, after: ServiceParts | undefined): ReadonlySet<string> {
    // The usual change is one of endpoints, of which some are usable before and after.
    if (before !== undefined && before.service === after?.service && isUsableAlike(before, after)) return NONE;
    const services = new Set<string>();
    const wanted = claimantsOf(after);
    const rows = new Set([...claimantsOf(before).keys(), ...wanted.keys()]);
    for (const key of rows) {
      const affected = new Set<string>();
      this.#claims.set(key, wanted.get(key), affected);
      for (const other of affected) if (other !== key) services.add(serviceKeyOf(other));
    }
    return services;
  }

  /** Tell what these rows want and others have, as {@link withoutLost} takes it; what is new of that is reported. */
  lostBy(rowKeys: Iterable<string>): ReadonlySet<string> {
    const texts = new Set<string>();
    for (const key of rowKeys) {
      const resolved = this.#claims.resolve(key);
      this.#reports.note(key, resolved);
      if (resolved === undefined) continue;
      const { protocol } = resolved.row.name;
      for (const { destination } of resolved.lost) texts.add(lostText(key, claimOf(destination, protocol)));
    }
    return texts;
  }
}

/** A row as it is without the destinations among these; itself when it has none of them. */
export function withoutLost(row: ServicePort, lost: ReadonlySet<string>): ServicePort {
  const destinations = row.destinations.filter((destination) => !lost.has(lostText(row.key, claimOf(destination, row.name.protocol))));
  return destinations.length === row.destinations.length ? row : { ...row, destinations };
}

function lostText(key: string, claim: string): string {
  return `${key} ${claim}`;
}

function isUsableAlike(before: ServiceParts, after: ServiceParts): boolean {
  return before.portEndpoints.every(({ hasUsable }, index) => hasUsable === after.portEndpoints[index]?.hasUsable);
}

/** What a Service's rows want to answer on; the same on every node. */
function claimantsOf(parts: ServiceParts | undefined): ReadonlyMap<string, CommonClaimant> {
  if (parts === undefined) return new Map();
  const { service, addresses, portEndpoints } = parts;
  const keys = rowKeysOf(parts);
  const claimants = service.ports.map((port, index): readonly [string, CommonClaimant] => {
    const all = destinationsFor(service, port, addresses, NO_POOLS, NO_NODE);
    const destinations = all.map(({ kind, address, port: number }) => ({ kind, address, port: number }));
    const name = { namespace: service.namespace, protocol: port.protocol };
    return [keys[index] ?? "", { createdMs: service.createdMs, name, destinations, hasUsable: portEndpoints[index]?.hasUsable === true }];
  });
  return new Map(claimants);
}
