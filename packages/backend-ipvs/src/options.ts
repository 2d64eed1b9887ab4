import { parseCIDR } from "@turnout/core";
import { ProxyError, refuseUnknownOptions } from "@turnout/core/backend";
import type { IPFamily, OptionKind, OptionKinds, Plain } from "@turnout/core/backend";
import type { IptablesVariant } from "@turnout/host/iptables";
import type { IpvsTimeouts } from "@turnout/host/ipvs/model";

/** What this backend can be told. */
export interface IpvsOptions {
  /** How a real server is chosen, e.g. `rr`; in the kernel's words. */
  readonly scheduler: string;
  /** Schedulers of single Services, by `namespace/name`. */
  readonly schedulers: Readonly<Record<string, string>>;
  /** Virtual servers at addresses in these ranges are somebody else's, whatever else speaks for us. */
  readonly excludeCIDRs: readonly string[];
  /** How long a real server that is not wanted any more keeps its TCP connections, in seconds. */
  readonly drainSeconds: number;
  /** Where a Local policy has no endpoint here: `drop`, or `cluster`, which sends to endpoints elsewhere as kube-proxy does in this mode. */
  readonly noLocalEndpoints: "drop" | "cluster";
  /** Answer ARP only for addresses of the interface that was asked (arp_ignore, arp_announce). */
  readonly strictARP: boolean;
  /** Timeouts of the connection table in seconds; 0: as the kernel has them. */
  readonly timeouts: IpvsTimeouts;
  /** Which implementation of iptables to use; `auto`: the one the rest of the host uses. */
  readonly variant: "auto" | IptablesVariant;
}

/** What rendering knows of the host. */
export interface IpvsFacts {
  /** Addresses of the host per family, canonical, without link-local ones and those on the dummy device. */
  readonly addresses: Readonly<Record<IPFamily, readonly string[]>>;
}

const DRAIN_SECONDS = 900;

type Reader = (value: Plain, name: string) => unknown;

const READERS: Readonly<Record<string, readonly [OptionKind, Reader]>> = {
  scheduler: ["text", readScheduler],
  schedulers: ["map", readSchedulers],
  excludeCIDRs: ["list", readRanges],
  "drain-seconds": ["any", readSeconds],
  "no-local-endpoints": ["text", (value, name) => readWord(value, name, ["drop", "cluster"])],
  strictARP: ["switch", readFlag],
  tcpTimeout: ["any", readSeconds],
  tcpFinTimeout: ["any", readSeconds],
  udpTimeout: ["any", readSeconds],
  variant: ["text", (value, name) => readWord(value, name, ["auto", "legacy", "nft"])],
};

/** What {@link parseIpvsOptions} takes. */
export const IPVS_OPTIONS: OptionKinds = Object.fromEntries(Object.entries(READERS).map(([name, [kind]]) => [name, kind]));

/**
 * Check options given by name; those of kube-proxy's `ipvs` section have its names.
 *
 * Shape: `scheduler`, `schedulers`, `excludeCIDRs`, `drain-seconds`, `no-local-endpoints` (drop or cluster), `strictARP`, `tcpTimeout`,
 * `tcpFinTimeout`, `udpTimeout` (seconds, or Go durations as `15m`; parts of a second are left out, as in kube-proxy), `variant` (auto, legacy or nft).
 * @throws {ProxyError} `invalid_object` naming the option.
 */
export function parseIpvsOptions(raw: Readonly<Record<string, Plain>>): IpvsOptions {
  refuseUnknownOptions("ipvs", IPVS_OPTIONS, raw);
  const read = new Map(Object.entries(raw).map(([name, value]) => [name, READERS[name]?.[1](value, name)]));
  const given = <T>(name: string, otherwise: T): T => (read.get(name) as T | undefined) ?? otherwise;
  return {
    // "" is how kube-proxy's configuration leaves it to the proxy.
    scheduler: given("scheduler", "") || "rr",
    schedulers: given("schedulers", {}),
    excludeCIDRs: given("excludeCIDRs", []),
    drainSeconds: given("drain-seconds", DRAIN_SECONDS),
    noLocalEndpoints: given("no-local-endpoints", "drop"),
    strictARP: given("strictARP", false),
    timeouts: { tcp: given("tcpTimeout", 0), tcpFin: given("tcpFinTimeout", 0), udp: given("udpTimeout", 0) },
    variant: given("variant", "auto"),
  };
}

function readScheduler(value: Plain, name: string): string {
  if (typeof value === "string" && /^[a-z]{0,15}$/.test(value)) return value;
  throw invalid(`${name} must be the name of a scheduler`, "e.g. rr, wrr, lc, wlc, sh, mh, sed, nq");
}

function readSchedulers(value: Plain, name: string): Readonly<Record<string, string>> {
  if (typeof value !== "object" || Array.isArray(value)) throw invalid(`${name} must be an object`, `e.g. {"shop/cart": "lc"}`);
  for (const [service, scheduler] of Object.entries(value)) {
    if (!/^[^/]+\/[^/]+$/.test(service)) throw invalid(`${name}: ${JSON.stringify(service)} is no Service`, "write namespace/name");
    if (scheduler === "") throw invalid(`${name}: ${service} has no scheduler`, "leave it out, or name one, e.g. lc");
    readScheduler(scheduler, `${name}: ${service}`);
  }
  return value as Readonly<Record<string, string>>;
}

function readRanges(value: Plain, name: string): readonly string[] {
  if (!Array.isArray(value)) throw invalid(`${name} must be a list of CIDRs`, "e.g. 192.0.2.0/24");
  return value.map((text: Plain) => {
    const cidr = typeof text === "string" ? parseCIDR(text) : undefined;
    if (cidr === undefined) throw invalid(`${name}: ${JSON.stringify(text)} is no CIDR`, "e.g. 192.0.2.0/24");
    return cidr.text;
  });
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 0.001 };

function readSeconds(value: Plain, name: string): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0) return value;
  const parts = typeof value === "string" ? [...value.matchAll(/(\d+(?:\.\d+)?)(ms|[hms])/g)] : [];
  if (parts.length > 0 && parts.map(([part]) => part).join("") === value)
    return Math.floor(parts.reduce((sum, [, count, unit]) => sum + Number(count) * (UNIT_SECONDS[unit ?? ""] ?? 0), 0));
  throw invalid(`${name} must be a duration`, "write seconds, or e.g. 15m0s");
}

function readFlag(value: Plain, name: string): boolean {
  if (typeof value === "boolean") return value;
  throw invalid(`${name} must be true or false`, `it is ${JSON.stringify(value)}`);
}

function readWord(value: Plain, name: string, words: readonly string[]): string {
  if (typeof value === "string" && words.includes(value)) return value;
  throw invalid(`${name} must be ${words.join(" or ")}`, `it is ${JSON.stringify(value)}`);
}

function invalid(message: string, hint: string): ProxyError {
  return new ProxyError("invalid_object", message, { hint });
}
