import type { Scenario } from "../runner/scenario.ts";
import { ADDRESSES } from "./addresses.ts";
import { AFFINITY } from "./affinity.ts";
import { AFFINITY_ENDPOINTS } from "./affinity-endpoints.ts";
import { CLAIMS } from "./claims.ts";
import { CLUSTER_IPS } from "./cluster-ips.ts";
import { ENDPOINTS } from "./endpoints.ts";
import { EXTERNAL } from "./external.ts";
import { ADDRESSES_IN_USE } from "./hostile/addresses-in-use.ts";
import { HOSTILE_INPUT } from "./hostile/hostile-input.ts";
import { HOSTILE_SLICES } from "./hostile/hostile-slices.ts";
import { LIFECYCLE } from "./lifecycle.ts";
import { NODE_PORTS } from "./node-ports.ts";
import { NODE_FACTS } from "./node.ts";
import { SERVICES } from "./services.ts";
import { SHARES } from "./shares.ts";
import { SOURCE_ADDRESS } from "./source-address.ts";
import { SOURCE_RANGES } from "./source-ranges.ts";
import { TERMINATING } from "./terminating.ts";
import { TOPOLOGY } from "./topology.ts";
import { THEFTS } from "./hostile/thefts.ts";
import { UDP_FLOWS } from "./udp-flows.ts";

/** Every scenario of the conformance kit. */
export const SCENARIOS: readonly Scenario[] = [
  ...SERVICES,
  ...ADDRESSES,
  ...ENDPOINTS,
  ...CLUSTER_IPS,
  ...EXTERNAL,
  ...SHARES,
  ...SOURCE_ADDRESS,
  ...NODE_PORTS,
  ...SOURCE_RANGES,
  ...TERMINATING,
  ...TOPOLOGY,
  ...AFFINITY,
  ...AFFINITY_ENDPOINTS,
  ...UDP_FLOWS,
  ...CLAIMS,
  ...THEFTS,
  ...ADDRESSES_IN_USE,
  ...LIFECYCLE,
  ...NODE_FACTS,
  ...HOSTILE_INPUT,
  ...HOSTILE_SLICES,
];

/** Rules no packet can show, and why. */
export const WITHOUT_PACKETS: Readonly<Record<string, string>> = {
  "R-51": "it is about how a number is counted that only the health check node port tells",
  "R-67": "rows beyond the bound never reach a backend",
  "R-76": "rows beyond a namespace's share never reach a backend",
  "R-70":
    "addresses that aren't allowed are left out where Services are read, so they never reach a backend; real packets show it in e2e/attacks.test.ts",
};
