import { parseCIDR, ProxyError, type AllowedAddresses, type CIDR } from "@turnout/core";
import { typedTexts, type RawFlags } from "./config-flags.ts";
import { switchOf } from "./config-kinds.ts";

/** The flags that say which addresses Services may have besides their cluster IPs, without dashes. */
export const ALLOWED_ADDRESS_FLAGS = {
  externalIPs: "allowed-external-ip-cidrs",
  loadBalancerIPs: "allowed-load-balancer-ip-cidrs",
  strictSourceRanges: "strict-source-ranges",
  strictExternalIPs: "strict-external-ips",
} as const;

/** Allows no address at all. */
const NONE = "none";

/**
 * Read which addresses Services may have besides their cluster IPs.
 *
 * Shape: CIDRs with commas between them, or `none`; a flag that is given again adds to the list. A flag that isn't given allows all.
 * @throws {ProxyError} `invalid_object` naming the flag.
 */
export function allowedAddresses(flags: RawFlags): Pick<AllowedAddresses, "externalIPs" | "loadBalancerIPs"> {
  const { externalIPs, loadBalancerIPs } = ALLOWED_ADDRESS_FLAGS;
  return { externalIPs: listIn(flags, externalIPs), loadBalancerIPs: listIn(flags, loadBalancerIPs) };
}

/** The switches among them. */
export const STRICT_SETTINGS = ["strictSourceRanges", "strictExternalIPs"] as const;

/** Read one of the switches: as the flag says, or as the file does. @throws {ProxyError} `invalid_object` naming the flag. */
export function isStrict(setting: (typeof STRICT_SETTINGS)[number], flags: RawFlags, isStrictInFile: boolean): boolean {
  const name = ALLOWED_ADDRESS_FLAGS[setting];
  const typed = typedTexts(flags, name).at(-1);
  return typed === undefined ? isStrictInFile : switchOf(`--${name}`, typed);
}

function listIn(flags: RawFlags, name: string): readonly CIDR[] | undefined {
  const texts = typedTexts(flags, name);
  if (texts.length === 0) return undefined;
  if (texts.every((text) => text === NONE)) return [];
  // An empty list would mean "not set" in kube-proxy's flags, and "none" to others: neither is guessed.
  const hint = `write CIDRs like 203.0.113.0/24,2001:db8::/64, or ${NONE}`;
  return texts
    .flatMap((text) => String(text).split(","))
    .map((part) => {
      const cidr = parseCIDR(part);
      if (cidr === undefined) throw new ProxyError("invalid_object", `"${part}" is not a CIDR`, { object: `--${name}`, hint });
      return cidr;
    });
}
