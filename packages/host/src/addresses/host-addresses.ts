import { FAMILIES, unusableReason } from "@turnout/core";
import type { IPFamily } from "@turnout/core";
import type { HostAddress } from "../netlink/host-addresses.ts";

/** The addresses of a host per family: canonical, each once, sorted. */
export type HostAddresses = Readonly<Record<IPFamily, readonly string[]>>;

/**
 * Read the addresses of the host, for the facts of a backend.
 *
 * Shape: `list` is what gives them, a netlink's `addresses` on Linux. Link-local ones are left out: they come with every pod's link and never
 * answer node ports. So are those of `exceptLinks`, which are a backend's own.
 * @throws what `list` throws.
 */
export async function readHostAddresses(
  list: (family: IPFamily) => Promise<readonly Pick<HostAddress, "ip" | "link">[]>,
  ...exceptLinks: readonly string[]
): Promise<HostAddresses> {
  const addresses: Record<IPFamily, readonly string[]> = { IPv4: [], IPv6: [] };
  for (const family of FAMILIES) {
    const found = (await list(family)).flatMap(({ ip, link }) =>
      exceptLinks.includes(link) || unusableReason(ip) === "link-local" ? [] : [ip],
    );
    addresses[family] = [...new Set(found)].toSorted();
  }
  return addresses;
}
