import { iptablesModule } from "@turnout/backend-iptables";
import { createFakeHost as createIptablesHost } from "@turnout/backend-iptables/testing";
import { ipvsModule } from "@turnout/backend-ipvs";
import { createFakeHost as createIpvsHost } from "@turnout/backend-ipvs/testing";
import { nftModule } from "@turnout/backend-nft";
import { createFakeHost as createNftHost } from "@turnout/backend-nft/testing";
import { userspaceModule } from "@turnout/backend-userspace";
import { createFakeHost as createUserspaceHost } from "@turnout/backend-userspace/testing";
import { winkernelModule } from "@turnout/backend-winkernel";
import { createFakeHost as createWinkernelHost } from "@turnout/backend-winkernel/testing";
import type { BackendModule } from "@turnout/core";
import type { CreateFakeHost } from "@turnout/conformance";

/** A backend, and the host in memory that it ships for the conformance kit. */
export interface BackendRun {
  readonly module: BackendModule;
  readonly createFakeHost: CreateFakeHost;
}

/** Those that come with Turnout and have a host in memory, in the order of the README: eBPF programs run in a kernel alone. */
export const BACKENDS: readonly BackendRun[] = [
  { module: nftModule, createFakeHost: createNftHost },
  { module: iptablesModule, createFakeHost: createIptablesHost },
  { module: ipvsModule, createFakeHost: createIpvsHost },
  { module: userspaceModule, createFakeHost: createUserspaceHost },
  { module: winkernelModule, createFakeHost: createWinkernelHost },
];
