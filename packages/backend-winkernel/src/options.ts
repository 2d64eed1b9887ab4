import { canonicalIP, ProxyError, refuseUnknownOptions } from "@turnout/core/backend";
import type { OptionKind, OptionKinds, Plain } from "@turnout/core/backend";

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

const READERS: Readonly<Record<string, readonly [OptionKind, (value: Plain, name: string) => unknown]>> = {
  networkName: ["text", readText],
  sourceVip: ["text", readAddress],
  enableDSR: ["switch", readFlag],
  rootHnsEndpointName: ["text", readText],
  forwardHealthCheckVip: ["switch", readFlag],
  "health-check-port": ["number", readPort],
  "preserve-destination": ["list", readServices],
};

/** What {@link parseWinkernelOptions} takes. */
export const WINKERNEL_OPTIONS: OptionKinds = Object.fromEntries(Object.entries(READERS).map(([name, [kind]]) => [name, kind]));

/**
 * Check options given by name; those of kube-proxy's `winkernel` section have its names.
 *
 * Shape: `networkName`, `sourceVip`, `enableDSR` (default true), `rootHnsEndpointName` (default cbr0), `forwardHealthCheckVip`,
 * `health-check-port` (default 10256), `preserve-destination` (a list of `namespace/name`).
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function parseWinkernelOptions(raw: Readonly<Record<string, Plain>>): WinkernelOptions {
  refuseUnknownOptions("winkernel", WINKERNEL_OPTIONS, raw);
  const read = new Map(Object.entries(raw).map(([name, value]) => [name, READERS[name]?.[1](value, name)]));
  const given = <T>(name: string, otherwise: T): T => (read.get(name) as T | undefined) ?? otherwise;
  return {
    networkName: given("networkName", ""),
    sourceVip: given("sourceVip", ""),
    enableDSR: given("enableDSR", true),
    // "" is how kube-proxy's configuration leaves it to the proxy.
    rootHnsEndpointName: given("rootHnsEndpointName", "") || "cbr0",
    forwardHealthCheckVip: given("forwardHealthCheckVip", false),
    healthCheckPort: given("health-check-port", 10_256),
    preserveDestination: given("preserve-destination", []),
  };
}

function readText(value: Plain, name: string): string {
  if (typeof value === "string") return value;
  throw invalid(`${name} must be a text`, `it is ${JSON.stringify(value)}`);
}

/** Overlays have IPv4 alone. */
function readAddress(value: Plain, name: string): string {
  const ip = typeof value === "string" ? canonicalIP(value) : undefined;
  if (value === "") return "";
  if (ip?.family === "IPv4") return ip.text;
  throw invalid(`${name} must be an IPv4 address`, "the CNI reserves one, e.g. Flannel's sourceVip.json");
}

function readFlag(value: Plain, name: string): boolean {
  if (typeof value === "boolean") return value;
  throw invalid(`${name} must be true or false`, `it is ${JSON.stringify(value)}`);
}

function readPort(value: Plain, name: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= 65_535) return value;
  throw invalid(`${name} must be a port`, "e.g. 10256");
}

function readServices(value: Plain, name: string): readonly string[] {
  if (Array.isArray(value) && value.every((one) => typeof one === "string" && /^[^/]+\/[^/]+$/.test(one)))
    return value as readonly string[];
  throw invalid(`${name} must be a list of Services`, "e.g. shop/cart,shop/web");
}

function invalid(what: string, hint: string): ProxyError {
  return new ProxyError("invalid_object", what, { hint });
}
