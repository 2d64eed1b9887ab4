import { canonicalIP, listOption, numberOption, switchOption, textOption } from "@turnout/core/backend";
import type { OptionsOf, Plain } from "@turnout/core/backend";

/** What this backend can be told. */
export interface WinkernelOptions {
  /** The CNI's HNS network; "": what the environment's KUBE_NETWORK says. */
  readonly networkName: string;
  /** On an overlay, the address that load balancers take as source; "": none. */
  readonly sourceVip: string;
  /** Answers to what goes to cluster IPs don't pass this host, and endpoints see the client. */
  readonly enableDSR: boolean;
  /** The host's own endpoint, to which health checks are forwarded. */
  readonly rootHnsEndpointName: string;
  /** Answer health checks at load-balancer IPs, too. */
  readonly forwardHealthCheckVip: boolean;
  /** Where the proxy answers health checks of Services that have no port of their own for them. */
  readonly healthCheckPort: number;
  /** Services (`namespace/name`) whose endpoints see the load-balancer IP as destination. */
  readonly preserveDestination: readonly string[];
}

/** The options by name. Those of kube-proxy's `winkernel` section have its names. */
export const WINKERNEL_OPTIONS: OptionsOf<WinkernelOptions> = {
  networkName: textOption("networkName", "", "a text", /^/),
  sourceVip: {
    ...textOption("sourceVip", "", "an IPv4 address", /^/, "the CNI reserves one, e.g. Flannel's sourceVip.json"),
    read: readAddress,
  },
  enableDSR: switchOption("enableDSR", true),
  rootHnsEndpointName: textOption("rootHnsEndpointName", "", "a text", /^/),
  forwardHealthCheckVip: switchOption("forwardHealthCheckVip", false),
  healthCheckPort: numberOption("health-check-port", 10_256, { min: 1, max: 65_535, isWhole: true }),
  preserveDestination: listOption("preserve-destination", "a Service, e.g. shop/cart", (one) =>
    /^[^/]+\/[^/]+$/.test(one) ? one : undefined,
  ),
};

/** Overlays have only IPv4. */
function readAddress(value: Plain): string | undefined {
  if (value === "") return "";
  const ip = typeof value === "string" ? canonicalIP(value) : undefined;
  return ip?.family === "IPv4" ? ip.text : undefined;
}
