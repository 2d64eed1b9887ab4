import { switchOption, wordOption } from "@turnout/core/backend";
import type { IPFamily, OptionsOf } from "@turnout/core/backend";
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

/** The options by name. */
export const IPTABLES_OPTIONS: OptionsOf<IptablesOptions> = {
  variant: wordOption("variant", ["auto", "legacy", "nft"], "auto"),
  endpointComments: wordOption("endpoint-comments", ["auto", true, false], "auto"),
  localhostNodePorts: switchOption("localhostNodePorts", true),
};
