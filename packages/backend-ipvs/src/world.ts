import { release } from "node:os";
import type { World } from "@turnout/core/backend";
import { createLinuxWorld, isAtLeast, parseKernelVersion } from "@turnout/host";
import type { LinuxWorld } from "@turnout/host";
import { rememberLookup } from "@turnout/host/iptables";
import type { IptablesMemory } from "@turnout/host/iptables";
import { createIpvs } from "@turnout/host/ipvs";
import type { Ipvs } from "@turnout/host/ipvs";

/** What this backend touches: a Linux host with IPVS. */
export interface IpvsWorld extends LinuxWorld, IptablesMemory {
  readonly ipvs: Ipvs;
  /** See {@link losesReusedPorts}. */
  readonly losesReusedPorts: boolean;
}

/** Add IPVS of this network namespace. Touches nothing yet. */
export function createIpvsWorld(base: World): IpvsWorld & { close(): void } {
  const linux = createLinuxWorld(base);
  const ipvs = createIpvs();
  return {
    ...linux,
    rememberedLookup: rememberLookup(linux.exec),
    ipvs,
    losesReusedPorts: losesReusedPorts(release()),
    close(): void {
      ipvs.close();
      linux.close();
    },
  };
}

/**
 * Tell kernels that drop the first packet from a client's port that was used before, for a second, unless they leave it with the real server that
 * it had. Before 4.1 the parameter did nothing.
 * @source kube-proxy pkg/proxy/ipvs/proxier.go connReuseMinSupportedKernelVersion, connReuseFixedKernelVersion
 */
export function losesReusedPorts(kernelRelease: string): boolean {
  const version = parseKernelVersion(kernelRelease);
  return version !== undefined && isAtLeast(version, "4.1") && !isAtLeast(version, "5.9");
}
