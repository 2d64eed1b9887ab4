import { ProxyError, refuseUnknownOptions } from "@turnout/core/backend";
import type { IPFamily, OptionKinds, Plain } from "@turnout/core/backend";
import type { IptablesVariant } from "@turnout/host/iptables";

/** What this backend can be told. */
export interface IptablesOptions {
  /** Which implementation of iptables to use; `auto`: the one the rest of the host uses. */
  readonly variant: "auto" | IptablesVariant;
  /** Say in the rules of each endpoint whose it is; `auto`: as kube-proxy does, where there are not more than 1,000 endpoints. */
  readonly endpointComments: "auto" | boolean;
  /** Node ports answer on 127.0.0.1 as well, where node-port addresses hold it (IPv4). */
  readonly localhostNodePorts: boolean;
}

/** What rendering knows of the host. */
export interface IptablesFacts {
  /** Addresses of the host per family, canonical, without link-local ones. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
  /** The kernel counts packets outside of a TCP window as valid, so there is nothing to drop. */
  readonly isTcpLiberal: boolean;
  /** The kernel has named counters of packets, which rules may name. */
  readonly canCount: boolean;
}

/** What {@link parseIptablesOptions} takes. */
export const IPTABLES_OPTIONS: OptionKinds = {
  variant: "text",
  "endpoint-comments": "any",
  localhostNodePorts: "switch",
};

/**
 * Check options given by name: `variant` (auto, legacy or nft), `endpoint-comments` (auto, true or false) and `localhostNodePorts`
 * (true, the default, or false).
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function parseIptablesOptions(raw: Readonly<Record<string, Plain>>): IptablesOptions {
  refuseUnknownOptions("iptables", IPTABLES_OPTIONS, raw);
  const variant = raw["variant"] ?? "auto";
  if (variant !== "auto" && variant !== "legacy" && variant !== "nft")
    throw new ProxyError("invalid_object", "variant must be auto, legacy or nft");
  const endpointComments = raw["endpoint-comments"] ?? "auto";
  if (endpointComments !== "auto" && typeof endpointComments !== "boolean")
    throw new ProxyError("invalid_object", "endpoint-comments must be auto, true or false");
  const localhostNodePorts = raw["localhostNodePorts"] ?? true;
  if (typeof localhostNodePorts !== "boolean") throw new ProxyError("invalid_object", "localhostNodePorts must be true or false");
  return { variant, endpointComments, localhostNodePorts };
}
