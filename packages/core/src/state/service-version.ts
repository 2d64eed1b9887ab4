import { cidrContains, parseCIDR, parseIP } from "../model/addresses.ts";
import type { CIDR, IP } from "../model/addresses.ts";
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
 * are meant for it, by whether source ranges hold their address, and by whether an external IP is in their pod ranges; by nothing else but the
 * rules.
 */
export class ServiceVersion {
  readonly parts: ServiceParts;
  /** Keys of its rows, in order. */
  readonly rowKeys: readonly string[];
  /** What of `rowKey claim` other rows have. */
  readonly lost: ReadonlySet<string>;
  /** Nodes that it tells from others by their names: an endpoint runs on them or is meant for them. */
  readonly nodeNames: ReadonlySet<string>;
  /** Unique among versions of one table. */
  readonly #serial: number;
  readonly #zones: ReadonlySet<string>;
  readonly #ranges: readonly CIDR[];
  /** Its external IPs, sorted. */
  readonly #external: readonly IP[];
  /** Rows of nodes without a name here. */
  readonly #shared = new Map<string, readonly ServicePort[]>();

  constructor(serial: number, parts: ServiceParts, lost: ReadonlySet<string>) {
    const { addresses, portEndpoints } = parts;
    this.#serial = serial;
    this.parts = parts;
    this.lost = lost;
    this.rowKeys = rowKeysOf(parts);
    const all = portEndpoints.flatMap(({ entries, rivals }) =>
      rivals.length === 0 ? entries : [...entries, ...rivals.map(({ entry }) => entry)],
    );
    this.nodeNames = setOf(all.flatMap(({ nodeName = "", nodeHints }) => (nodeHints.length === 0 ? nodeName : [nodeName, ...nodeHints])));
    this.#zones = setOf(all.flatMap(({ zoneHints }) => zoneHints));
    const ranges = addresses.loadBalancerIPs.length > 0 ? addresses.sourceRanges : [];
    this.#ranges = ranges.map((text) => parseCIDR(text)).filter((cidr) => cidr !== undefined);
    this.#external = addresses.externalIPs.flatMap((ip) => parseIP(ip) ?? []).toSorted((a, b) => (a.value < b.value ? -1 : 1));
  }

  /** Endpoints it has over all ports: what it weighs. */
  get weight(): number {
    return this.parts.portEndpoints.reduce((sum, { endpoints }) => sum + endpoints.length, 1);
  }

  /** It tells nodes apart by their zone, address or pod ranges, besides their names. */
  get isChoosy(): boolean {
    return this.#zones.size > 0 || this.#ranges.length > 0 || this.#external.length > 0;
  }

  /** Say what it sees of a node besides its name, as text: nodes with equal text have equal rows. */
  kindOf(node: NodeFacts): string {
    if (!this.isChoosy) return node.rules;
    const { zone, isInside, podRanges } = this.#seen(node);
    if (zone === "" && !isInside && podRanges.length === 0) return node.rules;
    return `${node.rules} ${isInside ? "inside" : ""} ${zone} ${podRanges.map(({ text }) => text).join(",")}`;
  }

  /** Get the rows of a node. Those of nodes with a name here are kept in `recent`, all others for as long as this is. */
  rowsAt(node: NodeFacts, recent: RecentRows): readonly ServicePort[] {
    const { name } = node.context;
    if (!this.nodeNames.has(name)) return this.sharedRowsAt(node);
    return recent.get(`${this.#serial} ${name} ${this.kindOf(node)}`, this.weight, () => this.ownRowsAt(node));
  }

  /** Make the rows of a node with a name here, for who asks once: of a thousand nodes kept ones would be gone before they are asked for again. */
  ownRowsAt(node: NodeFacts): readonly ServicePort[] {
    return this.#make(node, node.context.name);
  }

  /** Get the rows of all nodes that are like this one and have no name here. */
  sharedRowsAt(node: NodeFacts): readonly ServicePort[] {
    const kind = this.kindOf(node);
    let rows = this.#shared.get(kind);
    if (rows === undefined) this.#shared.set(kind, (rows = this.#make(node, "")));
    return rows;
  }

  #seen({ context, address, podRanges }: NodeFacts): {
    readonly zone: string;
    readonly isInside: boolean;
    readonly podRanges: readonly CIDR[];
  } {
    const isInside = address !== undefined && this.#ranges.some((range) => cidrContains(range, address));
    const isClaimed = (range: CIDR): boolean => hasOneIn(this.#external, range);
    return { zone: this.#zones.has(context.zone) ? context.zone : "", isInside, podRanges: podRanges.filter(isClaimed) };
  }

  #make(node: NodeFacts, name: string): readonly ServicePort[] {
    const { zone, isInside, podRanges } = this.#seen(node);
    const context: NodeContext = { ...node.context, name, zone, addresses: isInside ? node.context.addresses : [] };
    const { rows } = rowsOfParts(name === "" ? this.parts : localizedParts(this.parts, name), context);
    if (this.lost.size === 0 && podRanges.length === 0) return rows;
    return rows.map((row) => withoutExternal(withoutLost(row, this.lost), podRanges));
  }
}

/** Names that are none ("") are left out. */
function setOf(names: readonly string[]): ReadonlySet<string> {
  const found = new Set(names);
  found.delete("");
  return found.size === 0 ? NONE : found;
}

/** Tell whether one of the sorted addresses lies in a range. */
function hasOneIn(sorted: readonly IP[], range: CIDR): boolean {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as IP).value < range.value) low = middle + 1;
    else high = middle;
  }
  const next = sorted[low];
  return next !== undefined && cidrContains(range, next);
}

/** A row as it is on a node with these pod ranges. */
function withoutExternal(row: ServicePort, podRanges: readonly CIDR[]): ServicePort {
  if (podRanges.length === 0) return row;
  const isTheirs = (address: string): boolean => {
    const ip = parseIP(address);
    return ip !== undefined && podRanges.some((range) => cidrContains(range, ip));
  };
  const destinations = row.destinations.filter(({ kind, address }) => kind !== "externalIP" || !isTheirs(address));
  return destinations.length === row.destinations.length ? row : { ...row, destinations };
}
