import { cidrContains, parseCIDR, parseIP } from "./addresses.ts";
import type { IPFamily } from "./api-objects.ts";
import type { NodeSettings } from "./rows.ts";

/** Words that stand for addresses among those that node ports answer on. */
export const NODE_PORT_KEYWORDS: ReadonlySet<string> = new Set(["primary", "localhost", "all"]);

/** What decides which addresses of a host answer node ports, in one family. */
export interface NodePortChoice {
  /** CIDRs and the keywords `primary`, `localhost`, `all`; empty means all. */
  readonly wanted: readonly string[];
  readonly family: IPFamily;
  /** The node's primary address of this family, canonical; undefined while unknown. */
  readonly primary: string | undefined;
  /** Addresses on the host's links, canonical. */
  readonly hostAddresses: readonly string[];
}

const LOCALHOST: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.0/8", IPv6: "::1/128" };

/**
 * Choose the addresses that node ports and health check node ports answer on.
 *
 * Shape: `all`, or sorted, unique addresses of the host, loopback among them only where asked for.
 * Edges: a family without a CIDR of its own is match-all, also when `primary` finds no address, and so is
 * one with a zero CIDR.
 * @source kube-proxy util/nodeport_addresses.go; rules
 */
export function nodePortAddresses(choice: NodePortChoice): "all" | readonly string[] {
  const { wanted, family, hostAddresses } = choice;
  const cidrs = wanted
    .flatMap((entry) => keyword(entry, choice))
    .flatMap((text) => parseCIDR(text) ?? [])
    .filter((cidr) => cidr.family === family);
  if (cidrs.length === 0 || cidrs.some(({ prefixLength }) => prefixLength === 0)) return "all";
  const chosen = hostAddresses.filter((address) => {
    const ip = parseIP(address);
    return ip !== undefined && cidrs.some((cidr) => cidrContains(cidr, ip));
  });
  return [...new Set(chosen)].sort();
}

/** Where node ports answer on loopback, if they do. */
export const LOOPBACK_ADDRESS: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.1", IPv6: "::1" };

/**
 * Tell whether the settings name loopback as an address of node ports in one family, not only as a part of all addresses. Pure.
 *
 * Edges: a range within loopback counts if 127.0.0.1 is in it, which is what answers.
 * @source kube-proxy util/nodeport_addresses.go ContainsExplicitLoopback; KEP-6032; rule R-38
 */
export function namesLoopback(
  { nodePortAddresses: wanted = [], localhostNodePorts }: Pick<NodeSettings, "nodePortAddresses" | "localhostNodePorts">,
  family: IPFamily,
): boolean {
  const loopback = parseIP(LOOPBACK_ADDRESS[family]);
  const shortest = Number(LOCALHOST[family].slice(LOCALHOST[family].indexOf("/") + 1));
  return (
    localhostNodePorts !== false &&
    wanted.some((entry) => {
      const cidr = parseCIDR(entry === "localhost" ? LOCALHOST[family] : entry);
      return loopback !== undefined && cidr !== undefined && cidr.prefixLength >= shortest && cidrContains(cidr, loopback);
    })
  );
}

function keyword(entry: string, { family, primary }: NodePortChoice): readonly string[] {
  if (entry === "all") return [family === "IPv4" ? "0.0.0.0/0" : "::/0"];
  if (entry === "localhost") return [LOCALHOST[family]];
  if (entry !== "primary") return [entry];
  return primary === undefined ? [] : [`${primary}/${family === "IPv4" ? 32 : 128}`];
}
