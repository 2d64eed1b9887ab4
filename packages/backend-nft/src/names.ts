import { hash } from "node:crypto";
import { ProxyError } from "@turnout/core/backend";
import type { IPFamily } from "@turnout/core/backend";

/** The table, one per family; nothing outside it is ever touched. */
export const TABLE = "turnout";

/** Version of the maps, sets and base chains; a table of another version is replaced as a whole. */
export const LAYOUT_VERSION = "5";

/** What the layout is called with the sets that count; a table that is to count, and doesn't, is replaced as a whole. */
export function layoutName(isCounting: boolean): string {
  return isCounting ? `${LAYOUT_VERSION}-counting` : LAYOUT_VERSION;
}

/** An empty chain whose name says which layout the table has. */
export function layoutChain(isCounting: boolean): string {
  return `layout-${layoutName(isCounting)}`;
}

/** nft's word for each family. */
export const NFT_FAMILY: Readonly<Record<IPFamily, "ip" | "ip6">> = { IPv4: "ip", IPv6: "ip6" };

/** Chain that answers with an ICMP port unreachable ("reject" is a keyword of nft). */
export const REFUSE_CHAIN = "refuse";

/** Chain that refuses node ports of UDP and SCTP on loopback, and counts them by protocol in {@link LOOPBACK_SET} first. */
export const LOOPBACK_CHAIN = "refuse-on-loopback";

/** The set that chain counts in. */
export const LOOPBACK_SET = "loopback-rejects";

/** Chain that drops where a policy says so, and counts that first. */
export const DISCARD_CHAIN = "discard";

/** Chain that drops what comes from outside of source ranges, and counts that first. */
export const OUTSIDE_CHAIN = "outside";

/** Chain that counts the bytes of translated flows. */
export const BYTES_CHAIN = "bytes";

/** A digest of text: 16 hexadecimal digits, for names and for telling chains apart. 64 bits, because tenants choose the text and could look for two alike. */
export function digest(text: string): string {
  return hash("sha256", text).slice(0, 16);
}

/** 62 bits of a digest: two numbers for lookup keys (31 bits each: nft's JSON shows larger ones as negative), and 16 digits for names. */
export interface Fingerprint {
  readonly high: number;
  readonly low: number;
  readonly hex: string;
}

/** Derive the fingerprint of a row's pool or endpoint. */
export function fingerprint(text: string): Fingerprint {
  const hex = hash("sha256", text);
  const high = Number.parseInt(hex.slice(0, 8), 16) >>> 1;
  const low = Number.parseInt(hex.slice(8, 16), 16) >>> 1;
  return { high, low, hex: high.toString(16).padStart(8, "0") + low.toString(16).padStart(8, "0") };
}

/** The map of the clients of one row with affinity, and the number of the endpoint that each was sent to. */
export function clientsMap(rowKey: string): string {
  return `affinity-${fingerprint(rowKey).hex}`;
}

/** Tell whether a map is one of clients, by its name: packets write what is in it. */
export function isClientsMap(name: string): boolean {
  return /^affinity-[0-9a-f]{16}$/.test(name);
}

/** The map of the endpoints of a pool with affinity, by the name of the pool's chain. */
export function servingMap(chain: string): string {
  return chain.replace(/^affinity/, "serving");
}

/** Tell whether a map is one of those, by its name. */
export function isServingMap(name: string): boolean {
  return name.startsWith("serving-");
}

/**
 * The name of a device in a rule.
 * @throws {ProxyError} `invalid_object` when it can't be one.
 */
export function interfaceName(name: string, suffix: "" | "*" = ""): string {
  if (!/^[A-Za-z0-9_.:@-]{1,15}$/.test(name)) {
    throw new ProxyError("invalid_object", `bad interface name ${JSON.stringify(name)}`, {
      hint: "use up to 15 letters, digits or _ . : @ -",
    });
  }
  return `${name}${suffix}`;
}
