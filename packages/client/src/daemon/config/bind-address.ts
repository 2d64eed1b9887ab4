import { canonicalIP, hostPort } from "@turnout/core";

/** Where a server listens; `ip` is canonical, `port` 1–65535. */
export interface BindAddress {
  readonly ip: string;
  readonly port: number;
}

/**
 * Parse `IP:port`, `[IPv6]:port`, or an IP alone, to which `defaultPort` is added.
 *
 * Edges: anything else, also a host name or a port outside 1–65535, gives undefined. Never throws.
 * @source kube-proxy proxyutil.AppendPortIfNeeded and its validateHostPort
 */
export function parseBindAddress(text: string, defaultPort: number): BindAddress | undefined {
  const bare = canonicalIP(text);
  if (bare !== undefined) return { ip: bare.text, port: defaultPort };
  const match = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const bracketed = match[1];
  const ip = canonicalIP(bracketed ?? match[2] ?? "");
  const port = Number(match[3]);
  if (ip === undefined || port < 1 || port > 65_535) return undefined;
  if (bracketed !== undefined && !bracketed.includes(":")) return undefined;
  return { ip: ip.text, port };
}

/** Write a bind address as {@link parseBindAddress} reads it. */
export function bindAddressText(address: BindAddress): string {
  return hostPort(address.ip, address.port);
}

/** Tell whether an address means "all addresses of its family". */
export function isWildcard(ip: string): boolean {
  return ip === "0.0.0.0" || ip === "::";
}
