import { cidrContains, parseCIDR } from "../model/addresses.ts";
import type { CIDR } from "../model/addresses.ts";
import type { NodeContext, ServicePort } from "../model/rows.ts";
import { localizedParts, rowKeysOf, rowsOfParts } from "../policy/service-rows.ts";
import type { ServiceParts } from "../policy/service-rows.ts";
import type { NodeFacts } from "./node-place.ts";
import type { RecentRows } from "./recent-rows.ts";
import { withoutLost } from "./service-claims.ts";

const NONE: ReadonlySet<string> = new Set();

/**
 * One Service as it is from one revision to the next, for any node: its rows are made once for all nodes that it can't
 * tell apart. It tells apart nodes by name where an endpoint runs on them or is meant for them, by zone where endpoints
 * are meant for it, and by whether source ranges hold their address; by nothing else but the rules.
 */
export class ServiceVersion {
  readonly parts: ServiceParts;
  /** Keys of its rows, in order. */
  readonly rowKeys: readonly string[];
  /** What of `rowKey claim` other rows have. */
  readonly lost: readonly string[];
  /** Unique among versions of one table. */
  readonly #serial: number;
  readonly #names: ReadonlySet<string>;
  readonly #zones: ReadonlySet<string>;
  readonly #ranges: readonly CIDR[];
  /** Rows of nodes without a name here. */
  readonly #shared = new Map<string, readonly ServicePort[]>();

  constructor(serial: number, parts: ServiceParts, lost: readonly string[]) {
    const { addresses, candidates } = parts;
    this.#serial = serial;
    this.parts = parts;
    this.lost = lost;
    this.rowKeys = rowKeysOf(parts);
    const all = candidates.flat();
    this.#names = setOf(all.flatMap(({ endpoint, nodeHints }) => [endpoint.nodeName ?? "", ...nodeHints]));
    this.#zones = setOf(all.flatMap(({ zoneHints }) => zoneHints));
    const ranges = addresses.loadBalancerIPs.length > 0 ? addresses.sourceRanges : [];
    this.#ranges = ranges.map((text) => parseCIDR(text)).filter((cidr) => cidr !== undefined);
  }

  /** Endpoints it has over all ports: what it weighs. */
  get weight(): number {
    return this.parts.candidates.reduce((sum, { length }) => sum + length, 1);
  }

  /** Get the rows of a node. Those of nodes with a name here are kept in `recent`, all others for as long as this is. */
  rowsAt(node: NodeFacts, recent: RecentRows): readonly ServicePort[] {
    const { context, address } = node;
    const zone = this.#zones.has(context.zone) ? context.zone : "";
    const isInside = address !== undefined && this.#ranges.some((range) => cidrContains(range, address));
    const cacheKey = zone === "" && !isInside ? node.rules : `${node.rules} ${isInside ? "inside" : ""} ${zone}`;
    const addresses = isInside ? context.addresses : [];
    if (this.#names.has(context.name)) {
      const make = (): readonly ServicePort[] => this.#make({ ...context, zone, addresses });
      return recent.get(`${this.#serial} ${context.name} ${cacheKey}`, this.weight, make);
    }
    let rows = this.#shared.get(cacheKey);
    if (rows === undefined) this.#shared.set(cacheKey, (rows = this.#make({ ...context, name: "", zone, addresses })));
    return rows;
  }

  #make(context: NodeContext): readonly ServicePort[] {
    const rows = rowsOfParts(context.name === "" ? this.parts : localizedParts(this.parts, context.name), context);
    return this.lost.length === 0 ? rows : rows.map((row) => withoutLost(row, this.lost));
  }
}

/** Names that are none ("") are left out. */
function setOf(names: readonly string[]): ReadonlySet<string> {
  const found = new Set(names);
  found.delete("");
  return found.size === 0 ? NONE : found;
}
