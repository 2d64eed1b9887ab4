import { canonicalIP, cidrContains, FAMILIES, parseCIDR, parseIP, type IPFamily } from "@turnout/core";
import type { HttpRequest, Reply } from "../health/health.ts";

const LOOPBACK = ["127.0.0.0/8", "::1/128"].map((text) => parseCIDR(text));

/**
 * Say why a request is not answered; undefined: it comes from this host. Pure.
 *
 * Shape: `own` are this host's addresses, canonical.
 * Edges: a browser on this host asks for whatever page it shows. So the name that was asked for must be one that no stranger's DNS can lead
 * here: an address, or `localhost`.
 */
export function reasonToRefuse(
  { remoteAddress, host }: Pick<HttpRequest, "remoteAddress" | "host">,
  own: Iterable<string>,
): string | undefined {
  // A server for both families tells IPv4 clients like this.
  const text = remoteAddress.replace(/^::ffff:(?=[\d.]+$)/, "");
  const ip = parseIP(text);
  const canonical = canonicalIP(text)?.text;
  const isLoopback = ip !== undefined && LOOPBACK.some((cidr) => cidr !== undefined && cidrContains(cidr, ip));
  if (!isLoopback && !(canonical !== undefined && [...own].includes(canonical)))
    return "only this host is answered: ask from the node itself, e.g. by kubectl exec in the proxy's pod";
  if (host !== "" && !isOwnName(host)) return "only names that mean this host are answered: ask for 127.0.0.1 or localhost";
  return undefined;
}

function isOwnName(host: string): boolean {
  const name = /^\[(.*)\](?::\d+)?$/.exec(host)?.[1] ?? host.replace(/:\d+$/, "");
  return name.toLowerCase() === "localhost" || canonicalIP(name) !== undefined;
}

/** Answers one request. */
export type Route = (request: HttpRequest) => Reply | Promise<Reply>;

/** Have a route answer this host alone, and GET alone. `hostAddresses` are this host's own, canonical. */
export function forThisHost(route: Route, hostAddresses: (family: IPFamily) => readonly string[]): Route {
  return (request) => {
    const reason = reasonToRefuse(request, FAMILIES.flatMap(hostAddresses));
    if (reason !== undefined) return refusal(403, reason);
    if (request.method !== "GET" && request.method !== "HEAD") return refusal(405, "nothing can be changed here: use GET");
    return route(request);
  };
}

const TEXT = { "Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff" };

/** Answer with text for people. */
export function textReply(body: string): Reply {
  return { status: 200, headers: TEXT, body };
}

/** Refuse a request in one line: 400 and 404 for a question that can't be answered. */
export function refusal(status: 400 | 403 | 404 | 405 | 429, text: string): Reply {
  return { status, headers: status === 405 ? { ...TEXT, Allow: "GET, HEAD" } : TEXT, body: `${text}\n` };
}
