import { networkInterfaces } from "node:os";
import { canonicalIP } from "@turnout/core/backend";
import type { World } from "@turnout/core/backend";
import type { HnsHost } from "./hns/host.ts";
import { loadHnsCalls } from "./native/libraries.ts";
import { WindowsHns } from "./native/windows-hns.ts";

/** An address of this host. */
export interface HostLinkAddress {
  /** Canonical. */
  readonly ip: string;
  /** Lower case with `-`. */
  readonly mac: string;
}

/** What this backend touches: HNS, and what Node tells of the host. */
export interface WinkernelWorld extends World {
  readonly hns: HnsHost;
  /** The host's addresses now, without link-local ones. */
  addresses(): readonly HostLinkAddress[];
  /** KUBE_NETWORK of the environment; "": not set. */
  readonly networkName: string;
}

/** Add HNS and this host. Touches nothing yet. */
export function createWinkernelWorld(base: World): WinkernelWorld & { close(): void } {
  const { platform, env } = process;
  const hns = new WindowsHns(() => loadHnsCalls({ platform, systemRoot: env["SystemRoot"] ?? "C:\\Windows" }));
  return {
    ...base,
    hns,
    addresses: () => addressesOf(networkInterfaces()),
    networkName: env["KUBE_NETWORK"] ?? "",
    close: () => undefined,
  };
}

/** Read what Node tells of a host's links. Pure. */
export function addressesOf(links: ReturnType<typeof networkInterfaces>): readonly HostLinkAddress[] {
  return Object.values(links)
    .flatMap((addresses = []) => addresses)
    .flatMap(({ address, mac }) => {
      const ip = canonicalIP(address.replace(/%.*$/, ""));
      return ip === undefined || /^(?:fe80:|169\.254\.)/.test(ip.text)
        ? []
        : [{ ip: ip.text, mac: mac.toLowerCase().replaceAll(":", "-") }];
    });
}
