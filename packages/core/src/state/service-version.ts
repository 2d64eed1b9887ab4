import { cidrContains, parseCIDR, parseIP } from "../model/addresses.ts";
import type { CIDR, IP } from "../model/addresses.ts";
import type { NodeContext, ServicePort } from "../model/rows.ts";
import { localizedParts, rowKeysOf, rowsOfParts } from "../policy/service-rows.ts";
import type { ServiceParts } from "../policy/service-rows.ts";
import type { NodeFacts } from "./node-place.ts";
import type { RecentRows } from "./recent-rows.ts";
import { withoutLost } from "./service-claims.ts";

/** What a Service sees of a node besides its name. */
interface SeenNode {
  /** "" where no endpoint is meant for its zone. */
  readonly zone: string;
  /** Source ranges hold its address. */
  readonly isInside: boolean;
  /** Those in which an external IP is. */
  readonly podRanges: readonly CIDR[];
}

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
  /** Rows of nodes without a name here, with all external IPs: without those in pod ranges nearly every node could be a kind of its own. */
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

  /** Endpoints and addresses it has over all ports: what it weighs. */
  get weight(): number {
    const { addresses, portEndpoints } = this.parts;
    const others = addresses.externalIPs.length + addresses.loadBalancerIPs.length;
    return portEndpoints.reduce((sum, { endpoints }) => sum + endpoints.length + others, 1);
  }

  /** It tells nodes apart by their zone, address or pod ranges, besides their names. */
  get isChoosy(): boolean {
    return this.#zones.size > 0 || this.#ranges.length > 0 || this.#external.length > 0;
  }

  /** Say what it sees of a node besides its name, as text: nodes with equal text have equal rows. */
  kindOf(node: NodeFacts): string {
    if (!this.isChoosy) return node.rules;
    const seen = this.#seen(node);
    const kind = sharedKindOf(node, seen);
    return seen.podRanges.length === 0 ? kind : `${kind} ${seen.podRanges.map(({ text }) => text).join(",")}`;
  }

  /** Get the rows of a node. Those of nodes with a name here are kept in `recent`, others as {@link ServiceVersion.sharedRowsAt} says. */
  rowsAt(node: NodeFacts, recent: RecentRows): readonly ServicePort[] {
    const { name } = node.context;
    if (!this.nodeNames.has(name)) return this.sharedRowsAt(node);
    return recent.get(`${this.#serial} ${name} ${this.kindOf(node)}`, this.weight, () => this.ownRowsAt(node));
  }

  /** Make the rows of a node with a name here, for who asks once: of a thousand nodes kept ones would be gone before they are asked for again. */
  ownRowsAt(node: NodeFacts): readonly ServicePort[] {
    const seen = this.#seen(node);
    return this.#withoutExternal(this.#make(node, seen, node.context.name), seen.podRanges);
  }

  /**
   * Get the rows of all nodes that are like this one and have no name here. They are kept for as long as this is, but for rows that lack
   * external IPs in the node's pod ranges: a tenant can claim one of each node, and those are made for each that asks.
   */
  sharedRowsAt(node: NodeFacts): readonly ServicePort[] {
    const seen = this.#seen(node);
    const kind = sharedKindOf(node, seen);
    let rows = this.#shared.get(kind);
    if (rows === undefined) this.#shared.set(kind, (rows = this.#make(node, seen, "")));
    return this.#withoutExternal(rows, seen.podRanges);
  }

  #seen({ context, address, podRanges }: NodeFacts): SeenNode {
    const isInside = address !== undefined && this.#ranges.some((range) => cidrContains(range, address));
    const isClaimed = (range: CIDR): boolean => hasOneIn(this.#external, range);
    return { zone: this.#zones.has(context.zone) ? context.zone : "", isInside, podRanges: podRanges.filter(isClaimed) };
  }

  #make(node: NodeFacts, { zone, isInside }: SeenNode, name: string): readonly ServicePort[] {
    const context: NodeContext = { ...node.context, name, zone, addresses: isInside ? node.context.addresses : [] };
    const { rows } = rowsOfParts(name === "" ? this.parts : localizedParts(this.parts, name), context);
    return this.lost.size === 0 ? rows : rows.map((row) => withoutLost(row, this.lost));
  }

  /** Rows as they are on a node with these pod ranges. */
  #withoutExternal(rows: readonly ServicePort[], podRanges: readonly CIDR[]): readonly ServicePort[] {
    if (podRanges.length === 0) return rows;
    const theirs = new Set(this.#external.filter((ip) => podRanges.some((range) => cidrContains(range, ip))).map(({ text }) => text));
    return rows.map((row) => {
      const destinations = row.destinations.filter(({ kind, address }) => kind !== "externalIP" || !theirs.has(address));
      return destinations.length === row.destinations.length ? row : { ...row, destinations };
    });
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

/** What is the same for nodes whose rows differ by their names and pod ranges only, as text. */
function sharedKindOf({ rules }: NodeFacts, { zone, isInside }: SeenNode): string {
  return zone === "" && !isInside ? rules : `${rules} ${isInside ? "inside" : ""} ${zone}`;
}
