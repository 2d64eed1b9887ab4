import { cidrContains, parseCIDR, parseIP } from "@turnout/core";
import type { CIDR, IP, Origin } from "@turnout/core";
import type { ListenerValue } from "./listeners.ts";

/** An endpoint, ready to be dialled. */
export interface Endpoint {
  /** `ip:port`. */
  readonly text: string;
  readonly ip: string;
  readonly port: number;
}

/** What becomes of a client: one of these endpoints, or none. */
export type Fate = readonly Endpoint[] | "reject" | "drop";

/** A listener's value, made ready for deciding many times. */
export interface Policy {
  readonly value: ListenerValue;
  readonly rules: readonly { readonly from: Origin; readonly to: Fate }[];
  readonly sourceRanges: readonly CIDR[];
  /** Whatever client comes is refused. */
  readonly refusesAll: boolean;
  /** Endpoints some client may be sent to, as `ip:port`. */
  readonly endpoints: ReadonlySet<string>;
}

/** How clients are told apart. */
export interface HostView {
  readonly addresses: ReadonlySet<string>;
  readonly pods: readonly CIDR[];
}

/** Who asks. */
export interface Client {
  readonly ip: string;
  /** Where it asked, as the socket says. */
  readonly askedIp: string;
}

/** Make a listener's value ready. Pure. */
export function policyOf(value: ListenerValue): Policy {
  const pools = { cluster: value.cluster.map(endpointOf), local: value.local.map(endpointOf) };
  const rules = value.rules.map(({ from, to }) => ({ from, to: to === "reject" || to === "drop" ? to : pools[to] }));
  return {
    value,
    rules,
    sourceRanges: (value.sourceRanges ?? []).flatMap((text) => parseCIDR(text) ?? []),
    refusesAll: rules.at(-1)?.to === "reject" && rules.every(({ to }) => typeof to === "string"),
    endpoints: new Set([...value.cluster, ...value.local]),
  };
}

/** Make what is known of the host ready. Pure. */
export function hostViewOf({ addresses, pods }: { readonly addresses: readonly string[]; readonly pods: readonly string[] }): HostView {
  return { addresses: new Set(addresses), pods: pods.flatMap((text) => parseCIDR(text) ?? []) };
}

/**
 * Decide what becomes of a client. Pure: the first rule whose origin fits it.
 *
 * Edges: this host asks from one of its addresses, from loopback, or, where it asks an address of its own, from that very address.
 * A pool that is empty drops, as no rule that core makes has one.
 */
export function fateOf(policy: Policy, host: HostView, client: Client): Fate {
  let ip: IP | undefined;
  const parsed = (): IP | undefined => (ip ??= parseIP(client.ip));
  for (const { from, to } of policy.rules) {
    if (!fits(from, policy, host, client, parsed)) continue;
    return typeof to !== "string" && to.length === 0 ? "drop" : to;
  }
  return "drop";
}

function fits(from: Origin, policy: Policy, host: HostView, client: Client, parsed: () => IP | undefined): boolean {
  switch (from) {
    case "anyone":
      return true;
    case "thisHost":
      return isThisHost(host, client);
    case "outsideSourceRanges":
      return !isWithin(policy.sourceRanges, parsed());
    case "localPod":
      return isWithin(host.pods, parsed());
    case "offCluster":
      return !isWithin(host.pods, parsed());
  }
}

function isThisHost(host: HostView, { ip, askedIp }: Client): boolean {
  return ip === askedIp || isLoopback(ip) || host.addresses.has(ip);
}

/** Whether a canonical address is loopback. */
export function isLoopback(ip: string): boolean {
  return ip.startsWith("127.") || ip === "::1";
}

function isWithin(cidrs: readonly CIDR[], ip: IP | undefined): boolean {
  return ip !== undefined && cidrs.some((cidr) => cidrContains(cidr, ip));
}

/** What choosing one endpoint looks at. */
export interface Choice {
  /** Where this client was sent before, as `ip:port`. */
  readonly kept?: string | undefined;
  /** Endpoints that could not be reached just now. */
  readonly tried: ReadonlySet<string>;
  /** Index of the next of so many. */
  readonly next: (count: number) => number;
}

/** Choose an endpoint: the one kept for the client if it may still serve it, else any that was not tried; undefined: all were. Pure. */
export function choose(pool: readonly Endpoint[], { kept, tried, next }: Choice): Endpoint | undefined {
  const left = tried.size === 0 ? pool : pool.filter(({ text }) => !tried.has(text));
  const same = kept === undefined ? undefined : left.find(({ text }) => text === kept);
  return same ?? left[left.length <= 1 ? 0 : next(left.length)];
}

function endpointOf(text: string): Endpoint {
  const colon = text.lastIndexOf(":");
  return { text, ip: text.slice(0, colon).replace(/^\[|\]$/g, ""), port: Number(text.slice(colon + 1)) };
}
