import { cidrContains, parseCIDR, parseIP, type CIDR, type IPFamily } from "@turnout/core";

/** What decides which addresses of this host answer node ports, in one family. */
export interface AddressChoice {
  /** CIDRs and the keywords `primary`, `localhost`, `all`; empty means all. */
  readonly wanted: readonly string[];
  readonly family: IPFamily;
  /** The node's primary address of this family, canonical; undefined when unknown. */
  readonly primary: string | undefined;
  /** Addresses on the host's links. */
  readonly hostAddresses: readonly string[];
}

const LOCALHOST: Readonly<Record<IPFamily, string>> = { IPv4: "127.0.0.0/8", IPv6: "::1/128" };
const WILDCARD: Readonly<Record<IPFamily, string>> = { IPv4: "0.0.0.0", IPv6: "::" };

function resolveKeyword(text: string, { family, primary }: AddressChoice): string | undefined {
  if (text === "primary") return primary === undefined ? undefined : `${primary}/${family === "IPv4" ? 32 : 128}`;
  if (text === "localhost") return LOCALHOST[family];
  if (text === "all") return `${WILDCARD[family]}/0`;
  return text;
}

/**
 * Choose the addresses node ports (and health check node ports) answer on.
 *
 * Shape: sorted, unique addresses; all of them are the one wildcard address.
 * Edges: a family without a CIDR of its own means all, and so does a zero CIDR among others (both as upstream).
 * @source semantics.md 4.2; kube-proxy util/nodeport_addresses.go
 */
export function chooseNodeAddresses(choice: AddressChoice): readonly string[] {
  const { wanted, family, hostAddresses } = choice;
  const cidrs = wanted.flatMap((text): CIDR[] => {
    const cidr = parseCIDR(resolveKeyword(text, choice) ?? "");
    return cidr?.family === family ? [cidr] : [];
  });
  if (cidrs.length === 0 || cidrs.some((cidr) => cidr.prefixLength === 0)) return [WILDCARD[family]];
  const chosen = hostAddresses.filter((address) => {
    const ip = parseIP(address);
    return ip !== undefined && cidrs.some((cidr) => cidrContains(cidr, ip));
  });
  return [...new Set(chosen)].toSorted();
}
